package cosign

import (
	"os"
	"testing"
)

// verifyBlob has both verify a file by the signature beside it, with the keys in
// a folder.
func (b *bench) verifyBlob(keys, name string) (theirs, ours answer) {
	b.t.Helper()
	return b.sigstore("verify-blob", "--key", keys+"/release.pub", "--bundle", name+".sigstore.json", "--insecure-ignore-tlog", name),
		b.release("verify", "--trust", keys, name)
}

// TestSignedFiles are those that a person downloads first.
func TestSignedFiles(t *testing.T) {
	for name, other := range map[string]string{
		"release.json": "SHA256SUMS",
		"SHA256SUMS":   "release.json",
		"nox-mesh-host-1.0.0-linux-x86_64.tar.gz": "release.json",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			file, sig := "dist/"+name, "dist/"+name+".sigstore.json"
			good, goodSig := b.get(file), b.get(sig)
			for _, c := range []struct {
				what, keys, want string
				change           func()
			}{
				{"as it is", "keys", accepts, func() {}},
				{"a flipped byte of the file", "keys", refuses, func() { b.flip(file) }},
				{"a flipped byte of the signature", "keys", refuses, func() { b.flip(sig) }},
				{"another key", "strangers", refuses, func() {}},
				{"another file's signature", "keys", refuses, func() { b.put(sig, b.get("dist/"+other+".sigstore.json")) }},
				{"another key's signature", "keys", refuses, func() {
					// A stranger's is not replaced.
					if err := os.Remove(b.path(sig)); err != nil {
						t.Fatal(err)
					}
					b.must(b.release("sign", "--keys", "strangers", file))
				}},
			} {
				c.change()
				theirs, ours := b.verifyBlob(c.keys, file)
				b.judged(name+": "+c.what, theirs, ours, c.want, c.want)
				b.put(file, good)
				b.put(sig, goodSig)
			}
		})
	}
}

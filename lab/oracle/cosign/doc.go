// Package cosign has the real cosign judge what mesh-release signs, and
// mesh-release judge what cosign signs.
//
// It has no code but tests. cosign runs in a network namespace with nothing in
// it, with a key in a file: what it accepts, a person behind a closed door can
// check too. Each case is one line of a table with both answers (the attribute
// "verdict"), as they were in that run.
//
// What does not go: `cosign sign-blob` signs the digest alone (a "message
// signature"), where a signature of ours is over a statement about it, which
// cosign verifies as well; mesh-release refuses the former, and takes what
// `cosign attest-blob --statement` makes. By itself cosign 3 asks the network which
// services sign; --use-signing-config=false with --tlog-upload=false keeps it from
// that.
//
// The tests need root (for the namespace), the go command and the cosign that
// lab/tools.sh builds, and skip with the reason where these are missing.
package cosign

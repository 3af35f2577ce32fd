package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRemoveGivesBackContentModeAndKind(t *testing.T) {
	b := newBench(t)
	b.write("/etc/it", "before", 0o751|os.ModeSetuid)
	rec := b.apply(want(t, `{"path":"/etc/it","target":"elsewhere"}`), nil)
	refs, err := References(rec.Before)
	b.must(err)
	if len(refs) != 1 || !b.store.Has(refs[0], 6) {
		t.Errorf("References: %v; want the one that is in the content store", refs)
	}
	next := b.apply(want(t, `{"path":"/etc/it","mode":"0600","content":"two"}`), &rec)
	b.remove(next, "removed", "")
	b.text("/etc/it", "before")
	b.mode("/etc/it", 0o4751)
	b.holds("/etc", "it")
	b.remove(next, "removed", "") // as after a crash
	b.text("/etc/it", "before")
	b.holds("/etc", "it")
}

func TestWhatSomebodyMadeOfItIsKeptBeside(t *testing.T) {
	b := newBench(t)
	w := want(t, `{"path":"/etc/it","content":"ours"}`)
	rec := b.apply(w, nil)
	b.write("/etc/it.nox-saved", "an older one", 0o644)
	b.write("/etc/it", "theirs", 0o640)
	b.remove(rec, "removed", `"it.nox-saved.1"`)
	b.text("/etc/it.nox-saved", "an older one")
	b.text("/etc/it.nox-saved.1", "theirs")
	b.mode("/etc/it.nox-saved.1", 0o640)
	b.holds("/etc", "it.nox-saved it.nox-saved.1")
}

func TestChangedFileIsKeptBesideAndTheOldOneGivenBack(t *testing.T) {
	b := newBench(t)
	b.write("/etc/it", "before", 0o600)
	rec := b.apply(want(t, `{"path":"/etc/it","content":"ours"}`), nil)
	b.must(os.Remove(b.path("/etc/it")))
	b.link("/etc/it", "theirs")
	b.remove(rec, "removed", `"it.nox-saved"`)
	b.text("/etc/it", "before")
	if got, _ := os.Readlink(b.path("/etc/it.nox-saved")); got != "theirs" {
		t.Errorf("saved is a symlink to %q", got)
	}
	b.holds("/etc", "it it.nox-saved")
}

func TestTheLongestNameHasRoomBeside(t *testing.T) {
	b := newBench(t)
	name := "/etc/" + strings.Repeat("x", 255)
	rec := b.apply(want(t, `{"path":"`+name+`","content":"ours"}`), nil)
	b.write(name, "theirs", 0o644)
	b.remove(rec, "removed", ".nox-saved")
	b.text("/etc/"+strings.Repeat("x", 245)+".nox-saved", "theirs")
}

func TestAModeChangedByHandIsNoReasonToKeepOurs(t *testing.T) {
	b := newBench(t)
	rec := b.apply(want(t, `{"path":"/etc/it","content":"ours"}`), nil)
	b.must(os.Chmod(b.path("/etc/it"), 0o600))
	b.remove(rec, "removed", "")
	b.holds("/etc", "")
}

func TestAdoptedIsReleased(t *testing.T) {
	b := newBench(t)
	b.write("/etc/it", "same", 0o644)
	w := want(t, `{"path":"/etc/it","mode":"0644","content":"same"}`)
	st := b.check(w, nil)
	if os.Geteuid() == 0 && !st.Same {
		t.Fatalf("Check says %+v", st)
	}
	rec := record(w, st.Found)
	rec.Adopted = true
	b.remove(rec, "released", "before the host owned it")
	b.text("/etc/it", "same")

	// Changed by the host since: it goes back to what it was.
	next := b.apply(want(t, `{"path":"/etc/it","content":"ours"}`), &rec)
	next.Adopted = true
	b.remove(next, "removed", "")
	b.text("/etc/it", "same")

	b.must(os.Remove(b.path("/etc/it")))
	b.remove(rec, "removed", "")
}

func TestSomethingElseInItsPlaceIsReleased(t *testing.T) {
	b := newBench(t)
	rec := b.apply(want(t, `{"path":"/etc/it","content":"ours"}`), nil)
	b.must(os.Remove(b.path("/etc/it")))
	b.mkdir("/etc/it", 0o755)
	b.remove(rec, "released", "a directory now")
	b.holds("/etc", "it")

	dir := b.apply(want(t, `{"path":"/etc/dir","directory":true}`), nil)
	b.must(os.Remove(b.path("/etc/dir")))
	b.write("/etc/dir", "theirs", 0o644)
	b.remove(dir, "released", "a file now")
	b.text("/etc/dir", "theirs")
}

func TestDirectoryGoesOnlyWhenEmptyAndOurs(t *testing.T) {
	b := newBench(t)
	full := b.apply(want(t, `{"path":"/etc/full","directory":true}`), nil)
	b.write("/etc/full/theirs", "x", 0o644)
	b.remove(full, "released", "not empty")
	b.text("/etc/full/theirs", "x")

	b.mkdir("/etc/old", 0o711)
	old := b.apply(want(t, `{"path":"/etc/old","directory":true,"mode":"0700"}`), nil)
	b.remove(old, "released", "was there before")
	b.mode("/etc/old", 0o711)
}

func TestMissingParentsAreMadeAndTakenAwayWhenEmpty(t *testing.T) {
	b := newBench(t)
	w := want(t, `{"path":"/etc/a/b/c/it","content":"x"}`)
	if st := b.check(w, nil); st.Exists || st.Found == nil {
		t.Fatalf("Check says %+v, want parents to remember", st)
	}
	rec := b.apply(w, nil)
	b.mode("/etc/a", 0o755)
	b.write("/etc/a/theirs", "x", 0o644)
	b.remove(rec, "removed", "")
	b.holds("/etc/a", "theirs")

	b.must(os.Remove(b.path("/etc/a/theirs")))
	b.remove(rec, "removed", "") // as after a crash in between
	b.holds("/etc", "")
}

func TestFailedApplyLeavesNoParents(t *testing.T) {
	b := newBench(t)
	b.fails(want(t, `{"path":"/etc/a/b/it","source":"sha256:`+strings.Repeat("0", 64)+`"}`), "not in the content store")
	b.holds("/etc", "")
}

func TestOldContentThatIsLostStopsTheRemoval(t *testing.T) {
	b := newBench(t)
	b.write("/etc/it", "before", 0o600)
	rec := b.apply(want(t, `{"path":"/etc/it","content":"ours"}`), nil)
	refs, err := References(rec.Before)
	b.must(err)
	b.must(os.WriteFile(filepath.Join(b.store.Dir(), "blobs/sha256", refs[0].Encoded()), []byte("damage"), 0o600))
	_, _, err = b.kind.Remove(ctx, rec)
	saysAll(t, err, `cannot remove "/etc/it"`, "given back", "damaged")
	b.text("/etc/it", "ours")
	b.holds("/etc", "it")
}

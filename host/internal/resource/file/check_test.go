package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func TestF08EditInTheSameSecondOfTheSameSizeIsFound(t *testing.T) {
	b := newBench(t)
	w := want(t, `{"path":"/etc/it","content":"port = 80"}`)
	rec := b.apply(w, nil)
	fi, err := os.Stat(b.path("/etc/it"))
	b.must(err)

	b.write("/etc/it", "port = 81", 0o644)
	b.must(os.Chtimes(b.path("/etc/it"), fi.ModTime(), fi.ModTime()))
	st := b.check(w, &rec)
	if st.Same || strings.Join(st.Differences, "|") != "content" {
		t.Errorf("Check says %+v", st)
	}
	b.apply(w, &rec)
	b.text("/etc/it", "port = 80")
}

func TestF08TouchIsNoDrift(t *testing.T) {
	b := newBench(t)
	w := want(t, `{"path":"/etc/it","content":"x"}`)
	rec := b.apply(w, nil)
	b.must(os.Chtimes(b.path("/etc/it"), time.Unix(1, 0), time.Unix(1, 0)))
	if st := b.check(w, &rec); !st.Same {
		t.Errorf("Check says %+v", st)
	}
}

func TestF12LargeFileIsLookedAtInFlatMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("short: this hashes 1 GiB")
	}
	b := newBench(t)
	b.write("/etc/it", "", 0o644)
	b.must(os.Truncate(b.path("/etc/it"), 1<<30))
	// head -c 1073741824 /dev/zero | sha256sum
	w := want(t, `{"path":"/etc/it","source":"sha256:49bc20df15e412a64472421e13fe86ff1c5165e18b2afccf160d4dc19fe68a14"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	st := b.check(w, nil)
	runtime.ReadMemStats(&after)
	if !st.Same {
		t.Errorf("Check says %+v", st)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	b := newBench(t)
	b.write("/etc/it", "", 0o644)
	b.must(os.Truncate(b.path("/etc/it"), 1<<40))
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, err := b.kind.Check(ctx, want(t, `{"path":"/etc/it","content":"x"}`), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestSecretIsNowhere(t *testing.T) {
	const secret = "hunter2-hunter2"
	b := newBench(t)
	w := want(t, `{"path":"/etc/it","mode":"0600","secret":true,"content":"`+secret+`"}`)
	b.write("/etc/it", "other", 0o644)
	st := b.check(w, nil)
	if len(st.Differences) != 2 {
		t.Fatalf("Check says %+v", st)
	}
	said := strings.Join(st.Differences, " ") + st.Note + string(st.Found)
	rec := b.apply(w, nil)
	b.write("/etc/it", secret+"!", 0o644)
	st = b.check(w, &rec)
	said += strings.Join(st.Differences, " ") + st.Note + string(st.Found)

	b.must(os.Remove(b.path("/etc/it")))
	b.must(os.Mkdir(b.path("/etc/it"), 0o755))
	_, err := b.try(w, &rec)
	saysAll(t, err, "a directory is there")
	if strings.Contains(said+err.Error(), secret) {
		t.Errorf("the secret is in what is said: %s %v", said, err)
	}
}

// One pass over 1,000 files of 4 KiB that are as declared.
func BenchmarkSecondPass(bm *testing.B) {
	root := bm.TempDir()
	k := New(Config{Layout: layout.Layout{Root: root}})
	if err := os.Mkdir(root+"/etc", 0o755); err != nil {
		bm.Fatal(err)
	}
	text := strings.Repeat("x", 4<<10)
	var wants []resource.Want
	for i := range 1000 {
		w := want(bm, fmt.Sprintf(`{"path":"/etc/%d","mode":"0600","content":"%s"}`, i, text))
		if err := os.WriteFile(root+w.Resource.File.Path, []byte(text), 0o600); err != nil {
			bm.Fatal(err)
		}
		wants = append(wants, w)
	}
	bm.ReportAllocs()
	for bm.Loop() {
		for _, w := range wants {
			if st, err := k.Check(ctx, w, nil); err != nil || !st.Same {
				bm.Fatalf("Check says %+v, %v", st, err)
			}
		}
	}
}

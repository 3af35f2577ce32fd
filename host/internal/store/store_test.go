package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"go.etcd.io/bbolt"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

var noon = clock.At(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC))

func begin(t *testing.T) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "host[1]*") // a path is no pattern
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "store.db")
	return reopen(t, path), path
}

func reopen(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, noon, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func fileSpec(path, content string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"file","path":%q,"content":%q}`, path, content))
}

func TestH03IntentThenRecord(t *testing.T) {
	s, path := begin(t)
	i := Intent{Key: "file:/a", ID: "a", Type: "file", Spec: fileSpec("/a", ""), Restarts: []string{"process:p"}}
	if err := s.Begin(i); err != nil {
		t.Fatal(err)
	}
	s.Close()

	s = reopen(t, path)
	open, err := s.Intents()
	if err != nil || len(open) != 1 || open[0].Key != "file:/a" {
		t.Fatalf("intents after a crash: %+v, %v", open, err)
	}
	if r, _ := s.Restarts(); !r["process:p"] {
		t.Errorf("the restart is forgotten: %v", r)
	}
	if err := s.Commit(resource.Record{Key: "file:/a", ID: "a", Type: "file", Spec: fileSpec("/a", "")}); err != nil {
		t.Fatal(err)
	}
	if open, _ := s.Intents(); len(open) != 0 {
		t.Errorf("the intent is still open: %+v", open)
	}
	if r, _ := s.Restarts(); !r["process:p"] {
		t.Errorf("committing the file ended the process's restart")
	}
	if err := s.Commit(resource.Record{Key: "process:p", ID: "p", Type: "process", Spec: json.RawMessage(`{"type":"process","name":"p","command":["/p"]}`)}); err != nil {
		t.Fatal(err)
	}
	if r, _ := s.Restarts(); len(r) != 0 {
		t.Errorf("restarts left: %v", r)
	}
	recs, err := s.Records()
	if err != nil || len(recs) != 2 || recs[0].Key != "file:/a" || recs[0].Sequence != 1 || recs[1].Sequence != 2 {
		t.Errorf("records: %+v, %v", recs, err)
	}
	if err := s.Commit(recs[0]); err != nil {
		t.Fatal(err)
	}
	if again, _ := s.Records(); again[0].Sequence != 1 {
		t.Errorf("an old record got sequence %d", again[0].Sequence)
	}
}

func TestH04SecondOpenSaysItIsLocked(t *testing.T) {
	_, path := begin(t)
	if _, err := Open(path, noon, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
	}
}

func TestH06OpeningAStoreInOrderWritesNothing(t *testing.T) {
	s, path := begin(t)
	s.Close()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s = reopen(t, path)
	if s.Writes() != 0 {
		t.Errorf("%d pages written", s.Writes())
	}
	after, _ := os.ReadFile(path)
	if !bytes.Equal(before, after) {
		t.Error("the file changed")
	}
}

func TestH02DamagedStoreIsSetAsideAloud(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"not a store":    func([]byte) []byte { return bytes.Repeat([]byte("no store "), 4000) },
		"cut":            func(b []byte) []byte { return b[:5000] },
		"empty":          func([]byte) []byte { return nil },
		"zeroed":         func(b []byte) []byte { return make([]byte, len(b)) },
		"pages scrubbed": func(b []byte) []byte { return append(b[:8192:8192], bytes.Repeat([]byte{0xff}, len(b)-8192)...) },
	} {
		t.Run(name, func(t *testing.T) {
			s, path := begin(t)
			for i := range 200 {
				if err := s.Commit(resource.Record{Key: fmt.Sprintf("file:/%d", i), ID: "f", Spec: fileSpec(fmt.Sprintf("/%d", i), strings.Repeat("x", 300))}); err != nil {
					t.Fatal(err)
				}
			}
			s.Close()
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			bad := spoil(b)
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s, err = Open(path, noon, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			aside := path + ".damaged-20300102T120000Z"
			if got := SetAside(path); len(got) != 1 || got[0] != aside {
				t.Errorf("set aside as %q", got)
			}
			if kept, _ := os.ReadFile(aside); !bytes.Equal(kept, bad) {
				t.Error("what was set aside is not what was there")
			}
			if !strings.Contains(log.String(), "damaged") {
				t.Errorf("log: %s", log.String())
			}
			if r, err := s.Records(); err != nil || len(r) != 0 {
				t.Errorf("begins with %d records, %v", len(r), err)
			}
		})
	}
}

func TestH02StoreOfANewerHostIsLeftAlone(t *testing.T) {
	s, path := begin(t)
	if err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyFormat, number(99)) }); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := Open(path, noon, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrNewer) {
		t.Errorf("%v", err)
	}
	if es, _ := os.ReadDir(filepath.Dir(path)); len(es) != 1 {
		t.Errorf("the folder holds %v", es)
	}
}

func TestTheLastHundredReportsAreKept(t *testing.T) {
	s, _ := begin(t)
	for i := range 130 {
		if err := s.AddReport(link.Report{ID: fmt.Sprint(i)}, i%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Reports()
	if err != nil || len(all) != 100 || all[0].ID != "129" || all[99].ID != "30" {
		t.Fatalf("%d reports, %v", len(all), err)
	}
	unsent, err := s.Unsent()
	if err != nil || len(unsent) != 50 || unsent[0].ID != "30" {
		t.Fatalf("%d unsent, %v", len(unsent), err)
	}
	if err := s.MarkSent("30"); err != nil {
		t.Fatal(err)
	}
	if unsent, _ := s.Unsent(); len(unsent) != 49 || unsent[0].ID != "32" {
		t.Errorf("after MarkSent: %d, first %s", len(unsent), unsent[0].ID)
	}
}

// spoil changes one entry behind the store's back.
func spoil(t *testing.T, path string, bucket, key, value []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(key, value) }); err != nil {
		t.Fatal(err)
	}
}

func TestH02WhatCanBeHadAgainIsTakenOut(t *testing.T) {
	for name, c := range map[string]struct {
		bucket, key, value []byte
		wanted             bool
		reports            int
	}{
		"a report":              {bucketReports, number(1), []byte("{"), true, 1},
		"a report's key":        {bucketReports, []byte("x"), []byte("{}"), true, 2},
		"about the declaration": {bucketWanted, keyWanted, []byte("{"), false, 2},
		"the declaration":       {bucketWanted, keyDocument, []byte(`{"schema":1,"name":"y","resources":[]}`), false, 2},
		"a report to be sent":   {bucketUnsent, number(9), []byte("gone"), true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, path := begin(t)
			doc := []byte(`{"schema":1,"name":"x","resources":[]}`)
			if err := s.Accept(Wanted{Name: "x", Digest: digest.FromBytes(doc).String(), Document: doc}); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"one", "two"} {
				if err := s.AddReport(link.Report{ID: id}, true); err != nil {
					t.Fatal(err)
				}
			}
			s.Close()
			spoil(t, path, c.bucket, c.key, c.value)
			s = reopen(t, path)
			if len(SetAside(path)) != 0 {
				t.Error("the whole store was set aside")
			}
			if w, err := s.Wanted(); err != nil || (w != nil) != c.wanted {
				t.Errorf("the declaration in force: %+v, %v", w, err)
			}
			if r, err := s.Reports(); err != nil || len(r) != c.reports {
				t.Errorf("%d reports, %v", len(r), err)
			}
			if u, err := s.Unsent(); err != nil || len(u) != c.reports {
				t.Errorf("%d unsent, %v", len(u), err)
			}
		})
	}
}

func TestH02ARecordOfSomethingElseIsDamage(t *testing.T) {
	for name, value := range map[string]string{
		"another key":  `{"key":"file:/b","id":"a","type":"file","spec":{"type":"file","path":"/a","content":""}}`,
		"another spec": `{"key":"file:/a","id":"a","type":"file","spec":{"type":"file","path":"/b","content":""}}`,
		"no spec":      `{"key":"file:/a","id":"a","type":"file"}`,
	} {
		s, path := begin(t)
		s.Close()
		spoil(t, path, bucketRecords, []byte("file:/a"), []byte(value))
		s = reopen(t, path)
		if r, err := s.Records(); err != nil || len(r) != 0 || len(SetAside(path)) != 1 {
			t.Errorf("%s: %+v, %v, set aside %v", name, r, err, SetAside(path))
		}
	}
}

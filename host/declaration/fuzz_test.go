package declaration

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, c := range wrong {
		if len(c.doc) < 1000 {
			f.Add([]byte(c.doc))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { holds(t, b) })
}

// FuzzResource knows the types, so that what it makes is about their members.
func FuzzResource(f *testing.F) {
	types := knownTypes()
	for i, typ := range types {
		for _, members := range examples[typ].good {
			f.Add(uint8(i), members)
		}
		for _, c := range examples[typ].bad {
			f.Add(uint8(i), c.members)
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, members string) {
		holds(t, []byte(doc(resource(types[int(i)%len(types)], members))))
	})
}

// holds is what is true of every document.
func holds(t *testing.T, b []byte) {
	d, err := Parse(b)
	if err != nil {
		if fault.KindOf(err) != fault.Refused {
			t.Errorf("kind %d: %v", fault.KindOf(err), err)
		}
		if n := len(faultsOf(err)); n < 1 || n > maxFaults {
			t.Errorf("%d faults: %v", n, err)
		}
		seen := map[Fault]bool{}
		for _, f := range faultsOf(err) {
			if seen[f] {
				t.Errorf("told twice: %s", f)
			}
			seen[f] = true
		}
		return
	}
	m, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(m)
	if err != nil {
		t.Fatalf("normal form is refused: %v\n%s", err, m)
	}
	if m2, _ := again.Marshal(); string(m) != string(m2) {
		t.Errorf("normal form is not stable:\n%s\n%s", m, m2)
	}
	if len(d.Order()) != len(d.Resources) {
		t.Errorf("%d of %d resources have a place in the order", len(d.Order()), len(d.Resources))
	}
	claimed := map[string]bool{}
	for i := range d.Resources {
		r := &d.Resources[i]
		kept, err := FromSpec(r.ID, r.Spec())
		if err != nil {
			t.Fatalf("what is recorded cannot be read: %v\n%s", err, r.Spec())
		}
		kept.After, kept.RestartOn, kept.TakeOver = again.Resources[i].After, again.Resources[i].RestartOn, again.Resources[i].TakeOver
		if !reflect.DeepEqual(kept, recorded(again.Resources[i])) {
			t.Errorf("what is recorded is another: %s", r.Spec())
		}
		for _, c := range r.Claims() {
			if claimed[c] {
				t.Errorf("%q is claimed twice", c)
			}
			claimed[c] = true
		}
		for _, s := range r.Sources() {
			if s.Validate() != nil {
				t.Errorf("%q is no digest", s)
			}
		}
	}
}

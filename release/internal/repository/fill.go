package repository

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// place puts a package and its signature into next.
func (s *state) place(i *item, next *durable.Dir) error {
	switch {
	case i.source == "":
		if err := keep(s.dir, next, i.File); err != nil {
			return err
		}
	default:
		if err := i.bring(next); err != nil {
			return err
		}
	}
	if !i.signed {
		return keep(s.dir, next, i.File+sigSuffix)
	}
	return write(next, i.File+sigSuffix, bytes.NewReader(i.entry.signature))
}

// bring puts the file that was read at source into next.
func (i *item) bring(next *durable.Dir) error {
	f, err := os.Open(i.source)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(i.info, now) || now.Size() != i.info.Size() || !now.ModTime().Equal(i.info.ModTime()) {
		return fmt.Errorf("package %q changed meanwhile", i.source)
	}
	return carry(f, next, i.File, nil)
}

// writeDatabases writes and signs both databases, each under both its names.
func writeDatabases(entries map[string]*entry, next *durable.Dir, o Options) error {
	date := time.Unix(0, 0)
	for _, e := range entries {
		if e.built.After(date) {
			date = e.built
		}
	}
	for _, name := range []string{filesName, dbName} {
		b, err := writeDatabase(entries, name == filesName)
		if err != nil {
			return err
		}
		if _, err := readDatabase(b, name == filesName); err != nil {
			return fmt.Errorf("cannot read back %q: %w", name, err)
		}
		sig, err := o.Signer.Sign(bytes.NewReader(b), date)
		if err != nil {
			return err
		}
		if err := o.Verifier.Verify(bytes.NewReader(b), sig); err != nil {
			return fault.Refusedf("cannot use the key: its signature of %q does not verify: %w", name, err)
		}
		if err := writeDatabaseFiles(next, name, b, sig); err != nil {
			return err
		}
	}
	return nil
}

// writeDatabaseFiles writes one database and its signature under both names.
func writeDatabaseFiles(next *durable.Dir, name string, b, sig []byte) error {
	for suffix, content := range map[string][]byte{"": b, sigSuffix: sig} {
		long := name + longSuffix + suffix
		if err := write(next, long, bytes.NewReader(content)); err != nil {
			return err
		}
		if err := link(next, long, name+suffix); err != nil {
			return err
		}
	}
	return nil
}

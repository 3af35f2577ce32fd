package service_test

import (
	"os"
	"testing"
)

// TestTheAdminSocketIsItsUsersAlone: whoever may speak there runs the mesh.
func TestTheAdminSocketIsItsUsersAlone(t *testing.T) {
	m := newMachine(t)
	m.serve()
	if fi, err := os.Stat(m.l.ControllerSocket()); err != nil || fi.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}

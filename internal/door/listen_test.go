package door

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain is also the stranger of TestAStrangerIsNotLetIn.
func TestMain(m *testing.M) {
	path := os.Getenv("DOOR_TEST_ASK")
	if path == "" {
		os.Exit(m.Run())
	}
	_, err := again.Ask(context.Background(), patient(path), number{})
	fmt.Print(HowOf(err))
}

// A stranger is stopped by the mode of the socket, and where somebody changed that
// by the kernel's word of who he is.
func TestAStrangerIsNotLetIn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	serve(t, path, Server{Handler: doubling(func(_ context.Context, q number) (number, error) {
		t.Error("he was let in")
		return q, nil
	})})
	if fi, err := os.Stat(path); err != nil || fi.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	// Somebody else has to reach the socket, and this program.
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(dir, "stranger")
	b, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(self, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o600, 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(self)
		c.Env = append(os.Environ(), "DOOR_TEST_ASK="+path)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := c.CombinedOutput(); err != nil || string(out) != fmt.Sprint(int(NotAllowed)) {
			t.Errorf("mode %04o: %s, %v", mode, out, err)
		}
	}
}

func TestWhoIsRefusedIsNotHeard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	heard := make(chan uint32, 1)
	l, err := Listen(path, func(uid uint32) bool { heard <- uid; return false })
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() { _, err := l.Accept(); accepted <- err }()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if uid := <-heard; uid != uint32(os.Geteuid()) {
		t.Errorf("uid %d", uid)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
	l.Close()
	if err := <-accepted; err == nil {
		t.Error("it was accepted")
	}
}

// The socket's name goes with the listener, and a path may be as long as a file's.
func TestASocketBelowALongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a", 100), strings.Repeat("b", 100))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	for range 2 { // the second takes the place of a dead one
		l, err := Listen(path, OwnerOnly)
		if err != nil {
			t.Fatal(err)
		}
		l.(*listener).Listener.Close()
	}
	stop := serve(t, path, Server{Handler: doubling(func(_ context.Context, q number) (number, error) { return q, nil })})
	if err := (&Client{Path: path}).Greet(t.Context()); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
}

func TestALivingDoorIsLeftToItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	stop := serve(t, path, Server{Handler: doubling(func(_ context.Context, q number) (number, error) { return q, nil })})
	if l, err := Listen(path, OwnerOnly); err == nil || !strings.HasSuffix(err.Error(), "another program answers there") {
		t.Errorf("%v, %v", l, err)
	}
	if err := (&Client{Path: path}).Greet(t.Context()); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestADoorNeedsItsFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "s")
	if l, err := Listen(path, OwnerOnly); err == nil || !strings.HasPrefix(err.Error(), `cannot listen on "`+path+`"`) {
		t.Errorf("%v, %v", l, err)
	}
	if _, err := Dial(t.Context(), path); err == nil {
		t.Error("nobody is there")
	}
}

package container

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxEnvFile bounds a file of variables, in bytes.
const maxEnvFile = 1 << 20

// envFile reads a file with a NAME=VALUE in each line, as docker's --env-file:
// what is behind the first "=" is the value as it is, a line that is empty or
// begins with "#" says nothing. No error repeats what is in it.
func (k *Kind) envFile(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	b, err := k.readEnvFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read env_from %q: %w", path, err)
	}
	out := map[string]string{}
	n := 0
	for text := range strings.Lines(string(b)) {
		n++
		text = strings.TrimSuffix(text, "\n")
		if strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#") {
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || name == "" || strings.ContainsAny(name, " \t\r"):
			return nil, fmt.Errorf("cannot read env_from %q: line %d is not NAME=VALUE", path, n)
		case strings.ContainsRune(text, 0):
			return nil, fmt.Errorf("cannot read env_from %q: line %d holds a NUL byte", path, n)
		}
		out[name] = value
	}
	return out, nil
}

func (k *Kind) readEnvFile(path string) ([]byte, error) {
	f, err := k.open(path, unix.O_RDONLY|unix.O_NONBLOCK) // a pipe must not make us wait
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("is no file")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if err == nil && len(b) > maxEnvFile {
		err = fmt.Errorf("is longer than %d bytes", maxEnvFile)
	}
	return b, err
}

// open opens a path of the machine; no symlink leads out of the layout's root.
func (k *Kind) open(path string, flags uint64) (*os.File, error) {
	root, err := unix.Open(k.Layout.Path("/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, "./"+strings.TrimPrefix(path, "/"), &unix.OpenHow{
		Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

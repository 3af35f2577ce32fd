package arch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// maxScriptlet fits one argument of a program, execve(2).
const maxScriptlet = 64 << 10

var functionPattern = regexp.MustCompile(`(?m)^(function[ \t]+)?(pre|post)_(install|upgrade|remove)[ \t]*\(\)`)

// scriptlet returns the .INSTALL, or nil when there is nothing to run.
func scriptlet(ctx context.Context, install []byte, info *nfpm.Info) ([]byte, error) {
	if install == nil {
		var err error
		if install, err = functions(info); err != nil || install == nil {
			return nil, err
		}
	}
	if len(install) > maxScriptlet || bytes.IndexByte(install, 0) >= 0 || bytes.IndexByte(install, '\r') >= 0 {
		return nil, fault.Usagef("its scriptlet is over %d bytes, or no text of lines", maxScriptlet)
	}
	if !functionPattern.Match(install) {
		return nil, fault.Usagef("its scriptlet has no function that pacman calls")
	}
	return install, bashReads(ctx, install)
}

// functions makes a scriptlet of nfpm's scripts, which are bodies of functions.
// A body without a command is no function: bash would refuse the whole file.
func functions(info *nfpm.Info) ([]byte, error) {
	var b bytes.Buffer
	for _, s := range [][2]string{
		{"pre_install", info.Scripts.PreInstall}, {"post_install", info.Scripts.PostInstall},
		{"pre_upgrade", info.ArchLinux.Scripts.PreUpgrade}, {"post_upgrade", info.ArchLinux.Scripts.PostUpgrade},
		{"pre_remove", info.Scripts.PreRemove}, {"post_remove", info.Scripts.PostRemove},
	} {
		if s[1] == "" {
			continue
		}
		body, err := readBody(s[1])
		if err != nil {
			return nil, err
		}
		if hasCommand(body) {
			fmt.Fprintf(&b, "%s() {\n%s\n}\n", s[0], strings.TrimRight(body, "\n"))
		}
	}
	if b.Len() == 0 {
		return nil, nil
	}
	return b.Bytes(), nil
}

func readBody(path string) (string, error) {
	f, fi, err := openSource(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if fi.Size() > maxScriptlet {
		return "", fault.Usagef("the script %q is over %d bytes", path, maxScriptlet)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxScriptlet))
	return string(b), err
}

func hasCommand(body string) bool {
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return true
		}
	}
	return false
}

// bashReads has bash, with which pacman runs scriptlets, parse the text; nothing
// of it is run. Where there is no bash it is not checked.
func bashReads(ctx context.Context, text []byte) error {
	for _, bash := range []string{"/usr/bin/bash", "/bin/bash"} {
		if _, err := os.Stat(bash); err != nil {
			continue
		}
		c := child.Command{Path: bash, Args: []string{"--norc", "--noprofile", "-n", "-c", string(text)}, Timeout: 10 * time.Second}
		res, err := child.Run(ctx, c)
		if err != nil && len(res.Stderr) > 0 {
			return fault.Usagef("bash does not understand its scriptlet: %.200q", bytes.TrimSpace(res.Stderr))
		}
		return err
	}
	return nil
}

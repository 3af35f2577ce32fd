package repository

import (
	"strings"

	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Way is how a machine comes to its host from here: two roads to choose from,
// and what follows either. All of it is for a shell, word by word.
type Way struct {
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	// Address is the control plane's that is fetched from, Others those it has
	// besides.
	Address string   `json:"address"`
	Others  []string `json:"other_addresses,omitempty"`
	Floor   Floor    `json:"floor"`
	Pacman  Pacman   `json:"pacman"`
	// Token makes a token, on the control plane's machine; Enrol takes it, on the
	// other, from standard input.
	Token string `json:"token"`
	Enrol string `json:"enrol"`
}

// A Fetched is a file, and what it must be.
type Fetched struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
}

// Floor is the road for any machine.
type Floor struct {
	Fetched
	Command string `json:"command"`
}

// Pacman is the road for a machine that has pacman.
type Pacman struct {
	// Fingerprint is that of the key, Keyring the file with it.
	Fingerprint string  `json:"fingerprint"`
	Keyring     Fetched `json:"keyring"`
	// Trust takes the key, Lines are for pacman.conf, Install comes after.
	Trust   string   `json:"trust"`
	Lines   []string `json:"lines"`
	Install string   `json:"install"`
}

// WayBy is the way from the addresses ("HOST:PORT"), the first of which is taken. The
// list was verified: its names are plain.
func WayBy(l *seed.List, addresses []string) Way {
	at := "http://" + addresses[0]
	tarball, keyring := l.Floor(), l.Keyring()
	w := Way{
		Version: l.Version, Architecture: l.Architecture, Address: addresses[0], Others: addresses[1:],
		Floor:  Floor{Fetched: Fetched{at + "/" + tarball.Name, tarball.SHA256}},
		Pacman: Pacman{Fingerprint: strings.ToUpper(l.PackageKey), Keyring: Fetched{at + "/" + keyring.Name, keyring.SHA256}},
		Token:  "sudo mesh-controller token create", Enrol: "sudo mesh-host enrol -",
	}
	w.Floor.Command = strings.Join([]string{
		fetch(w.Floor.Fetched, tarball.Base()),
		"tar -xzf " + tarball.Base(),
		"sudo ./nox-mesh-host-" + l.Version + "/mesh-host install",
	}, " && ")
	w.Pacman.Trust = strings.Join([]string{
		fetch(w.Pacman.Keyring, keyring.Base()),
		"sudo pacman-key --add " + keyring.Base(),
		"sudo pacman-key --lsign-key " + w.Pacman.Fingerprint,
	}, " && ")
	w.Pacman.Lines = []string{"[nox-mesh]", "SigLevel = Required DatabaseRequired", "Server = " + at + "/arch/$arch"}
	w.Pacman.Install = "sudo pacman -Sy nox-mesh-keyring nox-mesh-host"
	return w
}

// fetch fetches a file as name, and goes on only when it is the one.
func fetch(f Fetched, name string) string {
	return "curl -fsSL -o " + name + " " + fault.Word(f.URL) + " && echo '" + f.SHA256 + "  " + name + "' | sha256sum -c"
}

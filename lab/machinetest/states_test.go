//go:build machine

package machinetest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

// TestStates walks the table of docs/states.md on two machines: alpha carries the
// control plane, beta goes through every state, and each step is looked at from both.
// With -v it is the walk to read.
func TestStates(t *testing.T) {
	tarball, bundle := artefact(t, "nox-mesh-host-*.tar.gz"), artefact(t, "*.bundle.tar")
	lab := machine.Start(t)
	w := &walk{t: t, alpha: lab.Boot("alpha"), beta: lab.Boot("beta")}
	for _, m := range []*machine.Machine{w.alpha, w.beta} {
		m.Put("/root/host.tar.gz", 0o644, tarball)
		m.Must("tar", "-C", "/root", "-xzf", "/root/host.tar.gz")
	}
	w.alpha.Put("/root/"+filepath.Base(bundle), 0o644, bundle)
	for _, part := range []func(*walk){firstNode, toPending, toEnrolled, alone, lostStore, lostIdentity, away, revoked, leaving, unmanaged} {
		part(w)
		if t.Failed() {
			w.tell()
			return
		}
	}
}

const (
	floorHost = "/root/nox-mesh-host-" + firstnode.Version + "/mesh-host"
	store     = "/var/lib/nox-mesh/host/store.db"
	identity  = "/var/lib/nox-mesh/host/identity.json"
)

func firstNode(w *walk) {
	w.alpha.Must(floorHost, "install")
	w.sees(w.alpha, "mesh-host install", is{state: "hosted"})
	bundles, err := w.alpha.Run(w.t.Context(), "sh", "-c", "mesh-host bootstrap /root/*.bundle.tar")
	w.must(err, bundles)
	owned := len(owns(w.t, w.alpha))
	w.sees(w.alpha, "mesh-host bootstrap BUNDLE", is{state: "hosted", owned: owned, source: "bundle"})
	controller := mainPID(w.alpha, "nox-mesh-controller")
	w.alpha.Must("sh", "-c", "mesh-controller token create | mesh-host enrol -")
	awaitLink(w.t, w.alpha)
	w.sees(w.alpha, "mesh-host enrol -", is{state: "enrolled", owned: owned, source: "link", plane: "alpha enrolled"})
	if now := mainPID(w.alpha, "nox-mesh-controller"); now != controller || owned == 0 {
		w.t.Errorf("of %d resources, the control plane was process %s and is %s", owned, controller, now)
	}
}

// toPending: beta has a declaration of its own, waits for a person, and is turned
// down.
func toPending(w *walk) {
	w.beta.Must(floorHost, "install")
	w.sees(w.beta, "mesh-host install", is{state: "hosted"})
	w.beta.WriteFile("/etc/nox-mesh/host.toml", 0o644, "reconcile_interval = \"1s\"\n")
	w.beta.Must("systemctl", "reload", "mesh-host")
	w.process = sleeper(w.beta)
	w.sees(w.beta, "mesh-host apply web.json", is{state: "hosted", owned: 2, source: "file"})
	w.beta.Must("systemctl", "stop", "mesh-host")
	w.beta.Must("rm", store)
	w.beta.Must("systemctl", "start", "mesh-host")
	w.sees(w.beta, "store.db removed, started", is{state: "hosted"})
	w.beta.Must("mesh-host", "apply", "/root/web.json")
	w.sees(w.beta, "mesh-host apply web.json", is{state: "hosted", owned: 2, source: "file"})

	if said := w.enrol("--pending"); !strings.Contains(said, "pending") {
		w.t.Errorf("enrol says: %s", said)
	}
	w.sees(w.beta, "mesh-host enrol - (a --pending token)", is{state: "hosted", owned: 2, source: "file", plane: "(beta) pending"})
	w.beta.Must("systemctl", "restart", "mesh-host")
	w.again()
	w.sees(w.beta, "the host restarts; enrol again, the same token", is{state: "hosted", owned: 2, source: "file", plane: "(beta) pending"})
	w.alpha.Must("mesh-controller", "revoke", w.node())
	awaitFor(w.t, 2*time.Minute, "beta hears that it was turned down", func() bool {
		return strings.Contains(w.journal(), "was revoked") && !has(w.t, w.beta, identity)
	})
	w.sees(w.beta, "mesh-controller revoke: turned down", is{state: "hosted", owned: 2, source: "file", plane: "(beta) revoked"})
}

// toEnrolled: a new token, and a person admits.
func toEnrolled(w *walk) {
	w.enrol("--pending")
	w.alpha.Must("mesh-controller", "approve", w.node(), "--tag", "web")
	awaitLink(w.t, w.beta)
	w.sees(w.beta, "a new token; mesh-controller approve", is{state: "enrolled", owned: 2, source: "link", plane: "beta enrolled"})
	w.declare("motd", "/srv/motd", "welcome", "every")
	await(w.t, "both have the motd", func() bool {
		return holds(w.t, w.beta, "/srv/motd", "welcome\n") && holds(w.t, w.alpha, "/srv/motd", "welcome\n")
	})
	w.sees(w.beta, "mesh-controller declare motd --on every", is{state: "enrolled", owned: 3, source: "link", plane: "beta enrolled"})
	if said := w.enrol(); !strings.Contains(said, "already enrolled as beta") {
		w.t.Errorf("a second enrolment says: %s", said)
	}
	w.sees(w.beta, "mesh-host enrol - (again)", is{state: "enrolled", owned: 3, source: "link", plane: "beta enrolled"})
}

// alone: the cable, a reboot, drift, and back.
func alone(w *walk) {
	w.beta.Unplug()
	awaitFor(w.t, 3*time.Minute, "beta says it is alone", func() bool { return status(w.t, w.beta).State == "disconnected" })
	awaitFor(w.t, 3*time.Minute, "alpha says so, too", func() bool { return strings.HasSuffix(w.plane(), "disconnected") })
	w.sees(w.beta, "the cable is pulled", is{state: "disconnected", owned: 3, source: "link", plane: "beta disconnected"})
	w.beta.Must("rm", "/srv/page")
	await(w.t, "it holds its page", func() bool { return holds(w.t, w.beta, "/srv/page", "hello\n") })
	w.sees(w.beta, "somebody removes the page", is{state: "disconnected", owned: 3, source: "link", plane: "beta disconnected"})
	w.beta.Reboot()
	await(w.t, "the process is back", func() bool {
		w.process = mainPID(w.beta, "nox-sleeper")
		return w.process != "0" && running(w.t, w.beta) != ""
	})
	w.sees(w.beta, "reboot", is{state: "disconnected", owned: 3, source: "link", plane: "beta disconnected"})
	w.declare("motd", "/srv/motd", "meanwhile", "every")
	w.beta.Plug()
	awaitLink(w.t, w.beta)
	await(w.t, "it has what was declared meanwhile", func() bool { return holds(w.t, w.beta, "/srv/motd", "meanwhile\n") })
	w.sees(w.beta, "the cable is back", is{state: "enrolled", owned: 3, source: "link", plane: "beta enrolled"})
}

// lostStore: what is as declared is owned again; what is not declared any more is
// nobody's.
func lostStore(w *walk) {
	w.declare("extra", "/srv/extra", "extra", "every")
	await(w.t, "beta has it", func() bool { return len(owns(w.t, w.beta)) == 4 })
	w.beta.Must("systemctl", "stop", "mesh-host")
	w.sees(w.beta, "systemctl stop mesh-host", is{state: "disconnected", owned: 4, source: "link", plane: "beta disconnected"})
	w.alpha.Must("mesh-controller", "undeclare", "extra")
	w.beta.Must("rm", store)
	w.beta.Must("systemctl", "start", "mesh-host")
	awaitLink(w.t, w.beta)
	await(w.t, "beta owns what is declared", func() bool { return len(owns(w.t, w.beta)) == 3 })
	w.sees(w.beta, "store.db removed, started", is{state: "enrolled", owned: 3, source: "link", plane: "beta enrolled"})
	// Its own, as the control plane remembers, and not what somebody had there before.
	for _, o := range owns(w.t, w.beta) {
		if o.Adopted {
			w.t.Errorf("%s counts as somebody's", o.Key)
		}
	}
	if out := w.beta.Must("mesh-host", "history", "--json"); strings.Count(out, `"adopted"`) != 3 {
		w.t.Errorf("something was applied anew, and not taken as it is:\n%s", out)
	}
	if out := w.beta.Must("mesh-host", "owned", "--unowned"); !strings.Contains(out, "file:/srv/extra") || strings.Contains(out, "file:/srv/page") {
		w.t.Errorf("unowned:\n%s", out)
	}
	if !holds(w.t, w.beta, "/srv/extra", "extra\n") {
		w.t.Error("what is nobody's was removed")
	}

	w.beta.Must("systemctl", "stop", "mesh-host")
	w.beta.Must("sh", "-c", "head -c 8192 /dev/urandom | dd of="+store+" conv=notrunc status=none")
	w.beta.Must("systemctl", "start", "mesh-host")
	awaitLink(w.t, w.beta)
	await(w.t, "beta owns what is declared", func() bool { return len(owns(w.t, w.beta)) == 3 })
	w.sees(w.beta, "store.db overwritten, started", is{state: "enrolled", owned: 3, source: "link", plane: "beta enrolled", warns: "set aside"})
	w.beta.Must("sh", "-c", "rm "+store+".damaged-*")
	w.beta.Must("systemctl", "restart", "mesh-host")
	awaitLink(w.t, w.beta)
	await(w.t, "nothing is wrong any more", func() bool { return !strings.Contains(w.beta.Must("mesh-host", "status"), "warning") })
	w.sees(w.beta, "the one set aside is removed, restarted", is{state: "enrolled", owned: 3, source: "link", plane: "beta enrolled"})
}

// lostIdentity: without it the machine is no node, and holds what it was told.
func lostIdentity(w *walk) {
	w.beta.Must("systemctl", "stop", "mesh-host")
	w.beta.Must("mv", identity, "/root/identity.json")
	w.beta.Must("systemctl", "start", "mesh-host")
	w.sees(w.beta, "identity.json removed, started", is{state: "hosted", owned: 3, source: "link", plane: "beta disconnected"})
	w.beta.Must("systemctl", "stop", "mesh-host")
	w.beta.WriteFile(identity, 0o600, "{")
	w.beta.Must("systemctl", "start", "mesh-host")
	w.sees(w.beta, "identity.json overwritten, started", is{state: "disconnected", owned: 3, source: "link", plane: "beta disconnected", warns: "does not know who it is"})
	w.beta.Must("systemctl", "stop", "mesh-host")
	w.beta.Must("mv", "/root/identity.json", identity)
	w.beta.Must("systemctl", "start", "mesh-host")
	awaitLink(w.t, w.beta)
	w.sees(w.beta, "identity.json put back, started", is{state: "enrolled", owned: 3, source: "link", plane: "beta enrolled"})
}

// away: the host goes, and the node with its things stays.
func away(w *walk) {
	if said := says(w.t, w.beta, 3, "mesh-host", "uninstall", "--yes"); !strings.Contains(said, "mesh-host retire") {
		w.t.Errorf("uninstall says: %s", said)
	}
	w.sees(w.beta, "mesh-host uninstall: refused", is{state: "enrolled", owned: 3, source: "link", plane: "beta enrolled"})
	w.beta.Must("mesh-host", "uninstall", "--yes", "--keep-resources")
	w.sees(w.beta, "mesh-host uninstall --keep-resources", is{state: "unmanaged", owned: 3, plane: "beta disconnected"})
	w.beta.Must(floorHost, "install")
	awaitLink(w.t, w.beta)
	w.sees(w.beta, "mesh-host install", is{state: "enrolled", owned: 3, source: "link", plane: "beta enrolled"})
}

// revoked: the machine keeps what it has, says why, and comes back as another node.
func revoked(w *walk) {
	w.declare("own", "/srv/own", "own", "node=beta")
	await(w.t, "beta has its own", func() bool { return len(owns(w.t, w.beta)) == 4 })
	w.sees(w.beta, "mesh-controller declare own --on node=beta", is{state: "enrolled", owned: 4, source: "link", plane: "beta enrolled"})
	w.alpha.Must("mesh-controller", "revoke", "beta")
	await(w.t, "beta hears it", func() bool { return status(w.t, w.beta).State == "disconnected" })
	w.sees(w.beta, "mesh-controller revoke beta", is{state: "disconnected", owned: 4, source: "link", plane: "beta revoked", why: "was revoked"})
	w.declare("motd", "/srv/motd", "not for beta", "every")
	w.beta.Must("systemctl", "restart", "mesh-host")
	w.beta.Must("mesh-host", "reconcile")
	w.sees(w.beta, "the host restarts; the mesh declares", is{state: "disconnected", owned: 4, source: "link", plane: "beta revoked", why: "was revoked"})
	if !holds(w.t, w.beta, "/srv/motd", "meanwhile\n") {
		w.t.Error("a revoked node took something of the mesh")
	}
	// The page and the process were beta's alone, and are declared for every node
	// now. What stays beta's is not the new node's.
	w.declare("web", "", "", "every")
	w.enrol()
	awaitLink(w.t, w.beta)
	await(w.t, "it has the newest motd", func() bool { return holds(w.t, w.beta, "/srv/motd", "not for beta\n") })
	await(w.t, "it has nothing of the node it was", func() bool { return !has(w.t, w.beta, "/srv/own") })
	w.sees(w.beta, "mesh-host enrol - (a new token)", is{state: "enrolled", owned: 3, source: "link", plane: "beta-2 enrolled"})
}

// leaving: while the control plane hears it, and when it is gone for ever.
func leaving(w *walk) {
	said := w.beta.Must("mesh-host", "retire", "--yes")
	w.process = ""
	w.sees(w.beta, "mesh-host retire", is{state: "hosted", source: "retire", plane: "beta-2 retired"})
	// A host that lost its store knew from the control plane what was its own.
	if !strings.Contains(said, "the control plane knows") || has(w.t, w.beta, "/srv/page") || has(w.t, w.beta, "/srv/motd") {
		w.t.Errorf("retire says: %s", said)
	}
	w.beta.Must("sh", "-c", "rm -f /srv/page /srv/motd /srv/extra")
	w.enrol()
	awaitLink(w.t, w.beta)
	await(w.t, "beta has it all again", func() bool {
		w.process = mainPID(w.beta, "nox-sleeper")
		return len(owns(w.t, w.beta)) == 3 && w.process != "0"
	})
	w.sees(w.beta, "mesh-host enrol - (a new token)", is{state: "enrolled", owned: 3, source: "link", plane: "beta-3 enrolled"})
	w.alpha.PowerOff()
	await(w.t, "beta says it is alone", func() bool { return status(w.t, w.beta).State == "disconnected" })
	w.sees(w.beta, "the control plane is gone for ever", is{state: "disconnected", owned: 3, source: "link"})
	if said := w.beta.Must("mesh-host", "retire", "--yes"); !strings.Contains(said, "could not be told") {
		w.t.Errorf("retire says: %s", said)
	}
	w.process = ""
	w.sees(w.beta, "mesh-host retire", is{state: "hosted", source: "retire"})
}

func unmanaged(w *walk) {
	w.beta.Must("mesh-host", "uninstall", "--yes", "--purge")
	w.sees(w.beta, "mesh-host uninstall --purge", is{state: "unmanaged"})
	for _, path := range []string{"/var/lib/nox-mesh", "/usr/local/bin/mesh-host", "/etc/systemd/system/mesh-host.service", "/run/nox-mesh", "/srv/page", "/srv/motd"} {
		if has(w.t, w.beta, path) {
			w.t.Errorf("%s is there", path)
		}
	}
}

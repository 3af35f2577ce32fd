package declaration

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A Container runs an image under the machine's container runtime.
type Container struct {
	Name string
	// Image is the digest of an image's manifest in the content store
	// ("sha256:…"), or a reference with its registry, pinned by such a digest
	// ("docker.io/library/registry:2@sha256:…"), which the runtime pulls.
	Image string
	// Command takes the place of the image's entrypoint, Args that of its
	// arguments; nil leaves it.
	Command, Args []string
	Env           map[string]string
	// EnvFrom is a file of the machine with a NAME=VALUE in each line.
	EnvFrom string
	Mounts  []Mount
	Ports   []Port
	// Network is NetworkHost, NetworkNone, NetworkBridge (the default), or one
	// that the runtime has by that name.
	Network string
	Restart Restart
	Labels  map[string]string
	// User is the image's when it is "": a name or number of the image's, with
	// a group behind a colon if any.
	User   string
	Limits Limits
}

// The networks there always are.
const (
	NetworkBridge = "bridge"
	NetworkHost   = "host"
	NetworkNone   = "none"
)

// ReservedLabel begins the labels that the host sets.
const ReservedLabel = "nox-mesh."

// Limits bound what a container may use; 0 is no bound.
type Limits struct {
	MemoryMiB int
	// CPUPercent is 100 for one whole CPU.
	CPUPercent int
	Processes  int
}

var (
	// containerRule is what Docker takes, and podman too; volumes and networks
	// follow it as well.
	containerRule = &rule{
		what: "a name (letters, digits, '_', '.', '-', 2 to 128)", max: 128, like: "registry",
		pattern: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]+$`),
	}
	// imageRule is the grammar of references (distribution/reference), but that
	// it must name the registry and the digest: without the first each runtime
	// adds another, without the second it is another image tomorrow.
	imageRule = &rule{
		what: "an image pinned by its digest (\"sha256:…\", \"docker.io/library/NAME@sha256:…\")", max: 512,
		pattern: regexp.MustCompile(`^((localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[0-9]+)?|[A-Za-z0-9-]+:[0-9]+|\[[0-9a-f:]+\](:[0-9]+)?)(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?@)?sha256:[0-9a-f]{64}$`),
	}
	// memberRule is a user of the image's, and a group.
	memberRule = &rule{
		what: "a user of the image's (\"NAME\", \"UID\", \"UID:GID\")", max: 128,
		pattern: regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$`),
	}
	labelRule = &rule{
		what: "the name of a label", max: 256, pattern: regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$`),
	}
	labelTextRule = &rule{check: noNUL, max: 64 << 10, empty: true, more: plainText}
)

func (c *Container) fields() []field {
	return []field{
		{"name", text[string]{&c.Name, containerRule, ""}, true, "The container's name."},
		{"image", text[string]{&c.Image, imageRule, ""}, true, "The digest of an image in the content store, or a reference with its registry, pinned by a digest: \"docker.io/library/registry:2@sha256:…\"."},
		{"command", texts{to: &c.Command, rule: argumentRule}, false, "Takes the place of the image's entrypoint."},
		{"args", texts{to: &c.Args, rule: argumentRule}, false, "Takes the place of the image's arguments."},
		{"env", table{to: &c.Env, names: variableRule, value: argumentRule}, false, "What is added to the image's environment, by variable. A secret is for env_from."},
		{"env_from", text[string]{&c.EnvFrom, pathRule, ""}, false, "A file of the machine with a NAME=VALUE in each line, such as a secret file of this declaration. What env says wins."},
		{"mounts", objects[Mount]{&c.Mounts, (*Mount).fields, (*Mount).check, 256, mountRules}, false, "What of the machine is seen in the container. A named volume is data: it stays when the container goes."},
		{"ports", objects[Port]{&c.Ports, (*Port).fields, (*Port).check, 256, nil}, false, "What can be reached from outside the container."},
		{"network", text[string]{&c.Network, containerRule, NetworkBridge}, false, "\"bridge\", \"host\", \"none\", or a network that the runtime has."},
		{"restart", text[Restart]{&c.Restart, restartRule, RestartAlways}, false, "When it is started again after it ended."},
		{"labels", table{to: &c.Labels, names: labelRule, value: labelTextRule, reserved: hostLabels,
			more: node{"patternProperties": node{`^nox-mesh\.`: false}}}, false, "What is written on the container, for whoever looks at it."},
		{"user", text[string]{&c.User, memberRule, ""}, false, "Whom it runs as: a name or number of the image's, and a group behind a colon. The image's own when nothing is said."},
		{"limits", group{[]field{
			{"memory_mib", number[int]{&c.Limits.MemoryMiB, 0, 6, 1 << 30}, false, "Memory, in MiB."},
			{"cpu_percent", number[int]{&c.Limits.CPUPercent, 0, 1, 1000000}, false, "Time on the CPUs: 100 is one whole CPU."},
			{"processes", number[int]{&c.Limits.Processes, 0, 1, 4194304}, false, "Processes and threads at once."},
		}}, false, "What it may use at most. No bound when nothing is said."},
	}
}

func hostLabels(name string) string {
	if strings.HasPrefix(name, ReservedLabel) {
		return "is set by the host"
	}
	return ""
}

func (c *Container) check(o *object) {
	if (c.Network == NetworkHost || c.Network == NetworkNone) && len(c.Ports) > 0 {
		o.fault("ports", "have no meaning with network %q", c.Network)
	}
	targets := map[string]int{}
	for i, m := range c.Mounts {
		if j, ok := targets[m.Target]; ok && m.Target != "" {
			o.at("mounts").element(i).key("target").fault("%s is the target of mounts[%d] as well", shown(m.Target), j)
		} else {
			targets[m.Target] = i
		}
	}
	ports := map[string]int{}
	for i, p := range c.Ports {
		if p.Host == 0 {
			continue // which is a fault already
		}
		if j, ok := ports[p.claim()]; ok {
			o.at("ports").element(i).fault("is published by ports[%d] as well", j)
		} else {
			ports[p.claim()] = i
		}
	}
}

func (c *Container) rules() node {
	return node{
		"description": "An image that the machine's container runtime runs.",
		"if":          node{"properties": node{"network": node{"enum": []string{NetworkHost, NetworkNone}}}, "required": []string{"network"}},
		"then":        node{"properties": node{"ports": node{"maxItems": 0}}},
	}
}

func (c *Container) name() string { return c.Name }

func (c *Container) claims() []string {
	var out []string
	for i := range c.Ports {
		if c.Ports[i].Host != 0 {
			out = append(out, c.Ports[i].claim())
		}
	}
	return out
}

// sources: what has a registry is the runtime's to pull.
func (c *Container) sources() []digest.Digest {
	if strings.HasPrefix(c.Image, "sha256:") {
		return digests(digest.Digest(c.Image))
	}
	return nil
}

func (c *Container) own(own []layout.Own, say func(member, why string)) {
	ownName(c.Name, say)
	if what := ownPath(c.EnvFrom, own); what != "" {
		say("env_from", fmt.Sprintf("%s is %s, %s", shown(c.EnvFrom), what, notYours))
	}
	for i := range c.Mounts {
		if why := c.Mounts[i].Own(own); why != "" {
			say(fmt.Sprintf("mounts[%d].path", i), why)
		}
	}
}

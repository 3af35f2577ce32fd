package container

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// The labels of what is ours.
const (
	labelName  = declaration.ReservedLabel + "name"
	labelSpec  = declaration.ReservedLabel + "spec"
	labelImage = declaration.ReservedLabel + "image"
)

// Of what a container writes, this much is kept: a runtime bounds nothing by
// itself. Podman takes json-file for its own k8s-file, and keeps one file.
const (
	logSize  = "10m"
	logFiles = "3"
)

// A body is what is asked of the runtime, in the words of its API. The same wish
// gives the same bytes in every version of the host: other bytes replace the
// container. A member that is added must be left out when it says nothing.
type body struct {
	Image        string
	Entrypoint   []string            `json:",omitempty"`
	Cmd          []string            `json:",omitempty"`
	Env          []string            `json:",omitempty"`
	User         string              `json:",omitempty"`
	Labels       map[string]string   `json:",omitempty"`
	ExposedPorts map[string]struct{} `json:",omitempty"`
	HostConfig   hostConfig
}

type hostConfig struct {
	NetworkMode   string
	RestartPolicy restartPolicy
	LogConfig     logConfig
	PortBindings  map[string][]binding `json:",omitempty"`
	Mounts        []mount              `json:",omitempty"`
	Tmpfs         map[string]string    `json:",omitempty"`
	Memory        int64                `json:",omitempty"`
	NanoCpus      int64                `json:",omitempty"`
	PidsLimit     int64                `json:",omitempty"`
}

type restartPolicy struct{ Name string }

type logConfig struct {
	Type   string
	Config map[string]string
}

type binding struct {
	HostIP   string `json:"HostIp"`
	HostPort string
}

type mount struct {
	Type, Source, Target string
	ReadOnly             bool         `json:",omitempty"`
	BindOptions          *bindOptions `json:",omitempty"`
}

type bindOptions struct {
	NonRecursive bool `json:",omitempty"`
}

// A definition is the wish as the runtime is told, but for the image, which is
// still called as it was declared.
type definition struct {
	want   *declaration.Container
	body   body
	digest string
	// secrets are values of env_from, which no error may repeat.
	secrets []string
}

// restarts are the policies' names in the API.
var restarts = map[declaration.Restart]string{
	declaration.RestartAlways:    "always",
	declaration.RestartOnFailure: "on-failure",
	declaration.RestartNever:     "no",
}

func (k *Kind) definition(c *declaration.Container) (definition, error) {
	file, err := k.envFile(c.EnvFrom)
	if err != nil {
		return definition{}, err
	}
	env := maps.Clone(file)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, c.Env)
	b := body{
		Image: c.Image, Entrypoint: c.Command, Cmd: c.Args, User: c.User, Labels: maps.Clone(c.Labels),
		HostConfig: hostConfig{
			NetworkMode:   c.Network,
			RestartPolicy: restartPolicy{restarts[c.Restart]},
			LogConfig:     logConfig{"json-file", map[string]string{"max-size": logSize, "max-file": logFiles}},
			Memory:        int64(c.Limits.MemoryMiB) << 20,
			NanoCpus:      int64(c.Limits.CPUPercent) * 1e7,
			PidsLimit:     int64(c.Limits.Processes),
		},
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		b.Env = append(b.Env, name+"="+env[name])
	}
	b.ports(c.Ports)
	if err := k.mounts(&b, c.Mounts); err != nil {
		return definition{}, err
	}
	d := definition{want: c, body: b}
	said, err := json.Marshal(b)
	if err != nil {
		return d, err
	}
	sum := sha256.Sum256(said)
	d.digest = "sha256:" + hex.EncodeToString(sum[:])
	for _, v := range file {
		d.secrets = append(d.secrets, v)
	}
	return d, nil
}

func (b *body) ports(ports []declaration.Port) {
	for _, p := range ports {
		if b.ExposedPorts == nil {
			b.ExposedPorts, b.HostConfig.PortBindings = map[string]struct{}{}, map[string][]binding{}
		}
		name := strconv.Itoa(p.Container) + "/" + string(p.Protocol)
		b.ExposedPorts[name] = struct{}{}
		b.HostConfig.PortBindings[name] = append(b.HostConfig.PortBindings[name], binding{p.Address, strconv.Itoa(p.Host)})
	}
}

func (k *Kind) mounts(b *body, mounts []declaration.Mount) error {
	for i, m := range mounts {
		switch {
		case m.Tmpfs:
			if b.HostConfig.Tmpfs == nil {
				b.HostConfig.Tmpfs = map[string]string{}
			}
			b.HostConfig.Tmpfs[m.Target] = ""
			if m.ReadOnly {
				b.HostConfig.Tmpfs[m.Target] = "ro"
			}
		case m.Volume != "":
			b.HostConfig.Mounts = append(b.HostConfig.Mounts, mount{Type: "volume", Source: m.Volume, Target: m.Target, ReadOnly: m.ReadOnly})
		default:
			leads, secret, err := k.leadsToOwn(m)
			if err != nil {
				return fmt.Errorf("mounts[%d].path: cannot tell where %q leads: %w", i, m.Path, err)
			}
			it := mount{Type: "bind", Source: k.Layout.Path(m.Path), Target: m.Target, ReadOnly: m.ReadOnly}
			if leads {
				// Read-only is only the mount itself (mount(2), MS_BIND with
				// MS_RDONLY): what is mounted below it would be seen, and written.
				it.BindOptions = &bindOptions{NonRecursive: true}
			}
			b.HostConfig.Mounts = append(b.HostConfig.Mounts, it)
			for _, rel := range secret {
				over := path.Join(m.Target, rel)
				if !slices.ContainsFunc(mounts, func(o declaration.Mount) bool { return o.Target == over }) {
					b.HostConfig.Mounts = append(b.HostConfig.Mounts, mount{Type: "bind", Source: k.cover(), Target: over, ReadOnly: true})
				}
			}
		}
	}
	return nil
}

// named is what the runtime is told to make: the image as it calls it, and our
// labels.
func (d definition) named(image string) body {
	b := d.body
	b.Image = image
	b.Labels = maps.Clone(b.Labels)
	if b.Labels == nil {
		b.Labels = map[string]string{}
	}
	b.Labels[labelName], b.Labels[labelSpec], b.Labels[labelImage] = d.want.Name, d.digest, d.want.Image
	return b
}

// address gives one spelling to all addresses, which have several.
func address(s string) string {
	if ip, err := netip.ParseAddr(s); err == nil && ip.IsUnspecified() {
		return ""
	}
	return s
}

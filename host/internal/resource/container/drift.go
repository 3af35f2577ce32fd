package container

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// differences says how a container is not what is defined. What the image says
// itself is not looked at where nothing is declared.
func (k *Kind) differences(ctx context.Context, r *runtime, d definition, c *inspected) ([]string, error) {
	out := d.configuration(c)
	image, err := k.imageDiffers(ctx, r, d.want, c)
	if err != nil {
		return nil, err
	}
	if image {
		out = append([]string{"image"}, out...)
	}
	if len(out) == 0 && c.Config.Labels[labelSpec] != d.digest {
		out = append(out, "made from another declaration")
	}
	return out, nil
}

func (d definition) configuration(c *inspected) (out []string) {
	say := func(differs bool, what string) {
		if differs {
			out = append(out, what)
		}
	}
	b, h := d.body, c.HostConfig
	say(b.Entrypoint != nil && !slices.Equal(b.Entrypoint, c.Config.Entrypoint), "command")
	say((b.Cmd != nil || b.Entrypoint != nil) && !slices.Equal(b.Cmd, c.Config.Cmd), "args")
	for _, e := range b.Env {
		name, _, _ := strings.Cut(e, "=")
		say(!slices.Contains(c.Config.Env, e), "env "+name)
	}
	for name, value := range b.Labels {
		v, ok := c.Config.Labels[name]
		say(!ok || v != value, "label "+name)
	}
	say(b.User != "" && b.User != c.Config.User, "user")
	say(!d.network(c), "network")
	say(h.RestartPolicy.Name != b.HostConfig.RestartPolicy.Name && (h.RestartPolicy.Name != "" || b.HostConfig.RestartPolicy.Name != "no"), "restart")
	say(h.Memory != b.HostConfig.Memory, "limits.memory_mib")
	say(h.NanoCpus != b.HostConfig.NanoCpus, "limits.cpu_percent")
	// Podman bounds processes by itself.
	say(b.HostConfig.PidsLimit != 0 && (h.PidsLimit == nil || *h.PidsLimit != b.HostConfig.PidsLimit), "limits.processes")
	say(!samePorts(b.HostConfig.PortBindings, h.PortBindings), "ports")
	out = append(out, d.mounts(c)...)
	slices.Sort(out)
	return out
}

// network compares the name of the network. Docker calls the bridge "default"
// where nobody named it, and podman calls every network of its own a bridge.
func (d definition) network(c *inspected) bool {
	want, has := d.body.HostConfig.NetworkMode, c.HostConfig.NetworkMode
	if has == "default" {
		has = declaration.NetworkBridge
	}
	switch want {
	case declaration.NetworkHost, declaration.NetworkNone:
		return has == want
	case declaration.NetworkBridge:
		if has != want {
			return false
		}
		for name := range c.NetworkSettings.Networks {
			if name != "bridge" && name != "podman" {
				return false
			}
		}
		return true
	}
	_, in := c.NetworkSettings.Networks[want]
	return in
}

func samePorts(want, has map[string][]binding) bool {
	flat := func(m map[string][]binding) (out []string) {
		for port, list := range m {
			for _, b := range list {
				out = append(out, port+" "+address(b.HostIP)+" "+b.HostPort)
			}
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(flat(want), flat(has))
}

// mounts compares what is declared, and looks for what of the machine is seen
// that is not: volumes that the image declares are its own.
func (d definition) mounts(c *inspected) (out []string) {
	declared := map[string]bool{}
	for _, m := range d.body.HostConfig.Mounts {
		declared[m.Target] = true
		same := false
		for _, h := range c.Mounts {
			same = same || h.Destination == m.Target && h.Type == m.Type && h.RW != m.ReadOnly &&
				(m.Type == "bind" && h.Source == m.Source || m.Type == "volume" && h.Name == m.Source)
		}
		if !same {
			out = append(out, "mount "+m.Target)
		}
	}
	for target, options := range d.body.HostConfig.Tmpfs {
		declared[target] = true
		has, ok := c.HostConfig.Tmpfs[target]
		if !ok || (options == "ro") != slices.Contains(strings.Split(has, ","), "ro") {
			out = append(out, "mount "+target)
		}
	}
	for _, h := range c.Mounts {
		if h.Type == "bind" && !declared[h.Destination] {
			out = append(out, fmt.Sprintf("mount %s (not declared)", h.Destination))
		}
	}
	return out
}

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestMetricsForAPersonAProgramAndACollector(t *testing.T) {
	m := newMachine(t)
	m.host(0, "apply", m.put("tmp/site.json", site))
	out, _ := m.host(0, "metrics")
	for _, line := range []string{"# TYPE mesh_host_up gauge\nmesh_host_up 0\n", "\nmesh_host_resources{outcome=\"applied\"} 2\n", "\nmesh_host_resources_not_as_declared 0\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("there is no %q in\n%s", line, out)
		}
	}
	file := filepath.Join(m.root, "tmp/mesh-host.prom")
	if out, said := m.host(0, "metrics", "--out", file); out+said != "" {
		t.Errorf("%q, %q", out, said)
	}
	b, err := os.ReadFile(file)
	fi, err2 := os.Stat(file)
	if err != nil || err2 != nil || string(b) != out || fi.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v, %v:\n%s", err, err2, fi.Mode(), b)
	}
	text, _ := m.host(0, "metrics", "--json")
	var families []struct {
		Name, Type, Help string
		Samples          []struct {
			Labels map[string]string
			Value  *float64
		}
	}
	if err := json.Unmarshal([]byte(text), &families); err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.Name == "mesh_host_resources" && f.Type == "gauge" && f.Help != "" && len(f.Samples) == 10 && f.Samples[0].Labels["outcome"] != "" && f.Samples[0].Value != nil {
			return
		}
	}
	t.Errorf("%s", text)
	m.host(fault.Failed, "metrics", "--out", filepath.Join(m.root, "none/x.prom"))
}

package apply

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// floor is what there is to do at least: copy; read, hash and compare.
func floor(b *testing.B, dir string, t tree) work {
	b.Helper()
	t.write(b, filepath.Join(dir, "master"))
	run(b, dir, nil, "sh", "-c", "cd master && find srv -type f -exec sha256sum {} + > ../sums")
	return work{name: "(cp; sha256sum --check)", version: firstLine(b, "cp", "--version"),
		first: []string{"cp", "-r", "--preserve=mode", "master/srv", "into/"},
		again: []string{"sh", "-c", "cd into && sha256sum --quiet --check ../sums"}}
}

// cfengine is two works: the contents in the policy, as in the declaration, and
// copied from a directory in one promise. Its state is below dir.
func cfengine(b *testing.B, dir string, t tree) []work {
	b.Helper()
	if !here("cf-agent", "cf-promises", "cf-key") {
		return nil
	}
	home, into := filepath.Join(dir, "cfengine"), filepath.Join(dir, "into")
	for _, d := range []string{"inputs", "outputs", "state", "modules", "ppkeys", "plugins", "lastseen", "reports"} {
		must(b, os.MkdirAll(filepath.Join(home, d), 0o700))
	}
	must(b, os.Symlink("/usr/bin", filepath.Join(home, "bin"))) // where it looks for cf-promises
	env := []string{"CFENGINE_TEST_OVERRIDE_WORKDIR=" + home}
	run(b, dir, env, "cf-key")

	const head = `body common control { bundlesequence => { "main" }; }
body perms p { mode => "640"; rxdirs => "true"; }
bundle agent main { files:
`
	var content strings.Builder
	content.WriteString(head)
	for i := range t.files {
		fmt.Fprintf(&content, "%q content => %q, create => \"true\", perms => p;\n", filepath.Join(into, t.name(i)), t.text(i))
	}
	content.WriteString("}\n")
	t.write(b, filepath.Join(dir, "master"))
	folder := head + fmt.Sprintf(`%q copy_from => d, depth_search => all, file_select => plain, perms => p;
}
body copy_from d { source => %q; compare => "digest"; copy_backup => "false"; }
body depth_search all { depth => "inf"; }
body file_select plain { file_types => { "plain" }; file_result => "file_types"; }
`, filepath.Join(into, "srv"), filepath.Join(dir, "master/srv"))

	version := strings.TrimPrefix(firstLine(b, "cf-agent", "--version"), "CFEngine Core ")
	var out []work
	for _, p := range []struct{ name, policy string }{{"content", content.String()}, {"copy_from", folder}} {
		file := filepath.Join(dir, p.name+".cf")
		must(b, os.WriteFile(file, []byte(p.policy), 0o600))
		// Without its locks: they would have it do nothing for a minute.
		agent := []string{"cf-agent", "--no-lock", "--file", file}
		out = append(out, work{name: "CFEngine (" + p.name + ")", version: version, first: agent, again: agent, env: env, looks: true})
	}
	return out
}

func puppet(b *testing.B, dir string, t tree) []work {
	b.Helper()
	// More takes it minutes.
	if !here("puppet") || t.files > 1000 {
		return nil
	}
	var manifest strings.Builder
	for i := range t.files {
		fmt.Fprintf(&manifest, "file { '%s': content => '%s', mode => '0640' }\n", filepath.Join(dir, "into", t.name(i)), t.text(i))
	}
	must(b, os.WriteFile(filepath.Join(dir, "manifest.pp"), []byte(manifest.String()), 0o600))
	apply := []string{"puppet", "apply"}
	for _, place := range []string{"confdir", "codedir", "vardir", "rundir", "logdir", "publicdir"} {
		apply = append(apply, "--"+place, filepath.Join(dir, "puppet", place))
	}
	must(b, os.MkdirAll(filepath.Join(dir, "puppet"), 0o700))
	apply = append(apply, "manifest.pp")
	return []work{{name: "Puppet", version: firstLine(b, "puppet", "--version"), first: apply, again: apply, looks: true}}
}

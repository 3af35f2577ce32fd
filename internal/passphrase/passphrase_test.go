package passphrase

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestPassphraseFile(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{"a b\n": "a b", "a b": "a b", "a\r\n": "a", "a\n\n": "a\n", "\n": "", "": ""} {
		file := filepath.Join(dir, "p")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), Source{File: file}, false)
		if string(got) != want || (want == "") != (err != nil) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		t.Setenv("NOX_PASSPHRASE_FILE", file)
		if got, _ := Read(t.Context(), Source{}, true); string(got) != want {
			t.Errorf("%q by variable: %q", text, got)
		}
		for what, from := range map[string]Source{"flag": {File: "-"}, "variable": {}} {
			t.Setenv("NOX_PASSPHRASE_FILE", "-")
			from.In = strings.NewReader(text)
			if got, _ := Read(t.Context(), from, true); string(got) != want {
				t.Errorf("%q on standard input by %s: %q", text, what, got)
			}
		}
	}
}

func TestThereMayBeNoStandardInput(t *testing.T) {
	if got, err := Read(t.Context(), Source{File: "-"}, false); err == nil || fault.RemedyOf(err) == "" {
		t.Errorf("%q, %v", got, err)
	}
}

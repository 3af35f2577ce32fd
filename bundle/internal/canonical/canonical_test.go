package canonical

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

type doc struct {
	B     int               `json:"b"`
	A     string            `json:"a,omitempty"`
	Inner []struct{ X int } `json:"-"`
	Deep  *struct {
		Name string `json:"name"`
	} `json:"deep,omitempty"`
	Map map[string]string `json:"map,omitempty"`
}

func TestMarshalSortsKeysAndEscapesNothing(t *testing.T) {
	got, err := Marshal(doc{B: 1, A: "<&>é"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":"<&>é","b":1}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOneDocumentHasOneSpelling(t *testing.T) {
	for _, c := range []struct{ name, in, err string }{
		{"canonical", `{"a":"x","b":1}`, ""},
		{"order", `{"b":1,"a":"x"}`, "not canonical"},
		{"white space", `{"a":"x", "b":1}`, "not canonical"},
		{"final newline", "{\"a\":\"x\",\"b\":1}\n", "not canonical"},
		{"duplicate", `{"a":"x","a":"x","b":1}`, "there twice"},
		{"duplicate by escape", `{"a":"x","\u0061":"y","b":1}`, "there twice"},
		{"duplicate in a map", `{"b":1,"map":{"k":"1","k":"2"}}`, "there twice"},
		{"duplicate where nobody looks", `{"b":1,"zz":[{"q":1,"q":2}]}`, "there twice"},
		{"case", `{"A":"x","b":1}`, "must be spelled"},
		{"deep case", `{"b":1,"deep":{"Name":"x"}}`, "must be spelled"},
		{"unknown key", `{"a":"x","b":1,"c":2}`, "not canonical"},
		{"bom", "\xef\xbb\xbf" + `{"b":1}`, "byte order mark"},
		{"not utf-8", "{\"a\":\"\xff\",\"b\":1}", "not UTF-8"},
		{"lone surrogate", `{"a":"\ud800","b":1}`, "not canonical"},
		{"trailing", `{"b":1}{}`, "follows"},
		{"trailing bracket", `{"b":1}]`, "follows"},
		{"exponent", `{"b":1e0}`, "cannot unmarshal"},
		{"cut", `{"b":1`, "unexpected"},
		{"empty", ``, "unexpected"},
		{"deep", strings.Repeat("[", 100) + strings.Repeat("]", 100), "nested"},
		{"null", `null`, "not canonical"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d doc
			err := Unmarshal([]byte(c.in), &d)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, want %q", err, c.err)
			}
		})
	}
}

func TestForeignLetsOthersWriteAsTheyLike(t *testing.T) {
	var d doc
	if err := Foreign([]byte(" {\"new\": [1, {}],\n \"b\": 2}\n"), &d); err != nil || d.B != 2 {
		t.Errorf("%v %+v", err, d)
	}
}

func TestT39OnlyOneSpellingOfADigest(t *testing.T) {
	good := "sha256:" + strings.Repeat("ab", 32)
	if !Digest(digest.Digest(good)) {
		t.Error("a good one is refused")
	}
	for _, bad := range []string{
		"", "sha256:", good[:70], good + "a", strings.ToUpper(good), "SHA256:" + good[7:], " " + good, good + "\n",
		"sha512:" + strings.Repeat("ab", 64), "sha256:" + strings.Repeat("../", 21) + "a", good[7:], "sha256:" + strings.Repeat("é", 32),
	} {
		if Digest(digest.Digest(bad)) {
			t.Errorf("%q passes", bad)
		}
	}
}

func FuzzUnmarshalIsOneToOne(f *testing.F) {
	f.Add([]byte(`{"a":"x","b":1}`))
	f.Add([]byte(`{"b":1,"deep":{"name":"x"},"map":{"k":"v"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d doc
		if Unmarshal(b, &d) != nil {
			return
		}
		// Who ignores our rules must read the same.
		var tree any
		if err := json.Unmarshal(b, &tree); err != nil {
			t.Fatal(err)
		}
		again, err := Marshal(d)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%q is read, and written %q (%v)", b, again, err)
		}
	})
}

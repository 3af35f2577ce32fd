package apply

import (
	"fmt"
	"reflect"
	"testing"
)

func TestWaves(t *testing.T) {
	f := func(path string, after ...string) member {
		return member{sort: "file", id: path, path: path, after: after}
	}
	alone := func(id string, after ...string) member { return member{id: id, after: after} }
	link := func(path string) member { return member{sort: "file symlink", id: path, path: path} }
	for name, c := range map[string]struct {
		list []member
		want [][]int
	}{
		"nothing":                             {nil, nil},
		"neighbours go together":              {[]member{f("/a"), f("/b"), f("/c")}, [][]int{{0, 1, 2}}},
		"other kinds go alone":                {[]member{alone("p"), alone("q"), f("/a"), f("/b"), alone("r")}, [][]int{{0}, {1}, {2, 3}, {4}}},
		"after one of them":                   {[]member{f("/a"), f("/b", "/a"), f("/c"), f("/d", "/b")}, [][]int{{0, 2}, {1}, {3}}},
		"after what is elsewhere":             {[]member{f("/a", "p"), f("/b", "p")}, [][]int{{0, 1}}},
		"in a directory that is one of them":  {[]member{f("/d"), f("/d/a"), f("/d/b"), f("/e"), f("/d/c/x")}, [][]int{{0, 3}, {1, 2, 4}}},
		"a directory that others are in":      {[]member{f("/d/a"), f("/d/b/c"), f("/d")}, [][]int{{0, 1}, {2}}},
		"a name that begins alike is no path": {[]member{f("/d"), f("/dd"), f("/d.d/x")}, [][]int{{0, 1, 2}}},
		"deep":                                {[]member{f("/a"), f("/a/b"), f("/a/b/c"), f("/a/b/c/d")}, [][]int{{0}, {1}, {2}, {3}}},
		"symlinks apart from what goes that way": {
			[]member{f("/a"), link("/l"), link("/m"), f("/l/x"), f("/m/x")}, [][]int{{0}, {1, 2}, {3, 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := waves(c.list); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	t.Run("not too many", func(t *testing.T) {
		var many []member
		for i := range maxWave + 1 {
			many = append(many, f(fmt.Sprintf("/%d", i)))
		}
		if got := waves(many); len(got) != 2 || len(got[0]) != maxWave || got[1][0] != maxWave {
			t.Errorf("%d waves", len(got))
		}
	})
}

func TestRunsKeepTheOrder(t *testing.T) {
	f := func(path string) member { return member{sort: "file", id: path, path: path} }
	got := runs([]member{f("/d/a"), f("/e"), f("/d"), f("/x"), f("/y/z"), f("/y"), {id: "p"}})
	if want := [][]int{{0, 1}, {2, 3, 4}, {5}, {6}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

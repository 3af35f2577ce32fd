package declaration

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A rule says what a text may be. The pattern and the words are in the JSON
// Schema as they are here; check may know more than a schema can say.
type rule struct {
	// what a good text is: "a name (…)".
	what string
	// like is a good one, for whoever wrote something that is no text at all.
	like    string
	pattern *regexp.Regexp
	// max is in bytes; 0 is any.
	max   int
	empty bool
	// words are all there are; what is then not needed.
	words []string
	// check returns what is wrong, or "".
	check func(string) string
	// more is what the JSON Schema says beyond that.
	more node
}

func (r *rule) fault(s string) string {
	switch {
	case s == "" && r.empty:
		return ""
	case s == "":
		return "is empty"
	case r.max > 0 && len(s) > r.max:
		return fmt.Sprintf("is longer than %d bytes", r.max)
	case r.words != nil && !slices.Contains(r.words, s) && r.what != "":
		return fmt.Sprintf("%s is not %s (%s)", shown(s), r.what, or(r.words))
	case r.words != nil && !slices.Contains(r.words, s):
		return fmt.Sprintf("%s is not %s", shown(s), or(r.words))
	case r.pattern != nil && !r.pattern.MatchString(s):
		return fmt.Sprintf("%s is not %s", shown(s), r.what)
	case r.check != nil:
		return r.check(s)
	}
	return ""
}

// text says that v is no text, or what is wrong with it.
func (r *rule) text(a at, v any) (string, bool) {
	s, ok := v.(string)
	if !ok && r.like != "" {
		a.fault("is not a string such as %q", r.like)
		return "", false
	}
	if !ok {
		a.fault("is not a string")
		return "", false
	}
	if why := r.fault(s); why != "" {
		a.fault("%s", why)
	}
	return s, true
}

func (r *rule) schema() node {
	n := node{"type": "string"}
	switch {
	case r.words != nil:
		return node{"enum": r.words}
	case r.pattern != nil:
		n["pattern"] = r.pattern.String()
	case !r.empty:
		n["minLength"] = 1
	}
	if r.max > 0 {
		n["maxLength"] = r.max
	}
	if r.like != "" {
		n["examples"] = []string{r.like}
	}
	maps.Copy(n, r.more)
	return n
}

// or lists words: "a, b or c".
func or(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

package declaration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// JSONSchema is the JSON Schema (2020-12) of a declaration, for editors and for
// whoever writes one by program. It is made of the same fields as the parser. What it
// accepts may still break a rule that is no matter of shape: a name that is
// there twice, a circle, the host's own.
func JSONSchema() []byte {
	doc := shape((&Declaration{}).fields())
	doc["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	doc["$id"] = "https://github.com/nox-mesh/nox-mesh/declaration.schema.json"
	doc["title"] = "Declaration"
	doc["description"] = "What a machine shall have. It is complete: what the host owns and the declaration does not name is removed."
	defs := node{}
	for t, k := range kinds {
		defs[string(t)] = k.shape(t)
	}
	doc["$defs"] = defs
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("internal error: the JSON Schema cannot be written: %v", err))
	}
	return append(b, '\n')
}

// shape is the JSON Schema of a resource of type t.
func (k kind) shape(t Type) node {
	var r Resource
	b := k.make(&r)
	n := shape(slices.Concat(k.takes(r.fields()), b.fields()))
	properties, _ := n["properties"].(node)
	properties["type"] = node{"const": t}
	n["title"] = title(string(t))
	maps.Copy(n, b.rules())
	return n
}

// schema picks the shape by the type, so that an editor tells what is wrong
// with a file and not that it is no package either.
func (r resources) schema() node {
	var byType []node
	for _, t := range knownTypes() {
		byType = append(byType, node{
			"if":   node{"properties": node{"type": node{"const": t}}, "required": []string{"type"}},
			"then": node{"$ref": "#/$defs/" + string(t)},
		})
	}
	return node{
		"type": "array", "maxItems": MaxResources,
		"items": node{
			"type": "object", "required": []string{"id", "type"},
			"properties": node{"type": node{"enum": knownTypes()}},
			"allOf":      byType,
		},
	}
}

func required(name string) node { return node{"required": []string{name}} }

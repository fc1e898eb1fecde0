package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// LenientUpgrade is the default Upgrade, to be embedded in a resource. It reads
// the state of any older version or other provider by the types of the schema:
// attributes that the schema lacks are dropped; numbers, strings and booleans
// are converted into each other where nothing is lost; an object is taken out
// of a list that holds it alone, and put into one. What still does not fit
// becomes null, and one warning names all such paths. Only a state that is no
// JSON object is an error, as errors here block every plan.
type LenientUpgrade struct{}

// Upgrade implements Resource.
func (LenientUpgrade) Upgrade(_ context.Context, req UpgradeRequest) UpgradeResponse {
	var resp UpgradeResponse
	var stored tree.Value
	err := json.Unmarshal(req.JSON, &stored)
	if err == nil && stored.Kind() != tree.Object {
		err = fmt.Errorf("it is %s, not an object", withArticle(stored.Kind()))
	}
	if err != nil {
		resp.Diagnostics.AddError(nil, req.Schema.TypeName+": the stored state cannot be read",
			fmt.Sprintf("Read the state of schema version %d: %v. Restore a backup of the state, or remove the object from the state and import it again.", req.Version, err))
		return resp
	}
	var problems []*valueError
	resp.State = coerce(stored, req.Schema.Type, nil, &problems)
	if len(problems) > 0 {
		resp.Diagnostics.AddWarning(nil, objectName(req.Schema.TypeName, stored)+": parts of the stored state were not understood",
			fmt.Sprintf("The state was written by schema version %d or by another provider. These parts have another shape and are left out; "+
				"the next refresh reads the object from its host:\n%s", req.Version, listProblems(problems)))
	}
	return resp
}

// objectName names an object for a message, as well as its stored state does.
func objectName(typeName string, stored tree.Value) string {
	for _, attr := range []string{"name", "id"} {
		if s := stored.Attr(attr).Str(); s != "" {
			return typeName + " " + s
		}
	}
	return typeName
}

func listProblems(problems []*valueError) string {
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "  - %s\n", p)
	}
	return b.String()
}

// coerce makes a value fit a type. What cannot fit becomes null and is added
// to the problems. Unknown values stay.
func coerce(v tree.Value, t *tree.Type, at tree.Path, problems *[]*valueError) tree.Value {
	switch {
	case !v.IsKnown():
		return v
	case t.Kind == tree.List && v.Kind() == tree.List:
		elems := make([]tree.Value, v.Len())
		for i, e := range v.Elems() {
			elems[i] = coerce(e, t.Elem, at.Elem(i, ""), problems)
		}
		return tree.ListValue(elems)
	case t.Kind == tree.List:
		return tree.ListValue([]tree.Value{coerce(v, t.Elem, at.Elem(0, ""), problems)})
	case v.Kind() == tree.List:
		switch v.Len() {
		case 0:
			return tree.NullValue
		case 1:
			return coerce(v.Elems()[0], t, at, problems)
		}
		return misfit(fmt.Sprintf("%d elements where there can be one", v.Len()), at, problems)
	case t.Kind == tree.Object && v.Kind() == tree.Object:
		attrs := make(map[string]tree.Value, v.Len())
		for _, name := range v.Names() {
			if a := t.Attrs[name]; a != nil {
				attrs[name] = coerce(v.Attr(name), a.Type, at.Attr(name), problems)
			}
		}
		return tree.ObjectValue(attrs)
	case t.Kind == tree.Object || v.Kind() == tree.Object:
		return misfit(fmt.Sprintf("%s instead of %s", withArticle(v.Kind()), withArticle(t)), at, problems)
	}
	out, ok := coerceScalar(v, t.Kind)
	if !ok {
		return misfit(fmt.Sprintf("this %s is no %s", v.Kind(), t), at, problems)
	}
	return out
}

func misfit(reason string, at tree.Path, problems *[]*valueError) tree.Value {
	*problems = append(*problems, &valueError{at, reason})
	return tree.NullValue
}

// coerceScalar converts between booleans, numbers and strings. The empty
// string, which older providers store for "not set", is null elsewhere.
func coerceScalar(v tree.Value, want tree.Kind) (tree.Value, bool) {
	if v.Kind() == tree.Number && !storable(v.Num()) {
		return tree.NullValue, false
	}
	switch {
	case v.Kind() == want:
		return v, true
	case want == tree.String:
		return tree.StringValue(v.String()), true
	case v.Kind() == tree.String && v.Str() == "":
		return tree.NullValue, true
	case want == tree.Number && v.Kind() == tree.String:
		n, err := parseNumber(v.Str())
		return n, err == nil
	case want == tree.Number && v.Bool():
		return tree.IntValue(1), true
	case want == tree.Number:
		return tree.IntValue(0), true
	}
	switch v.String() { // of a number or, quoted, a string
	case "1", `"1"`, `"true"`, `"yes"`, `"on"`:
		return tree.BoolValue(true), true
	case "0", `"0"`, `"false"`, `"no"`, `"off"`:
		return tree.BoolValue(false), true
	}
	return tree.NullValue, false
}

// decodeJSON reads a value that came as JSON. The cores send MessagePack, but
// the protocol allows both.
func (c *codec) decodeJSON(data []byte) (tree.Value, error) {
	var v tree.Value
	if err := json.Unmarshal(data, &v); err != nil {
		return tree.NullValue, err
	}
	var problems []*valueError
	v = coerce(v, c.typ, nil, &problems)
	if len(problems) > 0 {
		return tree.NullValue, problems[0]
	}
	return v, nil
}

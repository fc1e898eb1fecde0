package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Values that are not shown.
type (
	unknown struct{} // a plan does not know it
	secret  struct{}
)

// compare tells each leaf in which two values of a plan differ.
func compare(at string, before, after, notKnown any, tell func(at string, before, after any)) {
	if notKnown == true {
		tell(at, before, unknown{})
		return
	}
	b, beforeIsObject := before.(map[string]any)
	a, afterIsObject := after.(map[string]any)
	if (beforeIsObject || before == nil) && (afterIsObject || after == nil) && (beforeIsObject || afterIsObject) {
		hidden, _ := notKnown.(map[string]any)
		for _, k := range keys(b, a, hidden) {
			compare(strings.TrimPrefix(at+"."+k, "."), b[k], a[k], hidden[k], tell)
		}
		return
	}
	bl, beforeIsList := before.([]any)
	al, afterIsList := after.([]any)
	if (beforeIsList || before == nil) && (afterIsList || after == nil) && (beforeIsList || afterIsList) {
		hidden, _ := notKnown.([]any)
		for i := range max(len(bl), len(al)) {
			compare(fmt.Sprintf("%s[%d]", at, i), element(bl, i), element(al, i), element(hidden, i), tell)
		}
		return
	}
	if !reflect.DeepEqual(before, after) {
		tell(at, before, after)
	}
}

// keys are those of several objects, each once.
func keys(objects ...map[string]any) []string {
	all := map[string]bool{}
	for _, o := range objects {
		for k := range o {
			all[k] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func element(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// lookUp finds a leaf that compare told, or what is said of all above it.
func lookUp(v any, at string) any {
	for _, step := range strings.FieldsFunc(at, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			i := 0
			if _, err := fmt.Sscan(step, &i); err != nil {
				return nil
			}
			v = element(in, i)
		default:
			return v
		}
	}
	return v
}

// shown writes a value for a person.
func shown(v any) string {
	switch v.(type) {
	case nil:
		return "absent"
	case unknown:
		return "not known before the apply"
	case secret:
		return "(sensitive)"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// namespaces lists those of the elements of a piece of XML, each once.
func namespaces(text string) (out []string) {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for depth := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return out
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 && t.Name.Space != "" && !slices.Contains(out, t.Name.Space) {
				out = append(out, t.Name.Space)
			}
			depth++
		case xml.EndElement:
			depth--
		}
	}
}

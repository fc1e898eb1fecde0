package spec

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Equal says whether two values of a field mean the same though they differ to
// the letter. A number that has a unit comes in bytes.
func (r *Root) Equal(pattern string, a, b tree.Value) bool {
	if a.IsUnknown() || b.IsUnknown() {
		return false
	}
	x, y := reduce(pattern, a), reduce(pattern, b)
	if tree.Equal(x, y) || r.meansAbsent(pattern, x) && r.meansAbsent(pattern, y) {
		return true
	}
	if x.Kind() == tree.Number && y.Kind() == tree.Number {
		return r.scales[pattern].standard == "KiB" && (roundsTo(x, y) || roundsTo(y, x))
	}
	if x.IsKnown() && x.Kind() != tree.String || y.IsKnown() && y.Kind() != tree.String {
		return false
	}
	for _, row := range pairs {
		if endsIn(pattern, row.suffix) && row.equal(x.Str(), y.Str()) {
			return true
		}
	}
	return false
}

// Canonical is a text of a field as libvirt would spell it, as far as a table
// knows; identities are compared so. What is chosen by libvirt is "".
func (r *Root) Canonical(pattern, text string) string {
	for _, row := range spellings {
		if endsIn(pattern, row.suffix) {
			return row.canon(text)
		}
	}
	return text
}

// reduce brings a value to one spelling. One that means the same as none is
// null.
func reduce(pattern string, v tree.Value) tree.Value {
	if v.Kind() == tree.String {
		for _, row := range spellings {
			if endsIn(pattern, row.suffix) {
				v = tree.StringValue(row.canon(v.Str()))
			}
		}
	}
	for _, row := range standards {
		if endsIn(pattern, row.suffix) && tree.Equal(v, row.value) {
			return tree.NullValue
		}
	}
	return v
}

func endsIn(pattern, suffix string) bool {
	return pattern == suffix || strings.HasSuffix(pattern, "."+suffix)
}

// meansAbsent says whether the XML would be the same without the value: an
// element that is only there or not, a number or text that libvirtxml leaves
// out when it is zero, an object or list with nothing in it.
func (r *Root) meansAbsent(pattern string, v tree.Value) bool {
	switch v.Kind() {
	case tree.Null:
		return true
	case tree.Bool:
		f := r.Fields[pattern]
		return !v.Bool() && f != nil && f.absentWhenZero
	case tree.Number:
		f := r.Fields[pattern]
		return v.Num().Sign() == 0 && f != nil && f.absentWhenZero
	case tree.String:
		return v.Str() == ""
	case tree.List, tree.Object:
		return v.Len() == 0
	}
	return false
}

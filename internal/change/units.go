package change

import (
	"math/big"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// factors are libvirt's units of memory and storage, in bytes, lower case.
// https://libvirt.org/formatdomain.html#memory-allocation
var factors = func() map[string]int64 {
	f := map[string]int64{"": 1, "b": 1, "byte": 1, "bytes": 1}
	binary, decimal := int64(1), int64(1)
	for _, letter := range []string{"k", "m", "g", "t", "p", "e"} {
		binary, decimal = binary*1024, decimal*1000
		f[letter], f[letter+"ib"], f[letter+"b"] = binary, binary, decimal
	}
	return f
}()

// factorOf returns the bytes of a unit, 0 for a unit that libvirt does not know.
func factorOf(unit string) int64 { return factors[strings.ToLower(unit)] }

// KnownUnit says whether libvirt knows the unit.
func KnownUnit(unit string) bool { return unit != "" && factorOf(unit) != 0 }

// Bytes multiplies a number by its unit; a null or unknown unit counts as the
// standard one. It returns null if the number or the unit means nothing.
func Bytes(amount, unit tree.Value, standard string) tree.Value {
	name := standard
	if unit.IsKnown() {
		name = unit.Str()
	}
	f := factorOf(name)
	if amount.Num() == nil || f == 0 {
		return tree.NullValue
	}
	factor := new(big.Float).SetInt64(f)
	return tree.NumberValue(new(big.Float).SetPrec(amount.Num().Prec()).Mul(amount.Num(), factor))
}

// InUnit is the inverse of Bytes: how many of the unit an amount in bytes is,
// null if that is no whole number.
func InUnit(bytes, unit tree.Value, standard string) tree.Value {
	amount := inUnit(bytes, unit, standard)
	if n := amount.Num(); n == nil || !n.IsInt() {
		return tree.NullValue
	}
	return amount
}

// inUnit is InUnit with fractions.
func inUnit(bytes, unit tree.Value, standard string) tree.Value {
	one := Bytes(tree.IntValue(1), unit, standard)
	if bytes.Num() == nil || one.IsNull() {
		return tree.NullValue
	}
	return tree.NumberValue(new(big.Float).Quo(bytes.Num(), one.Num()))
}

// unitOf names the unit attribute of a number, if the type has it.
func (r *Rules) unitOf(typ *tree.Type, path tree.Path) (attr, standard string) {
	if r.Unit == nil {
		return "", ""
	}
	attr, standard = r.Unit(path.Pattern())
	if attr != "" && typ.Attrs[attr] == nil {
		return "", ""
	}
	return attr, standard
}

// quantity is a number of an object and the attribute that holds its unit.
// They are one value: a unit without its number means nothing, and is never
// compared or changed by itself.
type quantity struct{ name, unit, standard string }

// quantities lists those of an object type. names are its attributes; of those
// that are no part of a quantity, the rest is returned.
func (r *Rules) quantities(typ *tree.Type, path tree.Path) (all []quantity, rest []string) {
	names := typ.Names()
	part := map[string]bool{}
	for _, name := range names {
		if unit, standard := r.unitOf(typ, path.Attr(name)); unit != "" {
			all = append(all, quantity{name, unit, standard})
			part[name], part[unit] = true, true
		}
	}
	if len(all) == 0 {
		return nil, names
	}
	for _, name := range names {
		if !part[name] {
			rest = append(rest, name)
		}
	}
	return all, rest
}

// of returns the amount that an object has, in bytes; null if it has none.
func (q quantity) of(v tree.Value) tree.Value {
	return Bytes(v.Attr(q.name), v.Attr(q.unit), q.standard)
}

// sameIn says whether two objects have the quantity to the letter.
func (q quantity) sameIn(a, b tree.Value) bool {
	return tree.Equal(a.Attr(q.name), b.Attr(q.name)) && tree.Equal(a.Attr(q.unit), b.Attr(q.unit))
}

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

func (r *Rules) scale(v tree.Value, name, unit, standard string) tree.Value {
	return Bytes(v.Attr(name), v.Attr(unit), standard)
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

// unitsOf names the attributes of an object that are units of others.
func (r *Rules) unitsOf(typ *tree.Type, path tree.Path) map[string]bool {
	units := map[string]bool{}
	for name := range typ.Attrs {
		if unit, _ := r.unitOf(typ, path.Attr(name)); unit != "" {
			units[unit] = true
		}
	}
	return units
}

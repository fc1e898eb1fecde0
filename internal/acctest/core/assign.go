package core

import (
	"hash/fnv"
	"slices"
)

// Assign shares out the cases: it returns the core on which the case named test runs, out of
// those available that can run it (only; empty means any). It depends on nothing but its
// arguments, so processes that never heard of each other agree. The answer is "" if no
// available core can run the case.
//
// A hash of the name alternates the cores well enough and keeps a case on its core when other
// cases come or go.
func Assign(test string, available, only []string) string {
	able := slices.DeleteFunc(slices.Clone(available), func(name string) bool {
		return len(only) > 0 && !slices.Contains(only, name)
	})
	if len(able) == 0 {
		return ""
	}
	slices.Sort(able)
	sum := fnv.New64a()
	sum.Write([]byte(test))
	// The low bits of FNV-1a hardly mix: the lowest is the parity of the lowest bits of all bytes.
	mixed := sum.Sum64()
	mixed ^= mixed >> 33
	return able[mixed%uint64(len(able))]
}

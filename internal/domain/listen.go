package domain

import (
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// listenAttrs are the attributes in which libvirt repeats the first listener of
// a display: its address, or its socket.
var listenAttrs = []string{"listen", "socket"}

// followListen keeps what libvirt says twice together: where a display listens
// stands in its own attribute, and in its first listener. Whichever of the two
// changes, libvirt makes the other from it; left as it was, the old one would be
// refused, or come back.
func followListen(before, wanted tree.Value) tree.Value {
	was := map[string]tree.Value{} // by kind: QEMU has one display of each
	for _, display := range before.At("devices.graphics").Elems() {
		for _, kind := range display.Names() {
			was[kind] = display.Attr(kind)
		}
	}
	elems := wanted.At("devices.graphics").Elems()
	out, changed := make([]tree.Value, len(elems)), false
	for i, display := range elems {
		out[i] = display
		for _, kind := range display.Names() {
			now := display.Attr(kind)
			if next := oneListener(was[kind], now); !tree.Equal(next, now) {
				out[i], changed = out[i].With(kind, next), true
			}
		}
	}
	if !changed {
		return wanted
	}
	return wanted.SetAt("devices.graphics", tree.ListValue(out))
}

// oneListener drops the view of the first listener that did not change with the
// other.
func oneListener(was, now tree.Value) tree.Value {
	if was.Kind() != tree.Object || now.Kind() != tree.Object {
		return now
	}
	first := func(display tree.Value) tree.Value {
		if list := display.Attr("listeners").Elems(); len(list) > 0 {
			return list[0]
		}
		return tree.NullValue
	}
	for _, attr := range listenAttrs {
		moved := !tree.Equal(was.Attr(attr), now.Attr(attr))
		listens := !tree.Equal(first(was), first(now))
		switch {
		case listens && !moved && !now.Attr(attr).IsNull():
			now = now.With(attr, tree.NullValue)
		case moved && !listens && now.Attr("listeners").Len() == 1:
			now = now.With("listeners", tree.NullValue)
		}
	}
	return now
}

package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// codec reads and writes the values of one type. It is a compiled tree.Type:
// attributes are in the order in which the wire has them, with their names
// ready as bytes.
type codec struct {
	typ   *tree.Type
	elem  *codec // of a list
	attrs []codecAttr
	index map[string]int // into attrs
}

type codecAttr struct {
	name  string
	key   []byte // the name in MessagePack
	codec *codec
}

func newCodec(t *tree.Type) *codec {
	c := &codec{typ: t}
	switch t.Kind {
	case tree.List:
		c.elem = newCodec(t.Elem)
	case tree.Object:
		c.index = make(map[string]int, len(t.Attrs))
		for i, name := range t.Names() {
			key, err := msgpack.Marshal(name)
			if err != nil {
				panic(fmt.Sprintf("protocol: encode the attribute name %q: %v", name, err)) // writing to memory cannot fail
			}
			c.index[name] = i
			c.attrs = append(c.attrs, codecAttr{name, key, newCodec(t.Attrs[name].Type)})
		}
	}
	return c
}

// valueError says that a value does not fit its type.
type valueError struct {
	path   tree.Path
	reason string
}

func (e *valueError) Error() string {
	if len(e.path) == 0 {
		return e.reason
	}
	return e.path.String() + ": " + e.reason
}

// withArticle names a kind or type in a sentence.
func withArticle(kind fmt.Stringer) string {
	name := kind.String()
	if name[0] == 'o' {
		return "an " + name
	}
	return "a " + name
}

// below puts the step that leads to the failed value in front of its path. So
// paths are only made when something fails.
func below(step tree.Step, err error) error {
	var v *valueError
	if !errors.As(err, &v) {
		v = &valueError{reason: err.Error()}
	}
	return &valueError{append(tree.Path{step}, v.path...), v.reason}
}

// decode reads a value from the wire. A missing value is an error, as the
// protocol has a null of its own.
func (c *codec) decode(d *tfprotov6.DynamicValue) (tree.Value, error) {
	switch {
	case d == nil || d.MsgPack == nil && d.JSON == nil:
		return tree.NullValue, errors.New("the request lacks a value")
	case d.MsgPack == nil:
		return c.decodeJSON(d.JSON)
	}
	return c.decodeMsgpack(msgpack.NewDecoder(bytes.NewReader(d.MsgPack)))
}

func (c *codec) decodeMsgpack(d *msgpack.Decoder) (tree.Value, error) {
	code, err := d.PeekCode()
	switch {
	case err != nil:
		return tree.NullValue, err
	case msgpcode.IsExt(code):
		// Extensions are unknown values. What else is known about one
		// (that it is not null, a prefix) is of no use here.
		return tree.UnknownValue, d.Skip()
	case code == msgpcode.Nil:
		return tree.NullValue, d.Skip()
	}
	switch c.typ.Kind {
	case tree.Bool:
		b, err := d.DecodeBool()
		return tree.BoolValue(b), err
	case tree.Number:
		return decodeNumber(d, code)
	case tree.String:
		s, err := d.DecodeString()
		return tree.StringValue(s), err
	case tree.List:
		return c.decodeList(d)
	}
	return c.decodeObject(d)
}

func (c *codec) decodeList(d *msgpack.Decoder) (tree.Value, error) {
	n, err := d.DecodeArrayLen()
	if err != nil {
		return tree.NullValue, err
	}
	var elems []tree.Value // grows as elements arrive: the length is not to be trusted
	for i := range n {
		e, err := c.elem.decodeMsgpack(d)
		if err != nil {
			return tree.NullValue, below(tree.Step{Index: i}, err)
		}
		elems = append(elems, e)
	}
	return tree.ListValue(elems), nil
}

func (c *codec) decodeObject(d *msgpack.Decoder) (tree.Value, error) {
	n, err := d.DecodeMapLen()
	if err != nil {
		return tree.NullValue, err
	}
	if n != len(c.attrs) {
		return tree.NullValue, fmt.Errorf("the value has %d attributes, the schema %d", n, len(c.attrs))
	}
	attrs := map[string]tree.Value{}
	seen := make([]bool, n)
	for range n {
		name, err := d.DecodeString()
		if err != nil {
			return tree.NullValue, err
		}
		i, ok := c.index[name]
		if !ok {
			return tree.NullValue, fmt.Errorf("the schema has no attribute %q", name)
		}
		if seen[i] {
			return tree.NullValue, fmt.Errorf("the value has the attribute %q twice", name)
		}
		seen[i] = true
		a := &c.attrs[i]
		v, err := a.codec.decodeMsgpack(d)
		if err != nil {
			return tree.NullValue, below(tree.Step{Attr: a.name}, err)
		}
		if !v.IsNull() {
			attrs[a.name] = v
		}
	}
	return tree.ObjectValue(attrs), nil
}

func decodeNumber(d *msgpack.Decoder, code byte) (tree.Value, error) {
	switch {
	case code == msgpcode.Uint8, code == msgpcode.Uint16, code == msgpcode.Uint32, code == msgpcode.Uint64:
		u, err := d.DecodeUint64()
		return tree.UintValue(u), err
	case msgpcode.IsFixedNum(code), code >= msgpcode.Int8 && code <= msgpcode.Int64:
		i, err := d.DecodeInt64()
		return tree.IntValue(i), err
	case code == msgpcode.Float, code == msgpcode.Double:
		f, err := d.DecodeFloat64()
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return tree.NullValue, errors.Join(err, fmt.Errorf("%v is no number that can be stored", f))
		}
		return tree.NumberValue(new(big.Float).SetPrec(precision).SetFloat64(f)), nil
	}
	s, err := d.DecodeString()
	if err != nil {
		return tree.NullValue, err
	}
	return parseNumber(s)
}

// The protocol's numbers have 512 bits; maxExponent is far beyond what they
// are used for, and keeps "1e999999999" from being written out in digits.
const (
	precision   = 512
	maxExponent = 1 << 14
)

// parseNumber reads a decimal number as the cores do.
func parseNumber(s string) (tree.Value, error) {
	f, _, err := big.ParseFloat(s, 10, precision, big.ToNearestEven)
	if err != nil {
		return tree.NullValue, fmt.Errorf("%q is not a number", s)
	}
	if !storable(f) {
		return tree.NullValue, fmt.Errorf("%q is no number that can be stored", s)
	}
	return tree.NumberValue(f), nil
}

func storable(f *big.Float) bool {
	exp := f.MantExp(nil)
	return !f.IsInf() && exp <= maxExponent && exp >= -maxExponent
}

// encode writes a value to the wire. A value that does not fit is a
// *valueError.
func (c *codec) encode(v tree.Value) (*tfprotov6.DynamicValue, error) {
	var buf bytes.Buffer
	w := &encoder{buf: &buf, enc: msgpack.NewEncoder(&buf)}
	if err := c.encodeMsgpack(w, v); err != nil {
		return nil, err
	}
	return &tfprotov6.DynamicValue{MsgPack: buf.Bytes()}, nil
}

type encoder struct {
	buf *bytes.Buffer // what enc writes to, for bytes that are ready
	enc *msgpack.Encoder
}

// unknownExt is the extension that stands for an unknown value.
var unknownExt = []byte{msgpcode.FixExt1, 0, 0}

func (c *codec) encodeMsgpack(w *encoder, v tree.Value) error {
	switch {
	case v.IsNull():
		return w.enc.EncodeNil()
	case v.IsUnknown():
		w.buf.Write(unknownExt)
		return nil
	case v.Kind() != c.typ.Kind:
		return &valueError{reason: fmt.Sprintf("%s where the schema has %s", withArticle(v.Kind()), withArticle(c.typ))}
	}
	switch v.Kind() {
	case tree.Bool:
		return w.enc.EncodeBool(v.Bool())
	case tree.Number:
		return encodeNumber(w, v.Num())
	case tree.String:
		return w.enc.EncodeString(v.Str())
	case tree.List:
		if err := w.enc.EncodeArrayLen(v.Len()); err != nil {
			return err
		}
		for i, e := range v.Elems() {
			if err := c.elem.encodeMsgpack(w, e); err != nil {
				return below(tree.Step{Index: i}, err)
			}
		}
		return nil
	}
	return c.encodeObject(w, v)
}

// encodeObject writes all attributes of the schema, absent ones as null: the
// cores want every key.
func (c *codec) encodeObject(w *encoder, v tree.Value) error {
	if err := w.enc.EncodeMapLen(len(c.attrs)); err != nil {
		return err
	}
	left := v.Len()
	for i := range c.attrs {
		a := &c.attrs[i]
		w.buf.Write(a.key)
		e := v.Attr(a.name)
		if e.IsNull() {
			w.buf.WriteByte(msgpcode.Nil)
			continue
		}
		left--
		if err := a.codec.encodeMsgpack(w, e); err != nil {
			return below(tree.Step{Attr: a.name}, err)
		}
	}
	if left == 0 {
		return nil
	}
	for _, name := range v.Names() {
		if _, ok := c.index[name]; !ok {
			return &valueError{tree.Root.Attr(name), "the schema has no such attribute"}
		}
	}
	return nil
}

func encodeNumber(w *encoder, n *big.Float) error {
	if !storable(n) {
		return &valueError{reason: "no number that can be stored"}
	}
	if i, acc := n.Int64(); acc == big.Exact {
		return w.enc.EncodeInt(i)
	}
	if f, acc := n.Float64(); acc == big.Exact && !n.IsInt() {
		return w.enc.EncodeFloat64(f)
	}
	return w.enc.EncodeString(n.Text('f', -1))
}

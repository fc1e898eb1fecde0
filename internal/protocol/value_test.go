package protocol

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// machineType is a small schema with every shape.
var machineType = tree.ObjectOf(
	&tree.Attribute{Name: "name", Type: tree.StringType, Required: true, Description: "Name of the *machine*."},
	&tree.Attribute{Name: "memory", Type: tree.NumberType, Optional: true, Computed: true},
	&tree.Attribute{Name: "on", Type: tree.BoolType, Optional: true, Computed: true},
	&tree.Attribute{Name: "uuid", Type: tree.StringType, Computed: true},
	&tree.Attribute{Name: "password", Type: tree.StringType, Optional: true, Computed: true, Sensitive: true},
	&tree.Attribute{Name: "tags", Type: tree.ListOf(tree.StringType), Optional: true, Computed: true},
	&tree.Attribute{Name: "matrix", Type: tree.ListOf(tree.ListOf(tree.NumberType)), Optional: true, Computed: true, Deprecated: "Use tags."},
	&tree.Attribute{Name: "boot", Optional: true, Computed: true, Type: tree.ObjectOf(
		&tree.Attribute{Name: "order", Type: tree.NumberType, Optional: true, Computed: true},
		&tree.Attribute{Name: "menu", Optional: true, Computed: true, Type: tree.ObjectOf(
			&tree.Attribute{Name: "timeout", Type: tree.NumberType, Optional: true, Computed: true},
		)},
	)},
	&tree.Attribute{Name: "disks", Optional: true, Computed: true, Type: tree.ListOf(tree.ObjectOf(
		&tree.Attribute{Name: "dev", Type: tree.StringType, Required: true},
		&tree.Attribute{Name: "size", Type: tree.NumberType, Optional: true, Computed: true},
		&tree.Attribute{Name: "alias", Type: tree.StringType, Computed: true},
		&tree.Attribute{Name: "parts", Optional: true, Computed: true, Type: tree.ListOf(tree.ObjectOf(
			&tree.Attribute{Name: "label", Type: tree.StringType, Optional: true, Computed: true},
		))},
	))},
)

var machineCodec = newCodec(machineType)

func obj(pairs ...any) tree.Value {
	attrs := map[string]tree.Value{}
	for i := 0; i < len(pairs); i += 2 {
		attrs[pairs[i].(string)] = val(pairs[i+1])
	}
	return tree.ObjectValue(attrs)
}

func list(elems ...any) tree.Value {
	var out []tree.Value
	for _, e := range elems {
		out = append(out, val(e))
	}
	return tree.ListValue(out)
}

func val(v any) tree.Value {
	switch v := v.(type) {
	case nil:
		return tree.NullValue
	case bool:
		return tree.BoolValue(v)
	case int:
		return tree.IntValue(int64(v))
	case string:
		return tree.StringValue(v)
	case tree.Value:
		return v
	}
	panic(fmt.Sprintf("%T", v))
}

func num(s string) tree.Value {
	n, err := tree.ParseNumber(s)
	if err != nil {
		panic(err)
	}
	return n
}

// The reference: the same conversions by way of plugin-go's own values, dense
// and typed. What they accept and write, the codec must too.

func refType(t *tree.Type) tftypes.Type {
	switch t.Kind {
	case tree.Bool:
		return tftypes.Bool
	case tree.Number:
		return tftypes.Number
	case tree.String:
		return tftypes.String
	case tree.List:
		return tftypes.List{ElementType: refType(t.Elem)}
	}
	attrs := map[string]tftypes.Type{}
	for name, a := range t.Attrs {
		attrs[name] = refType(a.Type)
	}
	return tftypes.Object{AttributeTypes: attrs}
}

func toRef(v tree.Value, t *tree.Type, rt tftypes.Type) tftypes.Value {
	switch v.Kind() {
	case tree.Null:
		return tftypes.NewValue(rt, nil)
	case tree.Unknown:
		return tftypes.NewValue(rt, tftypes.UnknownValue)
	case tree.Bool:
		return tftypes.NewValue(rt, v.Bool())
	case tree.Number:
		return tftypes.NewValue(rt, v.Num())
	case tree.String:
		return tftypes.NewValue(rt, v.Str())
	case tree.List:
		elems := []tftypes.Value{}
		for _, e := range v.Elems() {
			elems = append(elems, toRef(e, t.Elem, rt.(tftypes.List).ElementType))
		}
		return tftypes.NewValue(rt, elems)
	}
	attrs := map[string]tftypes.Value{}
	for name, art := range rt.(tftypes.Object).AttributeTypes {
		attrs[name] = toRef(v.Attr(name), t.Attrs[name].Type, art)
	}
	return tftypes.NewValue(rt, attrs)
}

func fromRef(v tftypes.Value) tree.Value {
	fail := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	switch {
	case !v.IsKnown():
		return tree.UnknownValue
	case v.IsNull():
		return tree.NullValue
	case v.Type().Is(tftypes.Bool):
		var b bool
		fail(v.As(&b))
		return tree.BoolValue(b)
	case v.Type().Is(tftypes.String):
		var s string
		fail(v.As(&s))
		return tree.StringValue(s)
	case v.Type().Is(tftypes.Number):
		n := new(big.Float)
		fail(v.As(n))
		return tree.NumberValue(n)
	case v.Type().Is(tftypes.List{}):
		var elems []tftypes.Value
		fail(v.As(&elems))
		out := make([]tree.Value, len(elems))
		for i, e := range elems {
			out[i] = fromRef(e)
		}
		return tree.ListValue(out)
	}
	attrs := map[string]tftypes.Value{}
	fail(v.As(&attrs))
	out := map[string]tree.Value{}
	for name, a := range attrs {
		out[name] = fromRef(a)
	}
	return tree.ObjectValue(out)
}

func checkRoundTrip(t *testing.T, v tree.Value, typ *tree.Type) {
	t.Helper()
	c, rt := newCodec(typ), refType(typ)
	got, err := c.encode(v)
	if err != nil {
		t.Fatalf("encode %s: %v", v, err)
	}
	want, err := tfprotov6.NewDynamicValue(rt, toRef(v, typ, rt))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.MsgPack, want.MsgPack) {
		t.Errorf("encode %s:\n got %x\nwant %x", v, got.MsgPack, want.MsgPack)
	}
	back, err := c.decode(&want)
	if err != nil {
		t.Fatalf("decode %s: %v", v, err)
	}
	if !tree.Equal(back, v) {
		t.Errorf("wrote %s, read %s", v, back)
	}
}

func TestRoundTrip(t *testing.T) {
	object := []tree.Value{
		tree.NullValue,
		tree.UnknownValue,
		obj(),
		obj("name", ""),
		obj("name", "web", "on", false, "memory", 0, "tags", list(), "boot", obj(), "disks", list(obj(), nil, obj("parts", list(obj()))), "matrix", list(list(1, nil), nil, list())),
		obj("name", strings.Repeat("ä", 70_000), "tags", list("a", tree.UnknownValue, ""), "disks", tree.UnknownValue, "boot", obj("menu", tree.UnknownValue)),
		obj("name", "\x00 \U0001F5A5 \"", "uuid", tree.UnknownValue),
	}
	for _, v := range object {
		checkRoundTrip(t, v, machineType)
	}
	for _, s := range []string{
		"0", "-0", "1", "-1", "127", "128", "-32", "-33", "-128", "-129", "255", "256", "65535", "65536", "4294967295", "4294967296", "-2147483649",
		"9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615", "18446744073709551616",
		"-18446744073709551615", "340282366920938463463374607431768211457", "0.5", "-0.25", "0.1", "3.141592653589793238462643383279502884197",
		"1e300", "1e-300", "1e400", "1267650600228229401496703205376", "123456789012345678901234567890.5",
	} {
		checkRoundTrip(t, num(s), tree.NumberType)
	}
}

func TestUnknownWithRefinements(t *testing.T) {
	// What OpenTofu sends for "unknown, but not null, and begins with ua-":
	// extension 12 with a MessagePack map of refinements.
	for _, ext := range []string{
		"\xc7\x03\x0c\x81\x01\xc2", "\xd4\x00\x00", "\xc7\x08\x0c\x82\x01\xc2\x02\xa3ua-", "\xd8\x0c0123456789abcdef",
		"\xc8\x00\x01\x0c\x80", "\xc9\x00\x00\x00\x01\x0c\x80",
	} {
		v, err := newCodec(tree.ListOf(tree.StringType)).decode(&tfprotov6.DynamicValue{MsgPack: []byte("\x93\xa1a" + ext + "\xa1b")})
		if err != nil || !tree.Equal(v, list("a", tree.UnknownValue, "b")) {
			t.Errorf("%x: %s, %v", ext, v, err)
		}
	}
}

func TestDecodeRefusesWhatDoesNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		typ  *tree.Type
		data string
		want string
	}{
		"nothing":            {tree.BoolType, "", "EOF"},
		"cut off":            {tree.StringType, "\xa5ab", "EOF"},
		"other kind":         {tree.ListOf(tree.BoolType), "\x92\xc3\xa1x", "[1]: "},
		"list for an object": {machineType, "\x90", "msgpack"},
		"too few attributes": {machineType, "\x81\xa4name\xa1x", "the value has 1 attributes, the schema 9"},
		"attribute twice": {tree.ObjectOf(&tree.Attribute{Name: "a", Type: tree.BoolType}, &tree.Attribute{Name: "b", Type: tree.BoolType}),
			"\x82\xa1a\xc3\xa1a\xc3", `the value has the attribute "a" twice`},
		"unknown attribute": {tree.ObjectOf(&tree.Attribute{Name: "a", Type: tree.BoolType}), "\x81\xa1b\xc3", `the schema has no attribute "b"`},
		"deep": {tree.ObjectOf(&tree.Attribute{Name: "a", Type: tree.ListOf(tree.ObjectOf(&tree.Attribute{Name: "b", Type: tree.NumberType}))}),
			"\x81\xa1a\x92\x81\xa1b\x01\x81\xa1b\xa3two", `a[1].b: "two" is not a number`},
		"not a number":  {tree.NumberType, "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "NaN is no number"},
		"infinity":      {tree.NumberType, "\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", "+Inf is no number"},
		"text infinity": {tree.NumberType, "\xa3Inf", `"Inf" is no number`},
		"huge":          {tree.NumberType, "\xab1e999999999", `"1e999999999" is no number`},
		"long list":     {tree.ListOf(tree.BoolType), "\xdd\xff\xff\xff\xff\xc3", "EOF"},
	} {
		v, err := newCodec(c.typ).decode(&tfprotov6.DynamicValue{MsgPack: []byte(c.data)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, error %v; want %q", name, v, err, c.want)
		}
	}
	if _, err := machineCodec.decode(nil); err == nil {
		t.Error("a missing value was read")
	}
}

func TestDecodeJSON(t *testing.T) {
	c := machineCodec
	got, err := c.decode(&tfprotov6.DynamicValue{JSON: []byte(`{"name":"web","memory":18446744073709551615,"on":null,"boot":{},"disks":[{"dev":"vda","size":0.1}],"tags":[]}`)})
	want := obj("name", "web", "memory", num("18446744073709551615"), "boot", obj(), "disks", list(obj("dev", "vda", "size", num("0.1"))), "tags", list())
	if err != nil || !tree.Equal(got, want) {
		t.Errorf("got %s, %v", got, err)
	}
	for data, want := range map[string]string{
		`{"disks":[{"dev":{}}]}`: "disks[0].dev: ",
		`{`:                      "unexpected end",
	} {
		if _, err := c.decode(&tfprotov6.DynamicValue{JSON: []byte(data)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", data, err, want)
		}
	}
}

func TestEncodeRefusesWhatDoesNotFit(t *testing.T) {
	for want, v := range map[string]tree.Value{
		"name: a number where the schema has a string":     obj("name", 1),
		"disks[1].parts[0].label: a bool where the schema": obj("disks", list(nil, obj("parts", list(obj("label", true))))),
		"boot.menu.extra: the schema has no such":          obj("boot", obj("menu", obj("extra", 1, "timeout", 1))),
		"disks: an object where the schema has a list":     obj("disks", obj()),
		"a string where the schema has an object":          val("web"),
		"memory: no number that can be stored":             obj("memory", tree.NumberValue(big.NewFloat(math.Inf(1)))),
	} {
		_, err := machineCodec.encode(v)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s…", v, err, want)
		}
	}
}

// randomValue makes a value of a type out of random bits.
func randomValue(r *rand.Rand, t *tree.Type) tree.Value {
	switch r.IntN(8) {
	case 0:
		return tree.UnknownValue
	case 1, 2:
		return tree.NullValue
	}
	switch t.Kind {
	case tree.Bool:
		return tree.BoolValue(r.IntN(2) == 0)
	case tree.Number:
		return randomNumber(r)
	case tree.String:
		return tree.StringValue(strings.Repeat("xü", r.IntN(40)))
	case tree.List:
		elems := make([]tree.Value, r.IntN(20))
		for i := range elems {
			elems[i] = randomValue(r, t.Elem)
		}
		return tree.ListValue(elems)
	}
	attrs := map[string]tree.Value{}
	for _, name := range t.Names() {
		attrs[name] = randomValue(r, t.Attrs[name].Type)
	}
	return tree.ObjectValue(attrs)
}

func randomNumber(r *rand.Rand) tree.Value {
	switch r.IntN(4) {
	case 0:
		return tree.IntValue(int64(r.Uint64()) >> r.IntN(64))
	case 1:
		return tree.UintValue(r.Uint64() >> r.IntN(64))
	case 2:
		return num(fmt.Sprint((r.Float64() - 0.5) * math.Pow10(r.IntN(40)-20)))
	}
	return num(fmt.Sprintf("%d%020d.%d", r.Uint64(), r.Uint64(), r.Uint64()))
}

func FuzzRoundTrip(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, seed*7919)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		checkRoundTrip(t, randomValue(rand.New(rand.NewPCG(a, b)), machineType), machineType)
	})
}

// FuzzDecode feeds bytes to both decoders. They must agree on what is a value
// and on which; only numbers that cannot be stored are refused here alone.
func FuzzDecode(f *testing.F) {
	rt := refType(machineType)
	for seed := range uint64(50) {
		d, err := machineCodec.encode(randomValue(rand.New(rand.NewPCG(seed, 1)), machineType))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(d.MsgPack)
	}
	f.Add([]byte("\xc7\x03\x0c\x81\x01\xc2"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, gotErr := machineCodec.decode(&tfprotov6.DynamicValue{MsgPack: data})
		if gotErr != nil && (bytes.IndexByte(data, 0xdd) >= 0 || bytes.IndexByte(data, 0xdf) >= 0) {
			return // a length that is a lie makes the reference allocate gigabytes
		}
		want, wantErr := refDecode(data, rt)
		switch {
		case gotErr != nil && (wantErr != nil || strings.Contains(gotErr.Error(), "that can be stored")):
		case gotErr != nil || wantErr != nil:
			t.Fatalf("%x: error %v, the reference %v", data, gotErr, wantErr)
		case !tree.Equal(got, want):
			t.Fatalf("%x:\n got %s\nwant %s", data, got, want)
		default:
			if again, err := machineCodec.encode(got); err != nil {
				t.Fatalf("%s was read and cannot be written: %v", got, err)
			} else if back, err := machineCodec.decode(again); err != nil || !tree.Equal(back, got) {
				t.Fatalf("wrote %s, read %s, %v", got, back, err)
			}
		}
	})
}

// refDecode is plugin-go's decoder, which panics for "not a number".
func refDecode(data []byte, rt tftypes.Type) (v tree.Value, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	if data == nil {
		data = []byte{}
	}
	ref, err := tfprotov6.DynamicValue{MsgPack: data}.Unmarshal(rt)
	if err != nil {
		return tree.NullValue, err
	}
	return fromRef(ref), nil
}

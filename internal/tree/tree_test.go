package tree

import (
	"encoding/json"
	"strings"
	"testing"
)

func mustNumber(t *testing.T, s string) Value {
	t.Helper()
	v, err := ParseNumber(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func example(t *testing.T) Value {
	return ObjectValue(map[string]Value{
		"name": StringValue("web"), "memory": mustNumber(t, "18446744073709551615"), "gone": NullValue, "on": BoolValue(false),
		"disks": ListValue([]Value{
			ObjectValue(map[string]Value{"dev": StringValue("vda")}),
			ObjectValue(map[string]Value{"dev": StringValue("vdb"), "ratio": mustNumber(t, "0.5")}),
		}),
		"empty": ListValue(nil),
	})
}

func TestNullAttributesAreAbsent(t *testing.T) {
	v := example(t)
	if v.Len() != 5 || !v.Attr("gone").IsNull() {
		t.Errorf("got %s", v)
	}
	if w := v.With("name", NullValue); w.Len() != 4 || v.Len() != 5 {
		t.Errorf("With changed its receiver or kept a null: %s", w)
	}
}

func TestPaths(t *testing.T) {
	v := example(t)
	for path, want := range map[string]string{
		"name": `"web"`, "disks[1].dev": `"vdb"`, "disks[2].dev": "null", "name.sub": "null", "disks[0].none.deeper": "null",
	} {
		if got := v.At(path).String(); got != want {
			t.Errorf("At(%s) = %s, want %s", path, got, want)
		}
		if got := ParsePath(path).String(); got != path {
			t.Errorf("ParsePath(%s).String() = %s", path, got)
		}
	}
	p := Root.Attr("disks").Elem(1, "vdb").Attr("dev")
	if p.String() != "disks[vdb].dev" || p.Pattern() != "disks[].dev" {
		t.Errorf("got %s and %s", p, p.Pattern())
	}
}

func TestSetSharesNothingThatChanges(t *testing.T) {
	v := example(t)
	w := v.SetAt("disks[0].driver.cache", StringValue("none"))
	if w.At("disks[0].driver.cache").Str() != "none" || !v.At("disks[0].driver").IsNull() {
		t.Errorf("v %s, w %s", v, w)
	}
	if !Equal(w.SetAt("disks[0].driver", NullValue), v) {
		t.Error("taking the change back gives another tree")
	}
	if got := v.With("later", UnknownValue).SetAt("later", NullValue); !Equal(got, v) {
		t.Errorf("an unknown attribute outlived its removal: %s", got)
	}
	if !Equal(v.SetAt("disks[7].dev", StringValue("x")), v) {
		t.Error("an element that is not there was set")
	}
}

func TestWholeNumbers(t *testing.T) {
	for s, want := range map[string][2]bool{ // fits int64, fits uint64
		"0": {true, true}, "-1": {true, false}, "1.5": {false, false}, "18446744073709551615": {false, true}, "1e3": {true, true},
	} {
		v := mustNumber(t, s)
		_, i := v.Int()
		_, u := v.Uint()
		if i != want[0] || u != want[1] {
			t.Errorf("%s: int %v, uint %v", s, i, u)
		}
	}
	if _, err := ParseNumber("ten"); err == nil {
		t.Error("ten is a number")
	}
}

func TestNumbersKeepEveryDigit(t *testing.T) {
	for s, want := range map[string]string{
		"0": "0", "-0": "0", "-7": "-7", "9223372036854775807": "9223372036854775807", "-9223372036854775808": "-9223372036854775808",
		"9223372036854775808": "9223372036854775808", "18446744073709551615": "18446744073709551615", "0.1": "0.1", "1e3": "1000", "1e30": "1" + strings.Repeat("0", 30),
	} {
		if got := mustNumber(t, s).String(); got != want {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	}
}

func TestJSONKeepsEverything(t *testing.T) {
	v := example(t)
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var w Value
	if err := json.Unmarshal(data, &w); err != nil {
		t.Fatal(err)
	}
	if !Equal(v, w) {
		t.Errorf("wrote %s, read %s", v, w)
	}
	if _, err := json.Marshal(v.With("later", UnknownValue)); err == nil {
		t.Error("an unknown value was stored")
	}
	if err := w.UnmarshalJSON([]byte("1 2")); err == nil {
		t.Error("two values were read as one")
	}
}

func TestUnknown(t *testing.T) {
	v := example(t).With("later", ObjectValue(map[string]Value{"x": ListValue([]Value{UnknownValue})}))
	if !v.HasUnknown() || example(t).HasUnknown() {
		t.Error("HasUnknown")
	}
	if !UnknownValue.Attr("x").IsUnknown() || !UnknownValue.At("a[0].b").IsUnknown() {
		t.Error("what is inside an unknown value is unknown")
	}
	if Equal(UnknownValue, NullValue) {
		t.Error("unknown equals null")
	}
}

func TestKnownDropsWhatIsUnknown(t *testing.T) {
	v := example(t).With("mac", ObjectValue(map[string]Value{"address": UnknownValue})).With("none", ObjectValue(nil)).With("later", UnknownValue)
	if got := v.Known(); !Equal(got, example(t).With("none", ObjectValue(nil))) {
		t.Errorf("got %s", got)
	}
}

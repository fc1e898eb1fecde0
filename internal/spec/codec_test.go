package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestEncodeRefusesWhatDoesNotFit(t *testing.T) {
	number := func(s string) tree.Value {
		v, err := tree.ParseNumber(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	one := func(path string, v tree.Value) tree.Value { return plant(tree.NullValue, tree.ParsePath(path), v) }
	cases := map[string]struct {
		tree       tree.Value
		path, says string
	}{
		"fraction":     {one("memory", number("1.5")), "memory", "not a whole number from 0 to 18446744073709551615"},
		"negative":     {one("vcpu", number("-1")), "vcpu", "not a whole number from 0"},
		"too large":    {one("memory", number("18446744073709551616")), "memory", "not a whole number"},
		"NUL":          {one("title", tree.StringValue("a\x00b")), "title", "U+0000 at byte 1"},
		"in a list":    {one("devices.disks[0].serial", tree.StringValue("\x01")), "devices.disks[0].serial", "U+0001"},
		"second alone": {one("devices.iommus[0].model", tree.StringValue("intel")), "devices.iommus", "first element"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Domain().Encode(c.tree)
			var ve *ValueError
			if !errors.As(err, &ve) {
				t.Fatalf("got %v, want a ValueError", err)
			}
			if ve.Path.String() != c.path || !strings.Contains(ve.Reason, c.says) {
				t.Errorf("got %s: %s", ve.Path, ve.Reason)
			}
		})
	}
}

func TestDecodeRefusesBrokenXML(t *testing.T) {
	for _, xml := range []string{"", "<domain", "<domain><memory>x</memory></domain>"} {
		if _, err := Domain().Decode(xml); err == nil || !strings.Contains(err.Error(), "read the XML of a domain") {
			t.Errorf("%q: got %v", xml, err)
		}
	}
}

func TestBigNumbersSurvive(t *testing.T) {
	v, err := Domain().Decode(`<domain><memory>18446744073709551615</memory></domain>`)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Attr("memory").String(); got != "18446744073709551615" {
		t.Error(got)
	}
}

// The space around the elements inside an element is no text of its own.
func TestSpaceIsNoText(t *testing.T) {
	v, err := Domain().Decode("<domain><os><nvram type='file'>\n  <source file='/a'/>\n</nvram></os></domain>")
	if err != nil {
		t.Fatal(err)
	}
	if got := v.At("os.nv_ram").String(); got != `{source = {file = {file = "/a"}}}` {
		t.Errorf("got %s", got)
	}
	v, err = Domain().Decode("<domain><os><nvram>/b</nvram></os></domain>")
	if got := v.At("os.nv_ram.nv_ram").Str(); err != nil || got != "/b" {
		t.Errorf("got %s, %v", got, err)
	}
}

// An element is not made for a value that says nothing: one of its numbers
// would say zero, or it would be one that no tree shows, and no edit could find.
func TestNothingMakesNoElement(t *testing.T) {
	nothing := tree.NullValue.With("maximum_memory_slots", tree.IntValue(0)).SetAt("cpu.model", tree.StringValue("")).With("vcpu_placement", tree.StringValue(""))
	xml, err := Domain().Encode(nothing)
	if err != nil {
		t.Fatal(err)
	}
	for _, element := range []string{"maxMemory", "model", "vcpu"} {
		if strings.Contains(xml, element) {
			t.Errorf("%s is written:\n%s", element, xml)
		}
	}
	if edited, err := Domain().Edit(xml, nothing.With("cpu", tree.ObjectValue(nil)), tree.NullValue.SetAt("cpu.model", tree.StringValue("host"))); err != nil || !strings.Contains(edited, ">host<") {
		t.Errorf("got %s, %v", edited, err)
	}
}

package protocol

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

var update = flag.Bool("update", false, "write golden files")

// renderAttributes prints a converted schema, one attribute a line.
func renderAttributes(b *strings.Builder, attrs []*tfprotov6.SchemaAttribute, indent string) {
	for _, a := range attrs {
		kind := fmt.Sprint(a.Type)
		if a.NestedType != nil {
			kind = "nested " + a.NestedType.Nesting.String()
		}
		fmt.Fprintf(b, "%s%s: %s", indent, a.Name, kind)
		if a.Sensitive {
			b.WriteString(" sensitive")
		}
		switch {
		case a.Required:
			b.WriteString(" required")
		case a.Optional && a.Computed:
			b.WriteString(" optional+computed")
		case a.Optional:
			b.WriteString(" optional")
		case a.Computed:
			b.WriteString(" computed")
		}
		if a.Deprecated || a.DeprecationMessage != "" {
			fmt.Fprintf(b, " deprecated=%v (%s)", a.Deprecated, a.DeprecationMessage)
		}
		if a.Description != "" {
			fmt.Fprintf(b, " %s %q", a.DescriptionKind, a.Description)
		}
		b.WriteString("\n")
		if a.NestedType != nil {
			renderAttributes(b, a.NestedType.Attributes, indent+"  ")
		}
	}
}

func TestSchemaConversion(t *testing.T) {
	s, err := wireSchema(Schema{TypeName: "test_machine", Version: 3, Description: "A **machine**.", Type: machineType})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "version %d, %s %q\n", s.Version, s.Block.DescriptionKind, s.Block.Description)
	renderAttributes(&b, s.Block.Attributes, "")
	const golden = "testdata/schema.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	if !s.ValueType().Equal(refType(machineType)) {
		t.Errorf("the schema's values are %s", s.ValueType())
	}
}

func TestSchemaMistakes(t *testing.T) {
	ok := func(name string, typ *tree.Type) *tree.Attribute {
		return &tree.Attribute{Name: name, Type: typ, Optional: true}
	}
	for want, typ := range map[string]*tree.Type{
		"test_x: its type is no object": tree.StringType,
		"disks[].cubes[][] is an object, which has no place": tree.ObjectOf(ok("disks", tree.ListOf(tree.ObjectOf(
			ok("cubes", tree.ListOf(tree.ListOf(tree.ObjectOf(ok("a", tree.BoolType))))))))),
		"boot.order must be either required, or": tree.ObjectOf(ok("boot", tree.ObjectOf(&tree.Attribute{Name: "order", Type: tree.NumberType}))),
		"a must be either required, or":          tree.ObjectOf(&tree.Attribute{Name: "a", Type: tree.BoolType, Required: true, Computed: true}),
		"all[].key is sensitive, which a core does not learn": tree.ObjectOf(&tree.Attribute{Name: "all", Computed: true, Plain: true, Type: tree.ListOf(tree.ObjectOf(
			&tree.Attribute{Name: "key", Type: tree.StringType, Computed: true, Sensitive: true}))}),
		`a calls itself "b"`: {Kind: tree.Object, Attrs: map[string]*tree.Attribute{"a": ok("b", tree.BoolType)}},
	} {
		if _, err := wireSchema(Schema{TypeName: "test_x", Type: typ}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		m := newMachines()
		m.typ = typ
		resp, err := NewServer(newFallback(), []Resource{m}, nil).GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
		if err != nil || !strings.Contains(messages(resp.Diagnostics), want) && typ.Kind == tree.Object {
			t.Errorf("%v, %s", err, messages(resp.Diagnostics))
		}
	}
}

// A plain attribute is one value, whatever is in it, and is written like a nested one.
func TestPlainAttributes(t *testing.T) {
	typ := tree.ObjectOf(&tree.Attribute{Name: "all", Computed: true, Plain: true, Type: tree.ListOf(tree.ObjectOf(
		&tree.Attribute{Name: "a", Type: tree.ObjectOf(&tree.Attribute{Name: "b", Type: tree.NumberType, Computed: true}), Computed: true},
		&tree.Attribute{Name: "c", Type: tree.StringType, Computed: true}))})
	schema, err := wireSchema(Schema{TypeName: "test_x", Type: typ})
	if err != nil {
		t.Fatal(err)
	}
	if a := schema.Block.Attributes[0]; a.NestedType != nil || a.Type == nil {
		t.Fatalf("it is nested: %+v", a)
	}
	value := obj("all", tree.ListValue([]tree.Value{obj("a", obj("b", 7)), obj("c", "x")}))
	wire, err := newCodec(typ).encode(value)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := wire.Unmarshal(schema.ValueType()); err != nil || !got.IsFullyKnown() {
		t.Errorf("a core cannot read it: %v", err)
	}
	if back, err := newCodec(typ).decode(wire); err != nil || !tree.Equal(back, value) {
		t.Errorf("%v: it came back as %s", err, back)
	}
}

func TestPathsOnTheWire(t *testing.T) {
	for _, c := range []struct {
		path tree.Path
		want *tftypes.AttributePath
	}{
		{tree.ParsePath("disks[1].driver.cache"), tftypes.NewAttributePath().WithAttributeName("disks").WithElementKeyInt(1).WithAttributeName("driver").WithAttributeName("cache")},
		{tree.Root.Attr("disks").Elem(2, "vdc").Attr("dev"), tftypes.NewAttributePath().WithAttributeName("disks").WithElementKeyInt(2).WithAttributeName("dev")},
		{tree.ParsePath("disks[vda].driver"), tftypes.NewAttributePath().WithAttributeName("disks")},
		{tree.ParsePath("name"), tftypes.NewAttributePath().WithAttributeName("name")},
	} {
		var d Diagnostics
		d.AddError(c.path, "s", "d")
		if got := d.wire()[0].Attribute; !got.Equal(c.want) {
			t.Errorf("%s became %s", c.path, got)
		}
	}
}

func TestDiagnostics(t *testing.T) {
	var d Diagnostics
	d.AddWarning(nil, "careful", "x")
	if d.HasErrors() || d.wire()[0].Attribute != nil {
		t.Error("a warning is an error, or the whole object has a path")
	}
	d.Append(Diagnostic{Summary: "stop"})
	if got := messages(d.wire()); got != "WARNING: careful: x\nERROR: stop: \n" || !d.HasErrors() {
		t.Errorf("got %s", got)
	}
}

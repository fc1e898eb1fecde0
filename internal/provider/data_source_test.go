package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// simulated is a provider that is connected to libvirt's simulated host, with
// machines of these names, of which each has a display with a password.
func simulated(t *testing.T, machines ...string) *Data {
	t.Helper()
	data := &Data{}
	data.configure("test:///default", nil, "", nil, "")
	if err := data.Host().Connect(context.Background()); err != nil {
		t.Skip("libvirt library missing: " + err.Error())
	}
	t.Cleanup(func() { _ = data.Host().Close() })
	for _, name := range machines {
		dom, err := data.Host().DefineDomain(context.Background(), "<domain type='test'><name>"+name+"</name><title>Of a test</title><memory>1024</memory><os><type>hvm</type></os>"+
			"<devices><graphics type='vnc' passwd='hunter2'/></devices></domain>", virt.DefineFlags{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = dom.Undefine(context.Background(), virt.UndefineFlags{}) })
	}
	return data
}

func domainSources(data *Data) (*shown, *listed) {
	k := domain.New(data.Host)
	m := &mapped{typeName: "libvirt_domain", kind: k, data: data}
	return newShown(m, k), newListed(m, k)
}

func object(pairs ...any) tree.Value {
	attrs := map[string]tree.Value{}
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			attrs[pairs[i].(string)] = tree.StringValue(v)
		case bool:
			attrs[pairs[i].(string)] = tree.BoolValue(v)
		case tree.Value:
			attrs[pairs[i].(string)] = v
		default:
			panic(fmt.Sprintf("no such value: %v", v))
		}
	}
	return tree.ObjectValue(attrs)
}

// flawless fails the test on any diagnostic.
func flawless(t *testing.T, d protocol.Diagnostics) {
	t.Helper()
	for _, one := range d {
		t.Fatalf("%s: %s", one.Summary, one.Detail)
	}
}

func TestDataSourceShowsADomain(t *testing.T) {
	ctx := context.Background()
	data := simulated(t, "shown")
	source, _ := domainSources(data)
	calls := virttest.Record(data.Host())
	byName, d := source.Read(ctx, object("name", "shown"))
	flawless(t, d)
	if byName.Attr("title").Str() != "Of a test" || byName.At("devices.graphics").Len() != 1 || byName.Attr("running").Bool() ||
		byName.At("status.state").Str() != "settled" || byName.At("status.power").Str() != "shutoff" || !byName.At("status.persistent").Bool() {
		t.Errorf("read %s", byName)
	}
	if byName.At("devices.graphics").Elems()[0].At("vnc.passwd").Str() != "" {
		t.Error("the password is shown, though nobody asked for it")
	}
	byUUID, d := source.Read(ctx, object("uuid", byName.Attr("uuid").Str(), "secrets", true))
	flawless(t, d)
	if got := byUUID.At("devices.graphics").Elems()[0].At("vnc.passwd").Str(); got != "hunter2" {
		t.Errorf("with secrets = true the password is %q", got)
	}
	if !byUUID.Attr("secrets").Bool() {
		t.Error("what is configured is not in the state")
	}
	if w := calls.Writes(); len(w) > 0 {
		t.Errorf("a data source writes: %v", w)
	}
	fits(t, source.Schema(), byName)
	fits(t, source.Schema(), byUUID)
}

// fits checks that the adapter can send a value: it has no attribute that the
// schema lacks, and the types agree.
func fits(t *testing.T, schema protocol.Schema, v tree.Value) {
	t.Helper()
	if err := misfit(schema.Type, v, nil); err != "" {
		t.Error(err)
	}
}

func misfit(typ *tree.Type, v tree.Value, at tree.Path) string {
	switch {
	case v.IsNull():
	case v.Kind() != typ.Kind:
		return fmt.Sprintf("%s is %s, the schema has %s", at, v.Kind(), typ)
	case v.Kind() == tree.List:
		for i, e := range v.Elems() {
			if err := misfit(typ.Elem, e, at.Elem(i, "")); err != "" {
				return err
			}
		}
	case v.Kind() == tree.Object:
		for _, name := range v.Names() {
			if typ.Attrs[name] == nil {
				return fmt.Sprintf("%s is not in the schema", at.Attr(name))
			}
			if err := misfit(typ.Attrs[name].Type, v.Attr(name), at.Attr(name)); err != "" {
				return err
			}
		}
	}
	return ""
}

func TestDataSourceOfARunningDomain(t *testing.T) {
	ctx := context.Background()
	data := simulated(t)
	source, _ := domainSources(data)
	// The machine that the simulated host has from the start runs.
	for _, view := range []string{"definition", "guest"} {
		got, d := source.Read(ctx, object("name", "test", "view", view))
		flawless(t, d)
		if !got.Attr("running").Bool() || got.Attr("id").IsNull() || got.At("status.power").Str() != "running" {
			t.Errorf("%s: read %s", view, got)
		}
		fits(t, source.Schema(), got)
	}
}

func TestDataSourceSaysWhatThereIs(t *testing.T) {
	ctx := context.Background()
	data := simulated(t, "router", "database")
	source, _ := domainSources(data)
	for _, c := range []struct {
		config tree.Value
		at     string
		says   []string
	}{
		{object("name", "ruter"), "name", []string{`There is no domain "ruter"`, "There are: database, router, test.", "write one that is there into name", "data.libvirt_domains"}},
		{object("uuid", "11111111-1111-4111-8111-111111111111"), "uuid", []string{`There is no domain "1111`, " (router)"}},
	} {
		_, d := source.Read(ctx, c.config)
		refused(t, d, c.at, c.says...)
	}
}

// refused wants one error, at that attribute, that says all this.
func refused(t *testing.T, d protocol.Diagnostics, at string, says ...string) {
	t.Helper()
	if len(d) != 1 || d[0].Severity != protocol.Error {
		t.Errorf("got %v, want one error that says %q", d, says)
		return
	}
	if d[0].Path.String() != at && !(at == "" && d[0].Path == nil) {
		t.Errorf("the error is at %q, want %q", d[0].Path, at)
	}
	for _, part := range says {
		if !strings.Contains(d[0].Summary+": "+d[0].Detail, part) {
			t.Errorf("the error does not say %q:\n%s: %s", part, d[0].Summary, d[0].Detail)
		}
	}
}

// Only libvirt's own "no such object" is an absence.
func TestDataSourceThatCannotBeRead(t *testing.T) {
	ctx := context.Background()
	data := simulated(t, "machine")
	one, all := domainSources(data)
	for _, c := range []struct {
		what   string
		answer virttest.Answer
	}{{"lost", virttest.ConnectionLost}, {"denied", virttest.PermissionDenied}} {
		remove := virttest.Install(data.Host(), virttest.Fail(virttest.Op("read the XML of domain"), c.answer))
		_, d := one.Read(ctx, object("name", "machine"))
		refused(t, d, "", `Could not read domain "machine"`, "Asked: test:///default")
		_, d = all.Read(ctx, object("full", true))
		refused(t, d, "", "Could not read")
		remove()
	}
}

func TestDataSourceOfAHostThatIsNotKnownYet(t *testing.T) {
	one, all := domainSources(&Data{})
	_, d := one.Read(context.Background(), object("name", "machine"))
	refused(t, d, "", `Could not read domain "machine": the host is not known yet`, "-target")
	_, d = all.Read(context.Background(), tree.ObjectValue(nil))
	refused(t, d, "", "the host is not known yet")
}

func TestDataSourceConfiguration(t *testing.T) {
	data := &Data{}
	one, all := domainSources(data)
	k := storage.NewVolume(data.Host)
	volume := newShown(&mapped{typeName: "libvirt_volume", kind: k, data: data}, k)
	const uuid = "6a2a5b6e-6f0e-4f39-9a3f-0c1d2e3f4a5b"
	for _, c := range []struct {
		source interface {
			Validate(context.Context, tree.Value) protocol.Diagnostics
		}
		config tree.Value
		at     string
		says   []string // none: it is right
	}{
		{one, object("name", "a"), "", nil},
		{one, object("uuid", strings.ToUpper(uuid)), "", nil},
		{one, object("uuid", tree.UnknownValue), "", nil},
		{one, object("name", tree.UnknownValue, "uuid", tree.UnknownValue), "", nil},
		{one, object("name", "a", "view", "guest"), "", nil},
		{one, tree.ObjectValue(nil), "", []string{"Which domain?", "Set name, or uuid"}},
		{one, object("name", "a", "uuid", uuid), "", []string{"Which domain?"}},
		{one, object("name", ""), "name", []string{"name is empty"}},
		{one, object("uuid", "router"), "uuid", []string{"Not a UUID", "set name instead"}},
		{one, object("name", "a", "view", "live"), "view", []string{`view is "live"`, `"definition"`, `"guest"`}},
		{all, tree.ObjectValue(nil), "", nil},
		{all, object("name_regex", "^web-[0-9]+$", "full", true), "", nil},
		{all, object("name_regex", tree.UnknownValue), "", nil},
		{all, object("name_regex", "("), "name_regex", []string{"Not a regular expression"}},
		{all, object("view", "live"), "view", []string{`view is "live"`}},
		{volume, object("pool", "a", "name", "b"), "", nil},
		{volume, object("key", "/a/b"), "", nil},
		{volume, object("path", "/a/b"), "", nil},
		{volume, object("name", "b"), "", []string{"Which volume?", "Set pool and name, or key, or path"}},
		{volume, object("pool", "a", "name", "b", "path", "/a/b"), "", []string{"Which volume?"}},
		{volume, object("pool", "a", "path", "/a/b"), "", []string{"Which volume?"}},
	} {
		d := c.source.Validate(context.Background(), c.config)
		if c.says == nil {
			if len(d) > 0 {
				t.Errorf("%s is refused: %v", c.config, d)
			}
			continue
		}
		refused(t, d, c.at, c.says...)
	}
}

func TestDataSourceListsDomains(t *testing.T) {
	ctx := context.Background()
	data := simulated(t, "web-1", "web-2", "other")
	_, source := domainSources(data)
	calls := virttest.Record(data.Host())
	got, d := source.Read(ctx, object("name_regex", "^web-"))
	flawless(t, d)
	if got.Attr("names").String() != `["web-1", "web-2"]` || got.Attr("domains").Len() != 2 || got.Attr("name_regex").Str() != "^web-" {
		t.Fatalf("read %s", got)
	}
	first := got.Attr("domains").Elems()[0]
	if first.Attr("name").Str() != "web-1" || !kind.IsUUID(first.Attr("uuid").Str()) || first.Attr("running").Kind() != tree.Bool || !first.At("status.persistent").Bool() || !first.Attr("title").IsNull() {
		t.Errorf("read %s", first)
	}
	if n := len(calls.Calls()); n > 5 {
		t.Errorf("a list takes %d calls: %v", n, calls.Calls())
	}
	fits(t, source.Schema(), got)
	got, d = source.Read(ctx, object("full", true))
	flawless(t, d)
	if got.Attr("names").String() != `["other", "test", "web-1", "web-2"]` {
		t.Errorf("read %s", got.Attr("names"))
	}
	for _, one := range got.Attr("domains").Elems() {
		if one.At("status.power").IsNull() || one.Attr("memory").IsNull() {
			t.Errorf("not read whole: %s", one)
		}
	}
	if w := calls.Writes(); len(w) > 0 {
		t.Errorf("a data source writes: %v", w)
	}
	fits(t, source.Schema(), got)
}

// What goes between the list and the reading is not there, and no failure.
func TestDataSourceListWhileADomainGoes(t *testing.T) {
	ctx := context.Background()
	data := simulated(t, "stays", "goes")
	_, source := domainSources(data)
	virttest.Install(data.Host(), virttest.Fail(virttest.And(virttest.Op("read the XML of domain"), virttest.On("goes")), virttest.NoSuchDomain))
	got, d := source.Read(ctx, object("full", true))
	flawless(t, d)
	if got.Attr("names").String() != `["stays", "test"]` {
		t.Errorf("read %s", got.Attr("names"))
	}
}

// Every path of a data source is that of the resource, so that an expression can
// name one or the other; nothing but what names the object can be configured; and
// a secret is sensitive, or not there.
func TestDataSourceTypes(t *testing.T) {
	data := &Data{}
	for _, r := range data.resources() {
		m := r.(*mapped)
		source, is := m.kind.(kind.Source)
		if !is {
			t.Errorf("%s has no data source", m.typeName)
			continue
		}
		resource := map[string]*tree.Attribute{}
		m.kind.Type().Walk(func(pattern string, a *tree.Attribute) { resource[pattern] = a })
		var keys []string
		for _, set := range source.Keys() {
			keys = append(keys, set...)
		}
		shownPaths := map[string]string{}
		source.DataType().Walk(func(pattern string, a *tree.Attribute) {
			of := resource[pattern]
			switch {
			case of == nil || of.Type.String() != a.Type.String():
				t.Errorf("data %s has %s, and the resource does not", m.typeName, pattern)
			case a.Required || !a.Computed || a.Optional != slices.Contains(keys, pattern):
				t.Errorf("data %s: %s can be configured, or is not told", m.typeName, pattern)
			case a.Sensitive != m.kind.Secret(pattern):
				t.Errorf("data %s: %s is a secret and not sensitive, or the other way round", m.typeName, pattern)
			case m.kind.Rules().Setting(strings.SplitN(pattern, ".", 2)[0]) && !strings.HasPrefix(pattern, "status"):
				t.Errorf("data %s has %s, which speaks to the provider", m.typeName, pattern)
			}
			if !a.Sensitive {
				shownPaths[pattern] = a.Type.String()
			}
		})
		for _, records := range []string{"change", "status.held", "status.foreign", "status.last_steps", "status.spec_digest", "status.started"} {
			if _, there := shownPaths[records]; there {
				t.Errorf("data %s has %s, which only the records of a resource can tell", m.typeName, records)
			}
		}
		elements(source).Walk(func(pattern string, a *tree.Attribute) {
			if shownPaths[pattern] != a.Type.String() || a.Optional || a.Sensitive {
				t.Errorf("data %ss: %s is not as in data %s", m.typeName, pattern, m.typeName)
			}
			delete(shownPaths, pattern)
		})
		for pattern := range shownPaths {
			t.Errorf("data %ss lacks %s", m.typeName, pattern)
		}
	}
}

// What a core asks for whenever it starts must not grow with every data source of
// a schema of thousands of attributes: the list of all is one value.
func TestListsAreOneValueToACore(t *testing.T) {
	resp, err := NewServer("test").GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range resp.Diagnostics {
		t.Fatalf("%s: %s", d.Summary, d.Detail)
	}
	for _, name := range []string{"domain", "network", "pool", "volume"} {
		found := false
		for _, a := range resp.DataSourceSchemas["libvirt_"+name+"s"].Block.Attributes {
			if a.Name == name+"s" {
				found = a.NestedType == nil && a.Computed
			}
		}
		if !found {
			t.Errorf("data libvirt_%ss is nested", name)
		}
	}
}

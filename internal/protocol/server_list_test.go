package protocol

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// listable are machines that a core can list.
type listable struct {
	identified
	fail bool
}

var listType = tree.ObjectOf(&tree.Attribute{Name: "prefix", Type: tree.StringType, Optional: true})

func (listable) ListType() *tree.Type { return listType }

func (listable) ValidateList(_ context.Context, config tree.Value) (d Diagnostics) {
	if config.Attr("prefix").Str() == "bad" {
		d.AddError(tree.ParsePath("prefix"), "Not a prefix", "Write another.")
	}
	return d
}

func (l listable) List(_ context.Context, req ListRequest, found func(Listed) bool) (d Diagnostics) {
	for _, name := range []string{"a", "b", "broken", "c"} {
		one := Listed{Name: name, State: obj("uuid", "u-"+name)}
		if req.Whole {
			one.State = one.State.With("name", tree.StringValue(name))
		}
		if name == "broken" {
			one.Diagnostics.AddError(nil, "broken cannot be read", "Mend it.")
		}
		if strings.HasPrefix(name, req.Config.Attr("prefix").Str()) && !found(one) {
			return d
		}
	}
	if l.fail {
		d.AddError(nil, "the host went away", "Wait.")
	}
	return d
}

// listing serves machines that can be listed.
func listing(t *testing.T, fail bool) (host, tfprotov6.ListResourceServer) {
	t.Helper()
	h := host{t, NewServer(newFallback(), []Resource{listable{identified{newMachines()}, fail}}, nil)}
	lists, is := h.server.(tfprotov6.ListResourceServer)
	if !is {
		t.Fatal("the server lists nothing")
	}
	return h, lists
}

func (h host) listConfig(v tree.Value) *tfprotov6.DynamicValue {
	h.t.Helper()
	w, err := newCodec(listType).encode(v)
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

func TestListResources(t *testing.T) {
	for _, c := range []struct {
		what   string
		config tree.Value
		whole  bool
		limit  int64
		fail   bool
		want   []string // display names; "!" before one with an error, "!" alone for an error of all
	}{
		{"all", obj(), false, 0, false, []string{"a", "b", "!broken", "c"}},
		{"whole", obj(), true, 100, false, []string{"a", "b", "!broken", "c"}},
		{"some", obj("prefix", "b"), true, 100, false, []string{"b", "!broken"}},
		{"a limit", obj(), false, 2, false, []string{"a", "b"}},
		{"none", obj("prefix", "x"), false, 100, false, nil},
		{"a failure at the end", obj("prefix", "c"), false, 100, true, []string{"c", "!"}},
	} {
		h, lists := listing(t, c.fail)
		stream, err := lists.ListResource(t.Context(), &tfprotov6.ListResourceRequest{
			TypeName: "test_machine", Config: h.listConfig(c.config), IncludeResource: c.whole, Limit: c.limit,
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for one := range stream.Results {
			name := one.DisplayName
			if len(one.Diagnostics) > 0 {
				name = "!" + name
				if one.Identity != nil || one.Resource != nil {
					t.Errorf("%s: %s has an error and is there", c.what, one.DisplayName)
				}
			} else if h.uuidOf(one.Identity) != "u-"+one.DisplayName || (one.Resource != nil) != c.whole {
				t.Errorf("%s: %s is %v, %v", c.what, one.DisplayName, one.Identity, one.Resource)
			}
			got = append(got, name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

// A core that wants no more is asked for no more.
func TestListResourcesStops(t *testing.T) {
	h, lists := listing(t, true)
	stream, err := lists.ListResource(t.Context(), &tfprotov6.ListResourceRequest{TypeName: "test_machine", Config: h.listConfig(obj())})
	if err != nil {
		t.Fatal(err)
	}
	for one := range stream.Results {
		if one.DisplayName != "a" {
			t.Errorf("got %q", one.DisplayName)
		}
		break
	}
}

func TestListResourceSchemas(t *testing.T) {
	h, lists := listing(t, false)
	schemas, err := h.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil || schemas.ListResourceSchemas["test_machine"] == nil {
		t.Errorf("%v: no schema of the list: %v", err, schemas.ListResourceSchemas)
	}
	meta, err := h.server.GetMetadata(t.Context(), &tfprotov6.GetMetadataRequest{})
	if err != nil || !slices.Contains(meta.ListResources, tfprotov6.ListResourceMetadata{TypeName: "test_machine"}) {
		t.Errorf("%v: the list is not announced: %v", err, meta.ListResources)
	}
	for _, c := range []struct {
		config tree.Value
		errors int
	}{{obj("prefix", "a"), 0}, {obj("prefix", "bad"), 1}} {
		resp, err := lists.ValidateListResourceConfig(t.Context(), &tfprotov6.ValidateListResourceConfigRequest{TypeName: "test_machine", Config: h.listConfig(c.config)})
		if err != nil || len(resp.Diagnostics) != c.errors {
			t.Errorf("%s: %v, %v", c.config, err, resp.Diagnostics)
		}
	}
	// Without an identity there is nothing to import by.
	plain := NewServer(newFallback(), []Resource{newMachines()}, nil)
	schemas, err = plain.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil || schemas.ListResourceSchemas["test_machine"] != nil {
		t.Errorf("%v: a type that has no list has the schema of one", err)
	}
}

package protocol

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestPrivateRoundTrip(t *testing.T) {
	p := Private{}
	type record struct {
		Name string
		Max  uint64
	}
	in := record{"web", 1<<64 - 1}
	if err := p.Set("driftsafe.baseline", in); err != nil {
		t.Fatal(err)
	}
	if err := p.Set("driftsafe.empty", nil); err != nil {
		t.Fatal(err)
	}
	stored, err := p.encode()
	if err != nil {
		t.Fatal(err)
	}
	got := decodePrivate(stored)
	var out record
	if ok, err := got.Get("driftsafe.baseline", &out); !ok || err != nil || out != in {
		t.Errorf("read %+v, %v, %v", out, ok, err)
	}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, []string{"driftsafe.baseline", "driftsafe.empty"}) {
		t.Errorf("keys %v", keys)
	}
	if ok, err := got.Get("driftsafe.none", &out); ok || err != nil {
		t.Errorf("a record that is not there: %v, %v", ok, err)
	}
	var number int
	if _, err := got.Get("driftsafe.baseline", &number); err == nil || !strings.Contains(err.Error(), "driftsafe.baseline") {
		t.Errorf("an object was read as a number: %v", err)
	}
	copied := got.Clone()
	copied.Delete("driftsafe.baseline")
	if len(copied) != 1 || len(got) != 2 {
		t.Errorf("clone %v of %v", copied, got)
	}
	if Private(nil).Clone() == nil {
		t.Error("the clone of nothing cannot be written to")
	}
}

func TestPrivateRefuses(t *testing.T) {
	p := Private{}
	for _, key := range []string{"guard", "", formKey} {
		if err := p.Set(key, 1); err == nil || !strings.Contains(err.Error(), "begin with driftsafe.") {
			t.Errorf("%q: %v", key, err)
		}
	}
	if err := p.Set("driftsafe.x", func() {}); err == nil || len(p) > 0 {
		t.Errorf("a function was stored: %v", err)
	}
}

// TestForeignPrivateData: what others left is ignored, and never an error.
func TestForeignPrivateData(t *testing.T) {
	for _, stored := range []string{
		"", "null", "{}", "[]", `"x"`, "not JSON", "\xff\xfe", `{"schema_version":"2","e2bfb730-ecaa-11e6-8f88-34363bc7c4c0":{"create":1200000000000}}`,
		`{".import_before_read":"dHJ1ZQ==","guard":"eyJuYW1lIjoid2ViIn0="}`, `{"driftsafe.baseline":"e30="}`, `{"driftsafe.form":2,"driftsafe.baseline":{}}`,
	} {
		if p := decodePrivate([]byte(stored)); p == nil || len(p) > 0 {
			t.Errorf("%s was read as %v", stored, p)
		}
	}
	if p := decodePrivate([]byte(`{"driftsafe.form":1,"driftsafe.a":1,"other":2}`)); len(p) != 1 || string(p["driftsafe.a"]) != "1" {
		t.Errorf("got %v", p)
	}
}

// TestFrameworkDiscardsOurs holds the form to what the plugin framework does
// with it: it reads an object of byte slices, and discards any other object.
func TestFrameworkDiscardsOurs(t *testing.T) {
	stored, err := Private{"driftsafe.text": json.RawMessage(`"abcd"`)}.encode()
	if err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(stored, &map[string][]byte{}) == nil || json.Unmarshal(stored, &map[string]any{}) != nil {
		t.Errorf("the framework would keep %s", stored)
	}
}

func TestPrivateIsClearedOrKept(t *testing.T) {
	before, err := Private{"driftsafe.a": json.RawMessage("1")}.encode()
	if err != nil {
		t.Fatal(err)
	}
	web := obj("name", "web")
	for _, c := range []struct {
		returned Private
		want     string
	}{{nil, string(before)}, {Private{}, ""}, {Private{"driftsafe.b": json.RawMessage("2")}, `{"driftsafe.b":2,"driftsafe.form":1}`}} {
		m := newMachines()
		m.OnRead = func(r ReadRequest) ReadResponse { return ReadResponse{State: r.State, Private: c.returned} }
		m.OnPlan = func(r PlanRequest) PlanResponse { return PlanResponse{Planned: r.Prior, Private: c.returned} }
		m.OnApply = func(r ApplyRequest) ApplyResponse { return ApplyResponse{State: r.Planned, Private: c.returned} }
		m.OnImport = func(ImportRequest) ImportResponse { return ImportResponse{State: web, Private: c.returned} }
		h := newHost(t, m)
		for rpc, got := range map[string][]byte{
			"read": h.read(web, before).Private, "plan": h.plan(web, web, before).PlannedPrivate, "apply": h.apply(web, web, web, before).Private,
		} {
			if string(got) != c.want {
				t.Errorf("%s returned %v: stored %s, want %s", rpc, c.returned, got, c.want)
			}
		}
	}
}

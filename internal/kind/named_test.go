package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

type object struct{ name, uuid string }

func (o object) Name() string { return o.name }
func (o object) UUID() string { return o.uuid }

// A data source names an object in one of two ways; of one that is not there, or
// goes while it is read, the message offers those that are.
func TestLookup(t *testing.T) {
	none, denied := errors.New("no such object"), errors.New("access denied")
	lan, wan := object{"lan", "u-1"}, object{"wan", "u-2"}
	by := func(key func(object) string) func(context.Context, string) (object, error) {
		return func(_ context.Context, written string) (object, error) {
			for _, o := range []object{lan, wan} {
				if key(o) == written {
					return o, nil
				}
			}
			return object{}, fmt.Errorf("look up: %w", none)
		}
	}
	for what, c := range map[string]struct {
		at, written string
		see, all    error
		found       string
		missing     bool
		says        string
	}{
		"by name":                 {at: "name", written: "lan", found: "lan u-1"},
		"by UUID":                 {at: "uuid", written: "u-2", found: "wan u-2"},
		"no such name":            {at: "name", written: "dmz", missing: true, says: "There are: lan, wan."},
		"no such UUID":            {at: "uuid", written: "u-3", missing: true, says: "There are: u-1 (lan), u-2 (wan)."},
		"it goes meanwhile":       {at: "name", written: "lan", see: none, missing: true, says: `no thing on the host here has name = "lan"`},
		"it cannot be read":       {at: "name", written: "lan", see: denied, says: "access denied"},
		"nor can what there were": {at: "name", written: "dmz", all: denied, says: "access denied"},
	} {
		s, err := Lookup[object, string]{
			Noun: "thing", Host: "here", ByName: by(object.Name), ByUUID: by(object.UUID),
			See:      func(_ context.Context, o object) (string, error) { return o.name + " " + o.uuid, c.see },
			All:      func(context.Context) ([]object, error) { return []object{wan, lan}, c.all },
			NotFound: func(err error) bool { return errors.Is(err, none) },
		}.Find(context.Background(), tree.NullValue.With(c.at, tree.StringValue(c.written)))
		var missing *MissingError
		switch {
		case c.found != "":
			if err != nil || s != c.found {
				t.Errorf("%s: %q, %v", what, s, err)
			}
		case err == nil || errors.As(err, &missing) != c.missing || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.says)):
			t.Errorf("%s: missing %v, %v; want %q", what, missing != nil, err, c.says)
		case c.missing && missing.Problem.Path.String() != c.at:
			t.Errorf("%s: it is about %s", what, missing.Problem.Path)
		}
	}
}

func TestRefuseStranger(t *testing.T) {
	const uuid = "6a8d8f3c-7c2a-4f0e-9d53-1f2e3d4c5b6a"
	state := func(name, uuid string) tree.Value {
		v := tree.NullValue.With("name", tree.StringValue(name))
		if uuid != "" {
			v = v.With("uuid", tree.StringValue(uuid))
		}
		return v
	}
	for what, c := range map[string]struct {
		state   tree.Value
		refused bool
	}{
		"the same":                    {state("lan", uuid), false},
		"a UUID in capitals":          {state("lan", strings.ToUpper(uuid)), false},
		"a state that knows no UUID":  {state("lan", ""), false},
		"another name":                {state("dmz", uuid), true},
		"another name, and no UUID":   {state("dmz", ""), true},
		"another UUID":                {state("lan", "7"+uuid[1:]), true},
		"a state that knows no name":  {tree.NullValue.With("uuid", tree.StringValue(uuid)), true},
		"nothing of it is as it was":  {state("dmz", "7"+uuid[1:]), true},
		"a state that knows nothing":  {tree.NullValue, true},
		"a name that differs by case": {state("LAN", uuid), true},
	} {
		err := RefuseStranger("network", c.state, "lan", uuid)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil && !strings.Contains(err.Error(), `Refusing to destroy network "lan": it is not the one in the state`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestUnlessGone(t *testing.T) {
	gone, denied := &GoneError{Noun: "network", Name: "lan", Err: errors.New("no such network")}, errors.New("access denied")
	if err := UnlessGone(fmt.Errorf("look: %w", gone)); err != nil {
		t.Errorf("what is gone: %v", err)
	}
	if err := UnlessGone(denied); !errors.Is(err, denied) {
		t.Errorf("what cannot be seen: %v", err)
	}
	if err := UnlessGone(nil); err != nil {
		t.Error(err)
	}
}

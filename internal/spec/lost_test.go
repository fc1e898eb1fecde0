package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// What no document holds is refused where somebody asks for it, and names its
// place; where a definition has it already, other changes go on.
func TestLostValuesAreRefused(t *testing.T) {
	const path = "devices.disks[0].backing_store.source.nvme.pci.namespace"
	v := plant(tree.NullValue, tree.ParsePath(path), tree.IntValue(1))
	_, err := Domain().Encode(v)
	var ve *ValueError
	if !errors.As(err, &ve) || ve.Path.String() != path || !strings.Contains(ve.Reason, "no type nvme") {
		t.Errorf("got %v", err)
	}
	const xml = `<domain><name>a</name></domain>`
	named := func(v tree.Value, name string) tree.Value { return v.With("name", tree.StringValue(name)) }
	if _, err := Domain().Edit(xml, named(tree.NullValue, "a"), named(v, "a")); !errors.As(err, &ve) {
		t.Errorf("an edit that adds it: got %v", err)
	}
	if got, err := Domain().Edit(xml, named(v, "a"), named(v, "b")); err != nil || !strings.Contains(got, "<name>b</name>") {
		t.Errorf("an edit beside it: got %s, %v", got, err)
	}
}

// A row of the table must still name a place that documents lose.
func TestLostRowsAreAlive(t *testing.T) {
	for _, row := range domainOverrides.lost {
		one, alive := &overrides{lost: []lost{row}}, 0
		for pattern, f := range Domain().Fields {
			if one.lostReason(pattern) == "" {
				continue
			}
			alive++
			if f.Lost != row.reason {
				t.Errorf("%s: another row says %q", pattern, f.Lost)
			}
		}
		if alive == 0 || row.reason == "" {
			t.Errorf("%q names %d fields, for the reason %q", row.suffix, alive, row.reason)
		}
	}
}

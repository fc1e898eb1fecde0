package domain

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A domain whose first start failed has nothing to lose until it runs, by
// whoever's hand.
func TestFirstStartFailed(t *testing.T) {
	const unknown, shutdown, destroyed, crashed, migrated, saved, failed, snapshot, daemon = 0, 1, 2, 3, 4, 5, 6, 7, 8 // libvirt's numbers
	begin := beginning(false, true)
	known := begin.With("power_reason", tree.StringValue("failed"))
	for what, c := range map[string]struct {
		before  tree.Value
		power   virt.State
		reason  int
		failed  bool
		started bool
	}{
		"QEMU refused it":           {begin, virt.StateShutoff, failed, true, false},
		"libvirt refused it before": {begin, virt.StateShutoff, unknown, true, false},
		"it still does":             {known, virt.StateShutoff, failed, true, false},
		"it runs":                   {known, virt.StateRunning, 1, false, true},
		"it ran, and was shut down": {known, virt.StateShutoff, shutdown, false, true},
		"libvirt had refused it, it ran, was shut down": {begin, virt.StateShutoff, shutdown, false, true},
		"it ran, and was stopped hard":                  {known, virt.StateShutoff, destroyed, false, true},
		"it ran, and crashed":                           {known, virt.StateShutoff, crashed, false, true},
		"it ran, and is somewhere else":                 {known, virt.StateShutoff, migrated, false, true},
		"it ran, and is saved":                          {known, virt.StateShutoff, saved, false, true},
		"it has what a snapshot held":                   {known, virt.StateShutoff, snapshot, false, true},
		"it ran, and the daemon lost it":                {known, virt.StateShutoff, daemon, false, true},
		"the daemon has forgotten":                      {known, virt.StateShutoff, unknown, false, false},
		"it ran once":                                   {known.With("started", tree.BoolValue(true)), virt.StateShutoff, failed, false, true},
		"it never failed":                               {beginning(false, false), virt.StateShutoff, failed, false, false},
		"it never failed, and ran":                      {beginning(false, false), virt.StateShutoff, shutdown, false, true},
	} {
		status := (&sight{name: "web", power: c.power, reason: c.reason, persistent: true}).facts(c.before).Status
		if got := New(nil).NeverUsed(tree.NullValue.With("status", status)); got != c.failed {
			t.Errorf("%s: never used %v, want %v", what, got, c.failed)
		}
		if got := status.Attr("started").Bool(); got != c.started {
			t.Errorf("%s: started %v, want %v", what, got, c.started)
		}
	}
}

func TestFormatTakenForGranted(t *testing.T) {
	machine := func(formats ...string) tree.Value {
		var disks []tree.Value
		for i, format := range formats {
			disk := tree.NullValue.SetAt("target.dev", tree.StringValue("vd"+string(rune('a'+i)))).SetAt("driver.name", tree.StringValue("qemu"))
			if format != "" {
				disk = disk.SetAt("driver.type", tree.StringValue(format))
			}
			disks = append(disks, disk)
		}
		return tree.NullValue.SetAt("devices.disks", tree.ListValue(disks))
	}
	for name, tc := range map[string]struct{ guest, definition, want tree.Value }{
		"none named":      {machine("raw", "raw"), machine("", "raw"), machine("", "raw")},
		"another in fact": {machine("qcow2"), machine(""), machine("qcow2")},
		"named":           {machine("raw"), machine("qcow2"), machine("raw")},
		"plugged in":      {machine("raw", "raw"), machine("raw"), machine("raw", "raw")},
		"no disks":        {tree.NullValue, machine(""), tree.NullValue},
	} {
		if got := withoutFormats(tc.guest, tc.definition); !tree.Equal(got, tc.want) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

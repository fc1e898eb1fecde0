package domain

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// keys are the ways in which the elements of a list are known, best first; one
// may take several paths together. Elements of other lists, and those that say
// none of these, are matched by their content.
var keys = map[string][][]string{
	"devices.disks[]":                   {{"target.dev"}},
	"devices.interfaces[]":              {{"mac.address"}},
	"devices.controllers[]":             {{"type", "index"}},
	"devices.filesystems[]":             {{"target.dir"}},
	"devices.serials[]":                 {{"target.port"}, {"alias.name"}},
	"devices.parallels[]":               {{"target.port"}, {"alias.name"}},
	"devices.consoles[]":                {{"target.port"}, {"alias.name"}},
	"devices.channels[]":                {{"target.virt_io.name"}, {"alias.name"}},
	"devices.shmems[]":                  {{"name"}},
	"devices.audios[]":                  {{"id"}},
	"devices.leases[]":                  {{"lockspace", "key"}},
	"extra_xml[]":                       {{"path"}},
	"cpu.features[]":                    {{"name"}},
	"cpu.numa.cell[]":                   {{"id"}},
	"clock.timer[]":                     {{"name"}},
	"cpu_tune.vcpu_pin[]":               {{"vcpu"}},
	"cpu_tune.io_thread_pin[]":          {{"io_thread"}},
	"io_thread_i_ds.io_threads[]":       {{"id"}},
	"numa_tune.mem_nodes[]":             {{"cell_id"}},
	"sec_label[]":                       {{"model"}},
	"perf.events[]":                     {{"name"}},
	"block_io_tune.device[]":            {{"path"}},
	"vcpus.vcpu[]":                      {{"id"}},
	"os.firmware_info.features[]":       {{"name"}},
	"throttle_groups.throttle_groups[]": {{"group_name"}},
}

func keysOf(pattern string, elem tree.Value) []string {
	if pattern == inputPlug.list+"[]" && isInherent(elem) {
		return []string{"ps2 " + elem.Attr("type").Str()}
	}
	ways := keys[pattern]
	out := make([]string, len(ways))
	for i, way := range ways {
		var parts []string
		for _, path := range way {
			if v := elem.At(path); v.IsKnown() {
				parts = append(parts, strings.ToLower(strings.Trim(v.String(), `"`)))
			}
		}
		if len(parts) == len(way) {
			out[i] = strings.Join(parts, " ")
		}
	}
	return out
}

// elementOf is what identifies the element of a list that a path leads to, or
// into.
func elementOf(p tree.Path, list string) (key string, ok bool) {
	for i, step := range p {
		if step.Attr == "" && p[:i].Pattern() == list {
			return step.Key, true
		}
	}
	return "", false
}

// ordered are the lists in which the place of an element is what it means.
var ordered = map[string]bool{
	"os.boot_devices": true, "os.acpi.tables": true, "qemu_commandline.args": true, "bhyve_commandline.args": true, "xen_commandline.args": true,

	// libvirt makes the first element where nobody named one, and QEMU takes
	// only one primary video device, and one listener of a display.
	"devices.videos": true, "devices.graphics[].vnc.listeners": true, "devices.graphics[].spice.listeners": true, "devices.graphics[].rdp.listeners": true,
}

func isOrdered(pattern string) bool { return ordered[pattern] }

// kept are paths that stay as they are when the configuration names them no
// more: without them the machine would become another one.
var kept = []string{
	"autostart", "running", "memory", "memory_unit", "os.type", "os.type_machine", "os.type_arch",
	"os.loader", "os.loader_type", "os.loader_readonly", "os.loader_secure", "os.loader_stateless", "os.loader_format", "os.nv_ram", "os.firmware",
	"devices.disks[].wwn", "devices.disks[].serial",
}

func isKept(pattern string) bool {
	for _, k := range kept {
		if within(pattern, k) {
			return true
		}
	}
	return strings.Contains(pattern, "].address.") || strings.HasSuffix(pattern, "].alias.name")
}

// follows are what libvirt or the provider adapts when a path of the root
// changes.
func follows(pattern string) []string {
	switch pattern {
	case "running":
		return []string{"id"}
	case "memory":
		return []string{"current_memory", "current_memory_unit"}
	case "vcpu":
		return []string{"vcpus", "vcpu_current"}
	case "os.type_machine":
		return append([]string{"devices.controllers", "cpu", "features"}, places()...)
	}
	return nil
}

// tiers say how drift is treated, by the longest prefix of the pattern.
var tiers = []struct {
	prefix string
	tier   change.Tier
	reason string
}{
	{"uuid", change.TierLocked, "identity"},
	{"type", change.TierLocked, "the hypervisor that runs it"},
	{"name", change.TierModification, "people and scripts that renamed it know it by the new one"},
	{"os.type_arch", change.TierLocked, "the architecture its disks were installed for"},
	{"os.loader", change.TierLocked, "firmware: the installed system may not boot with another"},
	{"os.loader_type", change.TierLocked, "firmware, likewise"},
	{"os.loader_readonly", change.TierLocked, "firmware, likewise"},
	{"os.loader_secure", change.TierLocked, "firmware, likewise"},
	{"os.loader_stateless", change.TierLocked, "firmware, likewise"},
	{"os.loader_format", change.TierLocked, "firmware, likewise"},
	{"os.firmware_info", change.TierLocked, "firmware, likewise"},
	{"os.nv_ram", change.TierLocked, "boot entries and keys of the installed system"},
	{"os.firmware", change.TierLocked, "firmware: the installed system may not boot with another"},
	{"devices.tpms", change.TierLocked, "holds keys of the installed system"},
	{"memory", change.TierModification, "works as it is; somebody sized it on purpose"},
	{"current_memory", change.TierModification, "works as it is; somebody sized it on purpose"},
	{"maximum_memory", change.TierModification, "works as it is; somebody sized it on purpose"},
	{"vcpu", change.TierModification, "works as it is; somebody sized it on purpose"},
	{"vcpu_current", change.TierModification, "works as it is; somebody sized it on purpose"},
	{"cpu", change.TierModification, "the guest runs with it"},
	{"os", change.TierModification, "the guest boots with it"},
	{"devices.disks", change.TierModification, "data"},
}

func tier(pattern string) change.Tier {
	best, longest := change.TierRoutine, -1
	for _, t := range tiers {
		if within(pattern, t.prefix) && len(t.prefix) > longest {
			best, longest = t.tier, len(t.prefix)
		}
	}
	return best
}

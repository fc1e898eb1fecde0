package domain

import (
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// unowned are attributes that no aspect owns, each with its reason. All else has
// an owner, who says what a change of it does to a running guest, and why.
var unowned = map[string]string{
	"adopt": setting, "change": setting, "create": setting, "destroy": setting, "protect": setting, "status": setting, "update": setting,

	"id": "libvirt gives it to every guest that it starts; nobody asks for one",

	"bhyve_commandline": otherHypervisor, "bootloader": otherHypervisor, "bootloader_args": otherHypervisor, "id_map": otherHypervisor,
	"lxc_namespace": otherHypervisor, "vmware_data_center_path": otherHypervisor, "xen_commandline": otherHypervisor,

	"clock": started, "features": started, "gen_id": started, "hwuuid": started, "iommu_fd": started, "key_wrap": started,
	"launch_security": started, "os": started, "pm": started, "qemu_capabilities": started, "qemu_commandline": started, "qemu_deprecation": started,
	"qemu_override": started, "sec_label": started, "sys_info": started,
}

const (
	setting         = "it speaks to the provider, and is not on the host"
	otherHypervisor = "it belongs to a hypervisor whose running guests libvirt cannot change"
	started         = "libvirt has no call that changes it in a running guest; it is an argument that QEMU is started with"
)

// Whoever adds an attribute says what a change of it does to a running guest.
func TestNothingIsLeftWithoutAnOwner(t *testing.T) {
	owned, left := map[string]bool{}, map[string][]string{}
	resourceType().Walk(func(pattern string, a *tree.Attribute) {
		if a.Type.Kind == tree.Object || pattern == "devices" {
			return
		}
		steps := strings.Split(strings.ReplaceAll(pattern, "[]", ""), ".")
		name := steps[0]
		if name == "devices" {
			name += "." + steps[1]
		}
		if aspectOf(pattern) == nil {
			left[name] = append(left[name], pattern)
		} else {
			owned[name] = true
		}
	})
	if len(owned) < 60 {
		t.Fatalf("only %d attributes have an owner", len(owned))
	}
	for name, patterns := range left {
		if unowned[name] == "" {
			t.Errorf("nobody owns %s: an aspect has to, or there is a reason why none does", patterns)
		}
	}
	for name := range unowned {
		if len(left[name]) == 0 {
			t.Errorf("%s has a reason why nobody owns it, and has an owner or does not exist", name)
		}
	}
}

// Every kind of device that comes and goes is in both lists: with one alone it
// would be judged and not plugged, or the other way round.
func TestEveryPlugIsAnAspect(t *testing.T) {
	for _, p := range plugs {
		owner := aspectOf(p.list)
		if owner == nil || owner.live == nil || owner.name != p.noun {
			t.Errorf("%s has the owner %+v", p.list, owner)
		}
	}
	for _, a := range aspects {
		for _, pattern := range a.owns {
			isPlug := slices.ContainsFunc(plugs, func(p *plug) bool { return p.list == pattern })
			if strings.HasPrefix(pattern, "devices.") && a.live != nil && !isPlug && !strings.Contains(pattern, "mem_balloon") {
				t.Errorf("%s changes %s live, and is no plug", a.name, pattern)
			}
		}
	}
}

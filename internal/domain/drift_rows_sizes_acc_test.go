package domain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// inflate is an action that ends when the guest has 112 MiB.
func inflate(flags string) action {
	return func(t testing.TB, name string) {
		t.Helper()
		virsh("setmem $ 112M "+flags)(t, name)
		for end := time.Now().Add(time.Minute); !strings.Contains(lab.Virsh(t, "dumpxml", name), "<currentMemory unit='KiB'>114688<"); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the guest of %s does not give its memory back", name)
			}
		}
	}
}

func TestAccDrift_sizes(t *testing.T) {
	core := acctest.Case(t, "memory and vCPUs that somebody changed, in the definition, in the guest or in both, are held, with their digest and the line that agrees")
	const sizes = `current_memory = 120
  current_memory_unit = "MiB"
  vcpu_current = 1`
	group{
		machines: []machine{
			{name: "size-config", vcpu: 2, more: sizes}, {name: "size-live", vcpu: 2, more: sizes}, {name: "size-both", vcpu: 2, more: sizes},
			{name: "size-off", off: true},
		},
		rows: []row{
			{on: "size-config", does: "setmem --config", act: virsh("setmem $ 112M --config"),
				sees:    map[string]string{"current_memory": "114688", "current_memory_unit": "KiB"},
				held:    []hold{{"current_memory", "modification", "125829120 bytes", "117440512 bytes", "current_memory = 112"}},
				pending: []string{"current_memory"}, waits: []string{"current_memory"},
				definition: []string{"<currentMemory unit='KiB'>114688<"}, guest: []string{"<currentMemory unit='KiB'>122880<"}},
			{on: "size-config", does: "setmaxmem --config", act: virsh("setmaxmem $ 192M --config"),
				sees:    map[string]string{"memory": "196608", "memory_unit": "KiB"},
				held:    []hold{{"memory", "modification", "134217728 bytes", "201326592 bytes", "memory = 192"}},
				pending: []string{"memory"}, waits: []string{"memory"},
				definition: []string{"<memory unit='KiB'>196608<"}, guest: []string{"<memory unit='KiB'>131072<"}},
			{on: "size-config", does: "setvcpus --config", act: virsh("setvcpus $ 2 --config"),
				sees:    map[string]string{"vcpu_current": "2"},
				held:    []hold{{"vcpu_current", "modification", "1", "2", "vcpu_current = 2"}},
				pending: []string{"vcpu_current"}, waits: []string{"vcpu_current"}},
			{on: "size-live", does: "setmem --live", act: inflate("--live"),
				sees:    map[string]string{"current_memory": "120"},
				held:    []hold{{"current_memory", "modification", "125829120 bytes", "117440512 bytes", ""}},
				pending: []string{"current_memory"}, waits: []string{"current_memory"},
				definition: []string{"<currentMemory unit='KiB'>122880<"}, guest: []string{"<currentMemory unit='KiB'>114688<"}},
			{on: "size-live", does: "setvcpus --live", act: virsh("setvcpus $ 2 --live"),
				sees: map[string]string{"vcpu_current": "1"},
				// Taken out of an emulated guest, a CPU would be lost: it waits.
				pending: []string{"vcpu_current"}, waits: []string{"vcpu_current"}},
			{on: "size-both", does: "setmem --live --config", act: inflate("--live --config"),
				held: []hold{{"current_memory", "modification", "125829120 bytes", "117440512 bytes", "current_memory = 112"}}},
			{on: "size-both", does: "setvcpus --live --config", act: virsh("setvcpus $ 2 --live --config"),
				held: []hold{{"vcpu_current", "modification", "1", "2", "vcpu_current = 2"}}},
			{on: "size-off", does: "setmaxmem --config", act: virsh("setmaxmem $ 192M --config"),
				sees: map[string]string{"memory": "196608", "memory_unit": "KiB"},
				held: []hold{{"memory", "modification", "134217728 bytes", "201326592 bytes", "memory = 192"}}},
			{on: "size-off", does: "setvcpus --maximum --config", act: virsh("setvcpus $ 4 --maximum --config"),
				sees: map[string]string{"vcpu": "4"},
				held: []hold{{"vcpu", "modification", "1", "4", "vcpu = 4"}}},
		},
	}.run(t, core)
}

package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// What configuration, old state and host say is the same, and is written in as many
// ways as there are. Whoever writes otherwise than the host, nothing is planned.

// A spelling is a way to write a machine.
type spelling struct {
	machine  func(versioned string) string // its type, of that which the host has
	memory   int
	unit     string
	mac      func(string) string
	permuted bool // disks and interfaces the other way round
	sparse   bool // only what is compared here
}

// alias is the short name of a versioned type of machine.
func alias(versioned string) string {
	if strings.HasPrefix(versioned, "pc-q35-") {
		return "q35"
	}
	return "pc"
}

func asItIs(s string) string { return s }

var waysToWrite = map[string]struct{ config, state spelling }{
	"the configuration writes otherwise": {
		config: spelling{machine: alias, memory: 128, unit: "MiB", mac: strings.ToUpper, permuted: true, sparse: true},
		state:  spelling{machine: asItIs, memory: 128 << 10, unit: "KiB", mac: asItIs},
	},
	"the state writes otherwise": {
		config: spelling{machine: asItIs, memory: 128 << 10, unit: "KiB", mac: asItIs},
		state:  spelling{machine: alias, memory: 128 << 20, unit: "bytes", mac: strings.ToUpper, permuted: true},
	},
	"the configuration has no unit": {
		config: spelling{machine: alias, memory: 128 << 10, mac: strings.ToUpper},
		state:  spelling{machine: asItIs, memory: 128, unit: "MiB", mac: strings.ToUpper},
	},
	"both write otherwise, in the same way": {
		config: spelling{machine: alias, memory: 128, unit: "MiB", mac: strings.ToUpper, permuted: true},
		state:  spelling{machine: alias, memory: 128, unit: "MiB", mac: strings.ToUpper, permuted: true},
	},
	"both write otherwise, each in its way": {
		config: spelling{machine: alias, memory: 128 << 20, unit: "bytes", mac: strings.ToUpper, sparse: true},
		state:  spelling{machine: alias, memory: 128, unit: "MiB", mac: strings.ToUpper, permuted: true},
	},
}

// of writes a machine that way. versioned is the type that the host has.
func (s spelling) of(config attrs, versioned string) attrs {
	out := attrs{"name": config["name"], "type": config["type"], "memory": s.memory, "vcpu": config["vcpu"]}
	if s.unit != "" {
		out["memory_unit"] = s.unit
	}
	was := config["devices"].(attrs)
	nics, disks := slices.Clone(was["interfaces"].([]attrs)), slices.Clone(was["disks"].([]attrs))
	for i, nic := range nics {
		with := attrs{}
		for name, v := range nic {
			with[name] = v
		}
		if mac, given := nic["mac"].(attrs); given {
			with["mac"] = attrs{"address": s.mac(strings.ToLower(mac["address"].(string)))}
		}
		nics[i] = with
	}
	if s.permuted {
		slices.Reverse(nics)
		slices.Reverse(disks)
	}
	os := attrs{"type": "hvm", "type_machine": s.machine(versioned)}
	devices := attrs{"interfaces": nics, "disks": disks}
	if !s.sparse {
		for name, v := range config["os"].(attrs) {
			if os[name] == nil {
				os[name] = v
			}
		}
		for name, v := range was {
			if devices[name] == nil {
				devices[name] = v
			}
		}
		out["features"], out["clock"] = config["features"], config["clock"]
	}
	out["os"], out["devices"] = os, devices
	return out
}

// TestTakeOver_spelledOtherwise plays them with libvirt's simulated host; the cores
// and a real one are in the acceptance case.
func TestTakeOver_spelledOtherwise(t *testing.T) {
	m := atSimulatedHost(t)["libvirt_domain"]
	for _, versioned := range []string{"pc-i440fx-9.0", "pc-q35-9.0"} {
		name := "spelled-" + versioned
		nics, disks, xml := []attrs{}, []attrs{}, ""
		for i, which := range []string{"a", "b"} {
			mac, model, dev := fmt.Sprintf("52:54:00:91:07:f%d", i), []string{"virtio", "e1000"}[i], "vd"+which
			xml += fmt.Sprintf("<disk type='file' device='disk'><source file='/%s'/><target dev='%s' bus='virtio'/></disk><interface type='network'><mac address='%s'/><source network='default'/><model type='%s'/></interface>", which, dev, mac, model)
			nics = append(nics, attrs{"mac": attrs{"address": mac}, "model": attrs{"type": model}, "source": attrs{"network": attrs{"network": "default"}}})
			disks = append(disks, attrs{"source": attrs{"file": attrs{"file": "/" + which}}, "target": attrs{"dev": dev, "bus": "virtio"}})
		}
		dom, err := m.data.Host().DefineDomain(t.Context(), fmt.Sprintf("<domain type='test'><name>%s</name><memory unit='MiB'>128</memory><vcpu>1</vcpu><os><type arch='i686' machine='%s'>hvm</type></os><features><acpi/></features><clock offset='utc'/><devices>%s</devices></domain>", name, versioned, xml), virt.DefineFlags{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = dom.Undefine(context.Background(), virt.UndefineFlags{}) })
		whole := attrs{"name": name, "type": "test", "vcpu": 1, "os": attrs{"type_arch": "i686"}, "features": attrs{"acpi": true}, "clock": attrs{"offset": "utc"},
			"devices": attrs{"interfaces": nics, "disks": disks}}
		for way, s := range waysToWrite {
			t.Run(versioned+", "+way, func(t *testing.T) {
				stored := s.state.of(whole, versioned)
				stored["uuid"] = dom.UUID()
				text, err := json.Marshal(stored)
				if err != nil {
					t.Fatal(err)
				}
				var config tree.Value
				configText, err := json.Marshal(s.config.of(whole, versioned))
				if err == nil {
					err = json.Unmarshal(configText, &config)
				}
				if err != nil {
					t.Fatal(err)
				}
				state, plan := take(t, m, string(text), config)
				clean(t, "plan", plan.Diagnostics)
				if !tree.Equal(plan.Planned, state) {
					t.Errorf("the plan changes\n%s\nto\n%s", state, plan.Planned)
				}
				more := config.With("memory", tree.IntValue(1))
				if _, plan := take(t, m, string(text), more); tree.Equal(plan.Planned, state) {
					t.Error("another size is no difference")
				}
			})
		}
	}
}

package adopt

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// The corpus of package spec has definitions written by hand, and beside each
// what libvirt made of it. What is left of the latter has to be what was written.
const corpusDir = "../spec/testdata/corpus"

func essences() []*Essence {
	emulator := func(arch, _, _ string) string {
		return "/usr/bin/qemu-system-" + strings.Replace(arch, "i686", "i386", 1)
	}
	return []*Essence{
		Domain(spec.Domain().Type(), emulator), Network(spec.Network().Type()), Pool(spec.Pool().Type()), Volume(spec.Volume().Type()),
	}
}

// added are leaves that nobody wrote and that are written all the same, with the
// reason.
var added = map[string]map[string]string{
	"domain": {
		"os.type_machine":                  "libvirt chose the version; the machine is to keep it",
		"os.type_arch":                     "the machine is to keep it",
		"vcpu":                             "a person writes it",
		"memory":                           "of a machine with NUMA cells or modules, libvirt adds them up",
		"memory_unit":                      "with memory",
		"devices.disks[].driver.type":      "a format that is guessed is a risk",
		"devices.disks[].target.bus":       "follows from the name, and says it",
		"devices.interfaces[].mac.address": "leases and the guest know it",
		"devices.interfaces[].model.type":  "libvirt chose it; the machine is to keep it",
		"devices.videos[].model.type":      "libvirt chose it; the machine is to keep it",
		"devices.tpms[].model":             "libvirt chose it; the machine is to keep it",
		"devices.serials[].source.pty":     "a console that was written is a serial port",
		"devices.consoles[].source.pty":    "the console of a second serial port",
		"devices.consoles[].target.port":   "likewise",
		"devices.consoles[].target.type":   "likewise",
		"devices.graphics[].vnc.auto_port": "says what no port means",
		"devices.panics[]":                 "the device, of the standard model",
		"sec_label[].model":                "libvirt says whose label it is",
		"cpu.mode":                         "a CPU with NUMA distances or features has one",
		"cpu.check":                        "libvirt chose it",
	},
	"network": {"forward.dev": "the only interface, said first", "forward.mode": "an empty forward means nat"},
	"pool": {
		"name": "libvirt took the source's", "source.format.type": "libvirt chose it", "target.path": "libvirt chose it",
	},
	"volume": {
		"capacity": "the real one", "capacity_unit": "the real one", "target.format.type": "libvirt chose it",
		"target.cluster_size_unit": "with the size",
	},
}

// odd are definitions that are spelt on purpose as libvirt does not, or to find
// what it does with nonsense.
var odd = []string{"unusual-spelling", "odds-and-ends", "numa-hmat", "cputune", "features-tcg", "interface-hostdev-usb"}

// explained are additions of single definitions.
var explained = map[string]string{
	"domain disks-encrypted devices.disks[].encryption.engine":                            "libvirt chose it",
	"domain disks-encrypted devices.disks[].source.encryption.engine":                     "libvirt chose it",
	"domain disks-other-sources devices.disks[].snapshot":                                 "libvirt says it of a disk that cannot be in one",
	"domain disks-other-sources devices.disks[].source.nvme.pci.managed":                  "a yes that is said",
	"domain disks-backing-sources devices.disks[].backing_store.source.encryption.engine": "libvirt chose it",
	"domain disks-network devices.disks[].source.network.hosts[].port":                    "libvirt writes the protocol's port",
	"domain interfaces-direct devices.interfaces[].source.direct.mode":                    "libvirt chose it",
	"domain interfaces-user-and-sockets devices.interfaces[].source.user":                 "libvirt drops the device that user networking cannot have",
	"domain device-details devices.interfaces[].source.ethernet.ip[].family":              "libvirt says it",
	"domain ppc64-pseries features.hpt.max_page_size":                                     "1 MiB, in the unit that libvirt writes it in",
	"domain ppc64-pseries features.hpt.max_page_size_unit":                                "likewise",
	"domain numa-hugepages vcpu_cpuset":                                                   "the same set, in order",
}

// leaves calls f for what says something: scalars, and objects and lists in
// which nothing is.
func leaves(v tree.Value, f func(pattern string, v tree.Value)) {
	v.Walk(func(p tree.Path, node tree.Value) bool {
		if node.Kind() != tree.Object && node.Kind() != tree.List || node.Len() == 0 {
			f(p.Pattern(), node)
		}
		return true
	})
}

func readCorpus(t *testing.T, root *spec.Root, file string) tree.Value {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v, err := root.Decode(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestCorpus shows that of what libvirt made of a definition, what is left is no
// more than what was written, but for what is explained; that it can be given to
// libvirt; and that nothing more goes when it is asked for again.
func TestCorpus(t *testing.T) {
	for _, e := range essences() {
		files, err := filepath.Glob(filepath.Join(corpusDir, e.root.Name, "*.dump.xml"))
		if err != nil || len(files) < 15 {
			t.Fatalf("%s: %d definitions, %v", e.root.Name, len(files), err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".dump.xml")
			if strings.HasSuffix(name, ".refreshed") {
				continue
			}
			t.Run(e.root.Name+"/"+name, func(t *testing.T) {
				written := e.inLargestUnits(e.typ, nil, readCorpus(t, e.root, filepath.Join(filepath.Dir(file), name+".xml")))
				left := e.Of(readCorpus(t, e.root, file))
				if again := e.Of(left); !tree.Equal(left, again) {
					t.Errorf("what is left of what is left differs:\n%s\n%s", left, again)
				}
				if _, err := e.root.Encode(left); err != nil {
					t.Errorf("what is left cannot be given to libvirt: %v", err)
				}
				if slices.Contains(odd, name) {
					return
				}
				e.expectWritten(t, name, written, left)
			})
		}
	}
}

// expectWritten fails the test for each leaf that nobody wrote.
func (e *Essence) expectWritten(t *testing.T, name string, written, left tree.Value) {
	t.Helper()
	have := map[string][]tree.Value{}
	leaves(written, func(pattern string, v tree.Value) { have[pattern] = append(have[pattern], v) })
	leaves(left, func(pattern string, v tree.Value) {
		same := func(w tree.Value) bool { return tree.Equal(v, w) || e.root.Equal(pattern, v, w) }
		if i := slices.IndexFunc(have[pattern], same); i >= 0 {
			have[pattern] = slices.Delete(have[pattern], i, i+1)
			return
		}
		if added[e.root.Name][pattern] == "" && explained[e.root.Name+" "+name+" "+pattern] == "" {
			t.Errorf("%s = %s: nobody wrote it", pattern, v)
		}
	})
}

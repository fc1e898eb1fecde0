package provider

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// notTaken is what libvirt does not take of a definition of the corpus, by the
// file and the field. A creation that asks for it fails, names it and takes the
// object back. All else that libvirt gives back in another spelling counts as
// what was asked for.
var notTaken = []struct{ kind, file, pattern, reason string }{
	{"domain", "backends-console", "devices.consoles[]", "libvirt numbers consoles anew, and they are known by their numbers"},
	{"domain", "cputune", "cpu_tune.vcpu_sched[].vcpus", "libvirt makes one entry of each CPU of a range"},
	{"domain", "device-details", "devices.disks[].source.block.sec_label[]", "left out: there is no SELinux on the host"},
	{"domain", "device-details", "devices.graphics[].spice.auto_port", "left out: it listens nowhere"},
	{"domain", "disks-backing-sources", "devices.disks[].backing_store.source.startup_policy", "left out: it is for the disk's own source"},
	{"domain", "disks-virtio-options", "devices.disks[].source.index", "left out: of the running guest only"},
	{"domain", "graphics-spice", "devices.graphics[].spice.channel[]", "left out: channels of the mode that is the standard"},
	{"domain", "interfaces-user-and-sockets", "devices.interfaces[].source.user.dev", "left out: for the backend passt, of later versions"},
	{"domain", "backends-redirdev", "devices.redir_devs[].source", "left out: labels of this device's source"},
	{"domain", "backends-rng", "devices.rngs[].backend.egd.source", "left out: labels of this device's source"},
	{"domain", "memory-devices", "memory", "libvirt adds the memory devices up"},
	{"domain", "memory-virtio-pmem", "memory", "libvirt adds the memory devices up"},
	{"domain", "numa-hmat", "cpu.numa.cell[].caches[].size.unit", "libvirt forgets the unit, and the size is another one then"},
	{"domain", "odds-and-ends", "clock.offset", "an adjusted offset is a variable one"},
	{"domain", "ppc64-pseries", "features.hpt.max_page_size", "the number is text in the schema of the incumbent, and is compared to the letter"},
	{"domain", "ppc64-pseries", "features.hpt.max_page_size_unit", "the number is text in the schema of the incumbent, and is compared to the letter"},
	{"volume", "dir", "capacity", "a directory has no size"},
	{"volume", "qcow2-backing", "target.permissions.label", "left out: the host has no labels"},
	{"volume", "qcow2-backing-raw", "backing_store.permissions.mode", "read from the file"},
	{"volume", "qcow2-nocow", "target.no_cow", "the file system has no such flag"},
	{"volume", "vpc", "capacity", "rounded up to what the format can say; a volume's size is compared with what was asked for"},
}

// What libvirt 9.0 made of the corpus counts as what each definition asked for:
// a creation is confirmed, and the plan after it is empty.
func TestEveryFieldOfTheCorpus(t *testing.T) {
	used := make([]bool, len(notTaken))
	for _, s := range subjects() {
		dir := filepath.Join("..", "spec", "testdata", "corpus", s.Noun())
		files, err := filepath.Glob(filepath.Join(dir, "*.dump.xml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no corpus in %s: %v", dir, err)
		}
		taken, reports := 0, map[string]bool{}
		for _, l := range s.leaves() {
			reports[l.pattern] = !l.settable
		}
		for _, dump := range files {
			name := strings.TrimSuffix(filepath.Base(dump), ".dump.xml")
			written := filepath.Join(dir, name+".xml")
			if strings.Contains(name, ".") {
				continue
			}
			config, errConfig := s.decodeFile(written)
			actual, errActual := s.decodeFile(dump)
			if errConfig != nil || errActual != nil {
				t.Errorf("%s: %v, %v", name, errConfig, errActual)
				continue
			}
			config = change.Without(config, func(pattern string) bool { return reports[pattern] })
			var exempt []string
			for i, row := range notTaken {
				if row.kind == s.Noun() && row.file == name {
					exempt = append(exempt, row.pattern)
					used[i] = used[i] || s.differs(config, actual, row.pattern)
				}
			}
			for _, p := range s.Rules().Unmet(s.Type(), tree.NullValue, config, actual) {
				if !slices.ContainsFunc(exempt, func(e string) bool { return within(p.Pattern(), e) }) {
					t.Errorf("%s %s: %s is not taken: %s became %s", s.Noun(), name, p, config.Get(p), actual.Get(p))
				}
			}
			taken++
			if len(exempt) == 0 {
				s.staysQuiet(t, name, config, actual)
			}
		}
		t.Logf("%s: %d definitions", s.Noun(), taken)
	}
	for i, row := range notTaken {
		if !used[i] {
			t.Errorf("libvirt takes %s of %s %s now (%s)", row.pattern, row.kind, row.file, row.reason)
		}
	}
}

func (s *subject) decodeFile(file string) (tree.Value, error) {
	xml, err := os.ReadFile(file)
	if err != nil {
		return tree.NullValue, err
	}
	return s.root.Decode(string(xml))
}

func (s *subject) differs(config, actual tree.Value, pattern string) bool {
	return slices.ContainsFunc(s.Rules().Unmet(s.Type(), tree.NullValue, config, actual), func(p tree.Path) bool { return within(p.Pattern(), pattern) })
}

// staysQuiet plans again after a creation.
func (s *subject) staysQuiet(t *testing.T, name string, config, actual tree.Value) {
	order := change.Order{Rules: s.Rules(), Type: s.Type(), Config: config, Planned: config}
	state := order.Settle(tree.NullValue, actual)
	r := s.Rules().Plan(change.Input{
		Type: s.Type(), Object: name, Config: config, Prior: state, Baseline: actual, Actual: actual,
		Owned: order.Identify(state),
	})
	if got := told(r); got != "" || !tree.Equal(r.Planned, state) {
		t.Errorf("%s %s: the plan after the creation says %q", s.Noun(), name, got)
	}
}

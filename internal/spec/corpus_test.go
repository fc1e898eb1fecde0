package spec_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// The corpus is testdata/corpus/KIND/NAME.xml: definitions written by hand, and
// beside each, in NAME.dump.xml, what libvirt 9.0.0 with QEMU 7.2 made of it.
// For a volume, NAME.refreshed.dump.xml is what libvirt says after it looked at
// the file again, if that differs. TestAccCorpus… write the dumps with -update.
const corpusDir = "testdata/corpus"

var update = flag.Bool("update", false, "rewrite the dumps of the corpus (with TF_ACC, from a real libvirtd)")

func TestMain(m *testing.M) { lab.Main(m, nil) }

// A kind is one root with what the tests of the corpus need to know of it.
type kind struct {
	name  string
	root  func() *spec.Root
	least int    // definitions in the corpus
	edit  string // an attribute that any document may have
}

var kinds = []kind{
	{"domain", spec.Domain, 90, "description"},
	{"network", spec.Network, 18, "domain.name"},
	{"pool", spec.Pool, 22, "target.permissions.label"},
	{"volume", spec.Volume, 16, "target.permissions.label"},
}

// corpus returns the file names of a kind that end in suffix, without it.
func corpus(t testing.TB, kind, suffix string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpusDir, kind, "*.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		name, fits := strings.CutSuffix(filepath.Base(f), suffix)
		if fits && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

func corpusFile(t testing.TB, kind, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(corpusDir, kind, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// dumps returns the names of all files of a kind that libvirt wrote.
func dumps(t testing.TB, kind string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpusDir, kind, "*.dump.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	return files
}

// readable returns the dumps of a kind that libvirtxml can read.
func readable(t testing.TB, k kind) (names []string) {
	t.Helper()
	for _, name := range dumps(t, k.name) {
		if unreadable[k.name+"/"+strings.TrimSuffix(name, ".dump.xml")] == "" {
			names = append(names, name)
		}
	}
	return names
}

// throughTree is the round trip: XML → tree → XML.
func throughTree(t testing.TB, root *spec.Root, xml string) string {
	t.Helper()
	v, err := root.Decode(xml)
	if err != nil {
		t.Fatal(err)
	}
	out, err := root.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A loss is a place that does not survive XML → tree → XML. An update keeps it
// all the same (Edit); it can only not be configured.
type loss struct {
	kind, place string
	how         how
	reason      string
}

type how int

const (
	lost    how = iota // with all below it, or replaced
	respelt            // the same number, written in another way
	emptied            // an empty element or attribute appears, which libvirt ignores
)

var losses = []loss{
	{"domain", "/domain/devices/disk/backingStore/backingStore", lost, "a type inside itself ends the tree"},
	{"domain", "/domain/devices/interface/source/address", lost, "libvirtxml forgets the USB address of an interface of type hostdev"},
	{"domain", "/domain/devices/redirdev/log", lost, "unknown to libvirtxml"},
	{"domain", "/domain/devices/rng/backend/log", lost, "unknown to libvirtxml"},
	{"domain", "/domain/features/capabilities/dac_read_search", lost, "libvirtxml spells it dac_read_Search"},
	{"domain", "/domain/os/root", lost, "unknown to libvirtxml; libvirt keeps it, QEMU has no use for it"},
	{"domain", "/domain/devices/interface/source", emptied, "libvirtxml writes a source for the type null"},
	{"domain", "/domain/devices/controller/target/@port", respelt, "decimal in libvirtxml"},
	{"domain", "/domain/devices/controller/address/@reg", respelt, "without leading zeros in libvirtxml"},
	{"domain", "/domain/devices/nvram/address/@reg", respelt, "without leading zeros in libvirtxml"},
	{"domain", "/domain/devices/tpm/address/@reg", respelt, "without leading zeros in libvirtxml"},
	{"domain", "/domain/devices/hostdev/address/zpci/@fid", respelt, "with fewer zeros in libvirtxml"},
	{"domain", "/domain/devices/redirfilter/usbdev/@product", respelt, "in lower case in libvirtxml"},
	{"network", "/network/portgroup/bandwidth", lost, "unknown to libvirtxml"},
	{"network", "/network/virtualport/parameters", emptied, "libvirtxml writes them for openvswitch"},
	{"network", "/network/portgroup/virtualport/parameters", emptied, "libvirtxml writes them for openvswitch"},
	{"pool", "/pool/source/adapter/@parent_wwnn", lost, "unknown to libvirtxml"},
	{"pool", "/pool/source/adapter/@parent_wwpn", lost, "unknown to libvirtxml"},
	{"pool", "/pool/source/adapter/@parent_fabric_wwn", lost, "unknown to libvirtxml"},
	{"volume", "/volume/target/encryption/secret/@usage", lost, "libvirtxml knows secrets by UUID only"},
	{"volume", "/volume/target/encryption/secret/@uuid", emptied, "libvirtxml knows secrets by UUID only"},
	{"volume", "/volume/target/timestamps/btime", lost, "unknown to libvirtxml; measured by libvirt"},
	{"volume", "/volume/backingStore/timestamps", lost, "unknown to libvirtxml; measured by libvirt"},
}

// refused are the definitions that libvirt does not take back from the tree,
// because of a loss.
var refused = map[string]string{
	"domain/interface-hostdev-usb": "Missing required attribute 'bus'",
	"volume/qcow2-luks":            "invalid secret uuid",
}

// unreadable are the definitions that libvirtxml gives up on. The tree leaves
// out what it stumbles over; TestUnreadableSurvivesAnEdit holds that an update
// keeps it all the same.
var unreadable = map[string]string{
	// libvirtxml has no nvme among the types of a backing store.
	"domain/disks-backing-nvme": "did not consume entire <source> element",
}

func TestUnreadableSurvivesAnEdit(t *testing.T) {
	for name, why := range unreadable {
		xml := corpusFile(t, "domain", strings.TrimPrefix(name, "domain/")+".dump.xml")
		if err := documents["domain"]().Unmarshal(xml); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: libvirtxml says %v: take it off the list", name, err)
		}
		v, err := spec.Domain().Decode(xml)
		if err != nil {
			t.Fatal(err)
		}
		edited, err := spec.Domain().Edit(xml, v, v.With("title", tree.StringValue("edited")))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes(factsOf(t, xml), factsOf(t, edited)) {
			if !strings.HasPrefix(unnumbered(c.place), "/domain/title") {
				t.Error(c)
			}
		}
	}
}

// lossOf returns the index of the loss that explains a change, or -1.
func lossOf(kind string, c change) int {
	place := unnumbered(c.place)
	return slices.IndexFunc(losses, func(l loss) bool {
		switch {
		case l.kind != kind:
			return false
		case l.how == respelt:
			return place == l.place && sameNumber(c.was, c.is)
		case l.how == emptied:
			return place == l.place && c.added && c.is == ""
		}
		return place == l.place || strings.HasPrefix(place, l.place+"/")
	})
}

func sameNumber(a, b string) bool {
	x, errX := strconv.ParseUint(a, 0, 64)
	y, errY := strconv.ParseUint(b, 0, 64)
	return errX == nil && errY == nil && x == y
}

// unexplained reports the changes that are no known loss, and returns the
// indexes of those that are.
func unexplained(t testing.TB, kind string, list []change) (known []int) {
	t.Helper()
	for _, c := range list {
		if i := lossOf(kind, c); i >= 0 {
			known = append(known, i)
		} else {
			t.Error(c)
		}
	}
	return known
}

func TestCorpusIsComplete(t *testing.T) {
	for _, k := range kinds {
		written, dumped := corpus(t, k.name, ".xml"), corpus(t, k.name, ".dump.xml")
		if len(written) < k.least {
			t.Errorf("%s: %d definitions, want at least %d", k.name, len(written), k.least)
		}
		if !slices.Equal(written, dumped) {
			t.Errorf("%s: definitions and dumps do not match:\n%v\n%v", k.name, written, dumped)
		}
	}
}

func TestCorpusSurvivesTheTree(t *testing.T) {
	seen := map[int]bool{}
	for _, k := range kinds {
		for _, name := range readable(t, k) {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				xml := corpusFile(t, k.name, name)
				list := changes(factsOf(t, xml), factsOf(t, throughTree(t, k.root(), xml)))
				for _, i := range unexplained(t, k.name, list) {
					seen[i] = true
				}
			})
		}
	}
	for i, l := range losses {
		if !seen[i] {
			t.Errorf("%s is listed as lost and is not: remove it from the list", l.place)
		}
	}
}

// An edit changes one place, and loses nothing, not even what the tree lacks.
func TestCorpusSurvivesAnEdit(t *testing.T) {
	for _, k := range kinds {
		for _, name := range readable(t, k) {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				xml := corpusFile(t, k.name, name)
				v, err := k.root().Decode(xml)
				if err != nil {
					t.Fatal(err)
				}
				same, err := k.root().Edit(xml, v, v)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range changes(factsOf(t, xml), factsOf(t, same)) {
					t.Errorf("an edit of nothing: %s", c)
				}
				other, err := k.root().Edit(xml, v, v.SetAt(k.edit, tree.StringValue("edited.example.com")))
				if err != nil {
					t.Fatal(err)
				}
				place := "/" + k.name + "/" + strings.ReplaceAll(k.edit, ".", "/")
				edited := false
				for _, c := range changes(factsOf(t, xml), factsOf(t, other)) {
					switch {
					case c.is == "edited.example.com":
						edited = true
					case c.added && c.is == "" && strings.HasPrefix(place, c.place):
					default:
						t.Errorf("an edit of %s: %s", k.edit, c)
					}
				}
				if !edited {
					t.Errorf("an edit of %s did nothing", k.edit)
				}
			})
		}
	}
}

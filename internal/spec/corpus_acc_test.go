package spec_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/beevik/etree"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/debian"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// Of these versions the dumps in the corpus are. On others a definition is
// compared only with itself.
const (
	dumpedLibvirt = "libvirt 9.0."
	dumpedQEMU    = "QEMU 7.2."
)

func TestAccCorpusDomain(t *testing.T) {
	acctest.Case(t, "every domain of the corpus keeps through the tree all that libvirt keeps of it")
	acceptCorpus(t, kinds[0], scripts{
		define: "define %[1]s",
		dump:   "dumpxml --inactive --security-info %[2]s",
		remove: "undefine --keep-nvram %[2]s",
	})
}

func TestAccCorpusNetwork(t *testing.T) {
	acctest.Case(t, "every network of the corpus keeps through the tree all that libvirt keeps of it")
	acceptCorpus(t, kinds[1], scripts{
		define: "net-define %[1]s",
		dump:   "net-dumpxml --inactive %[2]s",
		remove: "net-undefine %[2]s",
	})
}

func TestAccCorpusPool(t *testing.T) {
	acctest.Case(t, "every pool of the corpus keeps through the tree all that libvirt keeps of it")
	acceptCorpus(t, kinds[2], scripts{
		define: "pool-define %[1]s",
		dump:   "pool-dumpxml --inactive %[2]s",
		remove: "pool-undefine %[2]s",
	})
}

// volumePool holds the volumes of the corpus. /run is private to the host, so
// the directory can have the same name everywhere.
const volumePool = `<pool type="dir"><name>corpus</name><target><path>/run/corpus</path></target></pool>`

const volumeSecret = `<secret ephemeral="no" private="no">
  <uuid>c0de0004-0000-4000-8000-000000000001</uuid>
  <usage type="volume"><volume>corpus-volumes</volume></usage>
</secret>`

func TestAccCorpusVolume(t *testing.T) {
	acctest.Case(t, "every volume of the corpus keeps through the tree all that libvirt keeps of it")
	h := corpusHost(t)
	pool, secret, value := temporary(t, "pool.xml", volumePool), temporary(t, "secret.xml", volumeSecret), temporary(t, "value", "correct horse")
	virsh(t, h, "secret-define "+secret+"; secret-set-value --plain --file "+value+" c0de0004-0000-4000-8000-000000000001")
	virsh(t, h, "pool-define "+pool+"; pool-build corpus; pool-start corpus")
	acceptCorpus(t, kinds[3], scripts{
		define: "vol-create corpus %[1]s",
		dump:   "vol-dumpxml --pool corpus %[2]s",
		remove: "vol-delete --pool corpus %[2]s",
		once:   true,
	})
	virsh(t, h, "pool-refresh corpus")
	for _, name := range corpus(t, "volume", ".xml") {
		t.Run("refreshed/"+name, func(t *testing.T) {
			got := settle(virsh(t, h, "vol-dumpxml --pool corpus '"+nameIn(t, corpusFile(t, "volume", name+".xml"))+"'"))
			file := name + ".refreshed.dump.xml"
			differs := len(essential(changes(factsOf(t, corpusFile(t, "volume", name+".dump.xml")), factsOf(t, got)))) > 0
			if *update {
				writeDump(t, "volume", file, got, differs)
			}
			if !differs {
				file = name + ".dump.xml"
			}
			compareWithDump(t, h, "volume", file, got)
		})
	}
}

// scripts are what virsh does with a definition: %[1]s is its file, %[2]s its
// name.
type scripts struct {
	define, dump, remove string
	once                 bool // what libvirt gives back is never defined again
}

// acceptCorpus proves for every definition of a kind that the tree loses
// nothing that libvirt keeps: libvirt makes the same of a definition and of
// what the tree makes of that definition. That goes for the one that was
// written and for the one that libvirt then gives back. (The dumps of the two
// may differ: libvirt sorts devices anew whenever it reads a definition.)
func acceptCorpus(t *testing.T, k kind, s scripts) {
	h := corpusHost(t)
	for _, name := range inOrder(t, k.name) {
		t.Run(name, func(t *testing.T) {
			written := corpusFile(t, k.name, name+".xml")
			quoted := "'" + nameIn(t, written) + "'"
			there := false
			dump := func(xml string) (string, error) {
				script := s.define + "; " + s.dump
				if there {
					script = s.remove + "; " + script
				}
				there = true
				out, err := retry(h, fmt.Sprintf(script, temporary(t, "definition.xml", xml), quoted))
				return settle(out), err
			}
			mustDump := func(xml string) string {
				t.Helper()
				out, err := dump(xml)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			same := func(what, xml, want string) {
				t.Helper()
				got, err := dump(throughTree(t, k.root(), xml))
				if why := refused[k.name+"/"+name]; why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
					t.Errorf("%s, through the tree: listed as refused (%s), yet: %v", what, why, err)
				} else if why != "" {
					there = false
					mustDump(written)
					return
				}
				if err != nil {
					t.Fatalf("%s, through the tree: %v", what, err)
				}
				for _, c := range essential(changes(factsOf(t, want), factsOf(t, got))) {
					if lossOf(k.name, c) < 0 {
						t.Errorf("%s, through the tree: %s", what, c)
					}
				}
			}
			first := mustDump(written)
			if *update {
				writeDump(t, k.name, name+".dump.xml", first, true)
			}
			compareWithDump(t, h, k.name, name+".dump.xml", first)
			if unreadable[k.name+"/"+name] != "" {
				return
			}
			same("what was written", written, first)
			if !s.once && refused[k.name+"/"+name] == "" {
				same("what libvirt gives back", first, mustDump(first))
			}
		})
	}
}

// inOrder lists the definitions of a kind, those that stand on another last.
func inOrder(t *testing.T, kind string) []string {
	names := corpus(t, kind, ".xml")
	slices.SortStableFunc(names, func(a, b string) int {
		needs := func(name string) int { return strings.Count(corpusFile(t, kind, name+".xml"), "<path>/run/corpus/") }
		return needs(a) - needs(b)
	})
	return names
}

// compareWithDump compares with the dump in the corpus, if this host has the
// versions that wrote it.
func compareWithDump(t *testing.T, h *host.Host, kind, file, got string) {
	t.Helper()
	if v := virsh(t, h, "version"); !strings.Contains(v, dumpedLibvirt) || !strings.Contains(v, dumpedQEMU) {
		return
	}
	for _, c := range essential(changes(factsOf(t, corpusFile(t, kind, file)), factsOf(t, got))) {
		t.Errorf("%s in the corpus is not what this host says (-update rewrites it): %s", file, c)
	}
}

var times = regexp.MustCompile(`<([amc]time)>[0-9.]*<`)

// settle replaces what differs from run to run.
func settle(xml string) string {
	return times.ReplaceAllString(strings.TrimSpace(xml), "<$1>1700000000.000000001<") + "\n"
}

// essential leaves out how much of its file a volume happens to fill.
func essential(list []change) []change {
	return slices.DeleteFunc(list, func(c change) bool {
		return strings.HasPrefix(c.place, "/volume/allocation") || strings.HasPrefix(c.place, "/volume/physical")
	})
}

func nameIn(t *testing.T, xml string) string {
	t.Helper()
	doc := etree.NewDocument()
	if err := doc.ReadFromString(xml); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"name", "source/name"} { // a pool may be named after its source
		if e := doc.Root().FindElement(path); e != nil {
			return e.Text()
		}
	}
	t.Fatalf("no name in %s", xml)
	return ""
}

func temporary(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func writeDump(t *testing.T, kind, name, xml string, wanted bool) {
	t.Helper()
	file := filepath.Join(corpusDir, kind, name)
	err := os.WriteFile(file, []byte(xml), 0o644)
	if !wanted {
		err = os.Remove(file)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func virsh(t *testing.T, h *host.Host, script string) string {
	t.Helper()
	out, err := retry(h, script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// retry runs a script again when the machine was too busy for it.
func retry(h *host.Host, script string) (out string, err error) {
	for range 5 {
		out, err = h.Virsh(context.Background(), script)
		// qemu-img measures how many rounds a LUKS key needs.
		if err == nil || !strings.Contains(err.Error(), "Unable to get accurate CPU usage") {
			break
		}
	}
	return out, err
}

// backends are the parts of libvirt that Debian packs by themselves and that
// the pools of the corpus need.
func backends() (reqs []debian.Requirement) {
	for _, b := range []string{"gluster", "iscsi-direct", "rbd", "zfs"} {
		so := "/libvirt/storage-backend/libvirt_storage_backend_" + b + ".so"
		reqs = append(reqs, debian.Requirement{
			What:     "libvirt's storage backend for " + b,
			Files:    []string{"/usr/lib/*" + so, "/usr/lib*" + so},
			Packages: []string{"libvirt-daemon-driver-storage-" + b},
		})
	}
	return reqs
}

// foreign are the emulators of the corpus, other than for x86, and their
// packages.
var foreign = map[string]string{
	"qemu-system-aarch64": "qemu-system-arm",
	"qemu-system-ppc64":   "qemu-system-ppc",
	"qemu-system-riscv64": "qemu-system-misc",
	"qemu-system-s390x":   "qemu-system-misc",
}

var (
	prepared   sync.Once
	prepareErr error
)

// corpusHost is the host with all that the corpus needs.
func corpusHost(t *testing.T) *host.Host {
	t.Helper()
	prepared.Do(func() { prepareErr = prepareHost(t) })
	if prepareErr != nil {
		t.Fatal(prepareErr)
	}
	return lab.Host(t)
}

func prepareHost(t *testing.T) error {
	ctx := context.Background()
	archive := &debian.Archive{Log: os.Stderr}
	if err := archive.Ensure(ctx, backends()); err != nil {
		return err
	}
	h := lab.Host(t)
	dir, err := emulators(ctx, archive)
	if err != nil {
		return err
	}
	// Only this host gets the emulators: each one makes the start of every libvirt that sees it slower.
	if _, err := h.Exec(ctx, "mount", "-t", "overlay", "overlay", "-o", "lowerdir="+dir+":/usr/bin", "/usr/bin"); err != nil {
		return fmt.Errorf("give the host emulators: %w", err)
	}
	return h.RestartDaemon(ctx)
}

// emulators returns a directory with the foreign emulators, in the version of
// the one for x86. They are kept in the user's cache.
func emulators(ctx context.Context, archive *debian.Archive) (string, error) {
	said, err := exec.CommandContext(ctx, "qemu-system-x86_64", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask QEMU for its version: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	version := regexp.MustCompile(`[^0-9A-Za-z.+-]+`).ReplaceAllString(strings.SplitN(string(said), "\n", 2)[0], "-")
	dir := filepath.Join(cache, "terraform-provider-libvirt", "emulators-"+version)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "unpack-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	var packages []string
	for _, p := range foreign {
		packages = append(packages, p)
	}
	slices.Sort(packages)
	if err := archive.Unpack(ctx, tmp, slices.Compact(packages)...); err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(tmp, "bin"), 0o755); err != nil {
		return "", err
	}
	for name := range foreign {
		if err := os.Rename(filepath.Join(tmp, "usr/bin", name), filepath.Join(tmp, "bin", name)); err != nil {
			return "", err
		}
	}
	// Another process may have been faster, which is as good.
	if err := os.Rename(filepath.Join(tmp, "bin"), dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

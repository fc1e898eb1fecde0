package seed

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/debian"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/guest"
)

// What the acceptance cases here need on the machine.
var (
	needGenisoimage = debian.Requirement{What: "genisoimage", Files: []string{"genisoimage"}, Packages: []string{"genisoimage"}}
	needIsoinfo     = debian.Requirement{What: "isoinfo", Files: []string{"isoinfo"}, Packages: []string{"genisoimage"}}
	needXorriso     = debian.Requirement{What: "xorriso", Files: []string{"xorriso"}, Packages: []string{"xorriso"}}
	needBlkid       = debian.Requirement{What: "blkid", Files: []string{"blkid"}, Packages: []string{"util-linux"}}
	needPython      = debian.Requirement{What: "python3", Files: []string{"/usr/bin/python3"}, Packages: []string{"python3"}}
	needQEMU        = debian.Requirement{What: "QEMU for x86", Files: []string{"qemu-system-x86_64"}, Packages: []string{"qemu-system-x86"}}
)

func need(t *testing.T, reqs ...debian.Requirement) {
	t.Helper()
	if err := (&debian.Archive{Log: t.Output()}).Ensure(t.Context(), reqs); err != nil {
		t.Fatal(err)
	}
}

// run returns what a program prints; a failure ends the test.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	return runWith(t, exec.CommandContext(t.Context(), name, args...))
}

func runWith(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	// isoinfo and blkid are in sbin for some.
	cmd.Env = append(cmd.Environ(), "LC_ALL=C", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out.String(), errs.String())
	}
	return out.String()
}

// cloudInit unpacks cloud-init and the Python modules that it needs, without
// installing them: installed, it would set up this machine at its next boot. It
// returns the path for PYTHONPATH.
func cloudInit(t *testing.T) string {
	t.Helper()
	need(t, needPython, needIsoinfo, needBlkid)
	archive := &debian.Archive{Log: t.Output()}
	list := func() []string {
		packages := []string{"cloud-init"}
		for _, line := range strings.Fields(run(t, "apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests",
			"--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", "cloud-init")) {
			if strings.HasPrefix(line, "python3-") && !strings.Contains(line, ":") && !slices.Contains(packages, line) {
				packages = append(packages, line)
			}
		}
		return packages
	}
	packages := list()
	if len(packages) < 5 {
		if err := archive.Update(t.Context()); err != nil {
			t.Fatal(err)
		}
		packages = list()
	}
	dir := t.TempDir()
	if err := archive.Unpack(t.Context(), dir, packages...); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "usr/lib/python3/dist-packages")
}

// judge runs testdata/judge.py, without the modules that the machine itself has.
func judge(t *testing.T, modules string, stdin []byte, result any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", append([]string{"-S", "-B", "testdata/judge.py"}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+modules)
	cmd.Stdin = bytes.NewReader(stdin)
	out := runWith(t, cmd)
	if err := json.Unmarshal([]byte(out), result); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
}

func writeFile(t *testing.T, path string, b []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAccSeed_isoinfoAndBlkid(t *testing.T) {
	acctest.Case(t, "isoinfo finds the files of a seed by Rock Ridge, Joliet and plain names, blkid its label")
	need(t, needIsoinfo, needBlkid)
	iso := writeFile(t, filepath.Join(t.TempDir(), "seed.iso"), mustISO(t, sample()))
	about := run(t, "isoinfo", "-d", "-i", iso)
	for _, want := range []string{"Volume id: cidata\n", "Joliet with UCS level 3 found", "Rock Ridge signatures version 1 found"} {
		if !strings.Contains(about, want) {
			t.Errorf("isoinfo -d lacks %q:\n%s", want, about)
		}
	}
	for _, f := range sample().Files {
		for option, name := range map[string]string{"-R": f.Name, "-J": f.Name, "-l": strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")) + ".;1"} {
			if got := run(t, "isoinfo", option, "-x", "/"+name, "-i", iso); option != "-l" && got != string(f.Data) {
				t.Errorf("isoinfo %s -x /%s: %q", option, name, got)
			}
			if list := run(t, "isoinfo", option, "-f", "-i", iso); !slices.Contains(strings.Split(list, "\n"), "/"+name) {
				t.Errorf("isoinfo %s -f lacks /%s:\n%s", option, name, list)
			}
		}
	}
	if got := strings.Fields(run(t, "blkid", "-p", "-o", "export", iso)); !slices.Contains(got, "LABEL=cidata") || !slices.Contains(got, "TYPE=iso9660") {
		t.Errorf("blkid: %s", got)
	}
}

func TestAccSeed_otherGenerators(t *testing.T) {
	acctest.Case(t, "a seed that genisoimage, xorriso or cloud-localds wrote has the digest of ours")
	need(t, needGenisoimage, needXorriso)
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	var files []string
	for _, f := range sample().Files {
		files = append(files, writeFile(t, filepath.Join(source, f.Name), f.Data))
	}
	unpacked := t.TempDir()
	if err := (&debian.Archive{Log: t.Output()}).Unpack(t.Context(), unpacked, "cloud-image-utils"); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.iso")
	for name, args := range map[string][]string{
		"genisoimage, Rock Ridge and Joliet": {"genisoimage", "-quiet", "-V", "cidata", "-J", "-r", "-o", out, source},
		"genisoimage, Rock Ridge":            {"genisoimage", "-quiet", "-V", "cidata", "-R", "-o", out, source},
		"genisoimage, Joliet":                {"genisoimage", "-quiet", "-V", "cidata", "-J", "-o", out, source},
		"genisoimage, plain lower case":      {"genisoimage", "-quiet", "-V", "cidata", "-U", "-o", out, source},
		"xorriso":                            {"xorriso", "-as", "mkisofs", "-quiet", "-V", "cidata", "-J", "-r", "-o", out, source},
		"xorriso, files one by one":          append([]string{"xorriso", "-as", "mkisofs", "-quiet", "-V", "cidata", "-r", "-o", out}, files...),
		"cloud-localds": {filepath.Join(unpacked, "usr/bin/cloud-localds"), "--network-config", filepath.Join(source, FileNetworkConfig),
			out, filepath.Join(source, FileUserData), filepath.Join(source, FileMetaData)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
			run(t, args[0], args[1:]...)
			f, err := os.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			got, err := ReadISO(f, info.Size())
			if err != nil {
				t.Fatal(err)
			}
			if got.Digest() != sample().Digest() {
				t.Errorf("read %q %q, want %q", got.Label, got.Files, sample().Files)
			}
		})
	}
}

func TestAccSeed_cloudInitReads(t *testing.T) {
	acctest.Case(t, "cloud-init's NoCloud finds our volume and reads from it what was put in")
	modules := cloudInit(t)
	dir := t.TempDir()
	empty := ""
	upper := CloudInit("#!/bin/sh\n", "instance-id: upper\n", nil)
	upper.Label = "CIDATA"
	foreign := sample()
	foreign.Label = "other"
	var isos []string
	for i, s := range []Seed{sample(), CloudInit("", "instance-id: no-network\n", nil), CloudInit("", "instance-id: empty\n", &empty), upper, foreign} {
		isos = append(isos, writeFile(t, filepath.Join(dir, fmt.Sprint(i, ".iso")), mustISO(t, s)))
	}
	type answer struct {
		Found    bool           `json:"found"`
		UserData *string        `json:"user-data"`
		MetaData map[string]any `json:"meta-data"`
		Network  map[string]any `json:"network-config"`
	}
	var got []answer
	judge(t, modules, nil, &got, append([]string{"image"}, isos...)...)
	if len(got) != len(isos) {
		t.Fatalf("%d answers", len(got))
	}
	network := map[string]any{"version": 2.0, "ethernets": map[string]any{"eth0": map[string]any{"dhcp4": true}}}
	if a := got[0]; !a.Found || *a.UserData != sampleUser || a.MetaData["instance-id"] != "web-1" || !reflect.DeepEqual(a.Network, network) {
		t.Errorf("the sample: %+v", a)
	}
	for i, id := range map[int]string{1: "no-network", 2: "empty", 3: "upper"} {
		if a := got[i]; !a.Found || a.MetaData["instance-id"] != id || a.Network != nil {
			t.Errorf("seed %s: %+v", id, a)
		}
	}
	if got[4].Found {
		t.Error("a volume of another label was taken for a seed: this test shows nothing")
	}
}

func TestAccSeed_cloudInitAgrees(t *testing.T) {
	acctest.Case(t, "what we refuse is what cloud-init ignores or complains about, input by input")
	modules := cloudInit(t)
	type question struct {
		Kind string `json:"kind"`
		Text []byte `json:"text"`
	}
	var asked []input
	var questions []question
	for kind, inputs := range map[string][]input{FileUserData: userDataInputs, FileMetaData: metaDataInputs, FileNetworkConfig: networkInputs} {
		for _, in := range inputs {
			if !in.others {
				in.name = kind + "/" + in.name
				asked = append(asked, in)
				questions = append(questions, question{kind, []byte(in.text)})
			}
		}
	}
	stdin, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	var complaints [][]string
	judge(t, modules, stdin, &complaints, "inputs")
	if len(complaints) != len(asked) {
		t.Fatalf("%d answers to %d questions", len(complaints), len(asked))
	}
	for i, in := range asked {
		t.Run(in.name, func(t *testing.T) {
			complains := len(complaints[i]) > 0
			switch expected := (in.want != fine) != (in.lenient != ""); {
			case expected && !complains:
				t.Error("cloud-init has nothing to say")
			case !expected && complains:
				t.Errorf("cloud-init says %q", complaints[i])
			}
		})
	}
}

// The question of questions: a Linux guest's own isofs.
func TestAccSeed_guestReads(t *testing.T) {
	acctest.Case(t, "a Linux guest mounts a seed and finds label, names and contents")
	need(t, needQEMU)
	image, err := guest.Ensure(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	iso := writeFile(t, filepath.Join(t.TempDir(), "seed.iso"), mustISO(t, sample()))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-nodefaults", "-display", "none", "-no-reboot", "-m", "192", "-accel", "tcg",
		"-kernel", image.Kernel, "-initrd", image.Initrd, "-append", image.Cmdline, "-serial", "stdio",
		"-drive", "if=ide,media=cdrom,readonly=on,format=raw,file="+iso)
	console, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	want := map[string]string{}
	for _, f := range sample().Files {
		sum := sha256.Sum256(f.Data)
		want[f.Name] = hex.EncodeToString(sum[:])
	}
	type medium struct {
		Label string            `json:"label"`
		Files map[string]string `json:"files"`
	}
	var seen []string
	lines := newLines(console)
	for lines.Scan() {
		_, report, ok := strings.Cut(lines.Text(), "GUEST ")
		if !ok {
			continue
		}
		seen = append(seen, report)
		var state struct {
			CDs map[string]medium `json:"cds"`
		}
		if err := json.Unmarshal([]byte(report), &state); err != nil {
			continue // a line that the kernel talked into
		}
		for _, m := range state.CDs {
			if m.Label != "" || len(m.Files) > 0 {
				if m.Label != "cidata" || !reflect.DeepEqual(m.Files, want) {
					t.Errorf("the guest sees %+v, want cidata with %v", m, want)
				}
				return
			}
		}
	}
	t.Fatalf("the guest reported no CD: %v\n%s", lines.Err(), strings.Join(seen, "\n"))
}

func failed(what string, err error) func(*testing.T) {
	return func(t *testing.T) { t.Fatalf("%s: %v", what, err) }
}

// A full and a read-only file system exist only in a mount namespace of the
// thread that this test runs on.
func TestAccSeed_storeOnBadFileSystems(t *testing.T) {
	acctest.Case(t, "a store on a full or read-only file system says so, and leaves nothing behind")
	dir := t.TempDir()
	result := make(chan func(*testing.T), 8)
	go func() {
		defer close(result)
		fail := func(what string, err error) { result <- failed(what, err) }
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			fail("unshare (needs root)", err)
			return
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			fail("make mounts private", err)
			return
		}
		if err := unix.Mount("seed", dir, "tmpfs", 0, "size=128k,mode=0700"); err != nil {
			fail("mount", err)
			return
		}
		store := Store{dir: dir}
		first, err := store.Put("fits", sample()) // 56 KiB
		if err != nil {
			fail("the first seed", err)
			return
		}
		try := func(want error, says string) {
			_, err := store.Put("more", CloudInit(strings.Repeat("#", 100<<10), sampleMeta, nil))
			left, _ := os.ReadDir(dir)
			result <- func(t *testing.T) {
				if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), dir) || !errors.Is(err, want) {
					t.Errorf("error %v, want %v and %q", err, want, says)
				}
				if len(left) != 1 || left[0].Name() != filepath.Base(first.Path) {
					t.Errorf("the store holds %v", left)
				}
			}
		}
		try(syscall.ENOSPC, "free some space there, or set seed_store")
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			fail("remount", err)
			return
		}
		try(syscall.EROFS, "that this user may write to; the one in use is "+dir)
		again, err := store.Put("fits", sample())
		removing := Remove(first.Path)
		result <- func(t *testing.T) {
			if err != nil || again.Written {
				t.Errorf("a seed that is there already: %+v, %v", again, err)
			}
			if !errors.Is(removing, syscall.EROFS) || !strings.Contains(removing.Error(), first.Path) {
				t.Errorf("removing: %v", removing)
			}
		}
	}()
	n := 0
	for check := range result {
		check(t)
		n++
	}
	if n != 3 && !t.Failed() {
		t.Errorf("%d checks were made", n)
	}
}

func newLines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	return s
}

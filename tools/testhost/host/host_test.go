package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/debian"
)

func TestParseStat(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for _, name := range []string{"sh", "a b", "a) Z 1 (b", ""} {
		state, start, err := parseStat([]byte("42 (" + name + ")" + rest))
		if err != nil || state != 'S' || start != 4711 {
			t.Errorf("name %q: state %c, start %d, %v", name, state, start, err)
		}
	}
	for _, bad := range []string{"", "42 (sh) S 1", "42 sh S 1 2 3", "42 (sh)" + strings.Replace(rest, "4711", "x", 1)} {
		if _, _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestProcess(t *testing.T) {
	self, err := lookUp(os.Getpid())
	if err != nil || !self.alive() {
		t.Errorf("we are not alive: %v", err)
	}
	other := self
	other.start++
	if other.alive() {
		t.Error("a process with another start time is alive")
	}
	if (process{}).alive() {
		t.Error("no process is alive")
	}
	// A child that ended and was not waited for is a zombie, not alive.
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := process{pid: cmd.Process.Pid}
	for range 500 {
		if _, err = lookUp(p.pid); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !errors.Is(err, errNoProcess) {
		t.Errorf("a zombie gives %v", err)
	}
	cmd.Wait()
}

func TestGuestName(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"qemu", "-name", "guest=web,debug-threads=on", "-S"}, "web"},
		{[]string{"qemu", "-name", "guest=a,,b,debug-threads=on"}, "a,b"},
		{[]string{"qemu", "-name", "guest=a,,"}, "a,"},
		{[]string{"qemu", "-name", "guest=with space"}, "with space"},
		{[]string{"grep", "guest=web"}, ""},
		{[]string{"guest=web"}, ""},
	} {
		got, ok := guestName(c.args)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q: %q, %v; want %q", c.args, got, ok, c.want)
		}
	}
}

const reportLine = `GUEST {"uptime":3.25,"boot_id":"b1","hostname":"web-1","cpus":2,"mem_kib":210452,` +
	`"disks":{"vda":1073741824},"nics":{"52:54:00:00:00:01":"192.168.150.5","52:54:00:00:00:02":""},` +
	`"links":{"52:54:00:00:00:01":true,"52:54:00:00:00:02":false},` +
	`"cds":{"sr0":{"label":"cidata","files":{"user-data":"aa","meta-data":"bb"}}},"fw_cfg":{"opt/a/b":"cc"}}`

func TestNewestReport(t *testing.T) {
	want := Report{
		Uptime: 3.25, BootID: "b1", Hostname: "web-1", CPUs: 2, MemKiB: 210452,
		Disks: map[string]int64{"vda": 1 << 30},
		NICs:  map[string]string{"52:54:00:00:00:01": "192.168.150.5", "52:54:00:00:00:02": ""},
		Links: map[string]bool{"52:54:00:00:00:01": true, "52:54:00:00:00:02": false},
		CDs:   map[string]CD{"sr0": {Label: "cidata", Files: map[string]string{"user-data": "aa", "meta-data": "bb"}}},
		FwCfg: map[string]string{"opt/a/b": "cc"},
	}
	older := strings.Replace(reportLine, "3.25", "1.25", 1)
	for name, text := range map[string]string{
		"alone":              reportLine,
		"carriage returns":   "\r\n" + reportLine + "\r\n",
		"newest of two":      older + "\n" + reportLine + "\n",
		"before a cut one":   older + "\n" + reportLine + "\n" + reportLine[:80] + "\n",
		"among other things": "SeaBIOS\n" + reportLine + "\nlogin:\nGUEST speaks\nGUEST {}\n",
	} {
		if got, ok := newestReport([]byte(text)); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", name, got, ok)
		}
	}
	for _, text := range []string{"", "GUEST", "GUEST {\"uptime\":1}", reportLine[:100], "x " + reportLine} {
		if r, ok := newestReport([]byte(text)); ok {
			t.Errorf("%q gives %+v", text, r)
		}
	}
	if got := want.Seed()["user-data"]; got != "aa" {
		t.Errorf("seed's user-data %q", got)
	}
	if got := (Report{CDs: map[string]CD{"sr0": {Label: "config-2"}}}).Seed(); got != nil {
		t.Errorf("another CD is a seed: %v", got)
	}
}

func TestParseSerial(t *testing.T) {
	for _, c := range []struct{ name, devices, want string }{
		{"file", `<serial type="file"><source path="/a"/></serial>`, "log /a"},
		{"pty with log", `<serial type="pty"><source path="/dev/pts/1"/><log file="/b"/></serial>`, "log /b"},
		{"pty", `<serial type="pty"><source path="/dev/pts/1"/></serial>`, "pty /dev/pts/1"},
		{"console only", `<console type="file"><source path="/c"/></console>`, "log /c"},
		{"first that can be heard", `<serial type="unix"/><serial type="file"><source path="/d"/></serial>`, "log /d"},
		{"pty of a machine that is off", `<serial type="pty"/>`, "error"},
		{"none", ``, "error"},
		{"no XML", `<`, "error"},
	} {
		s, err := parseSerial([]byte("<domain><devices>" + c.devices + "</devices></domain>"))
		got := "error"
		switch {
		case err == nil && s.log != "":
			got = "log " + s.log
		case err == nil:
			got = "pty " + s.pty
		}
		if got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.name, got, err, c.want)
		}
	}
}

func TestFollow_fileGrowsAndBeginsAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	put := func(s string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("old\n")
	read, stop, err := (&Host{}).follow(t.Context(), serialSource{log: path})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, step := range []struct{ content, want string }{
		{"old\n", ""},
		{"old\nnew\n", "new\n"},
		{"x\n", "x\n"}, // shorter: the guest was started again
		{"x\ny\n", "y\n"},
	} {
		put(step.content)
		if got, err := read(); err != nil || string(got) != step.want {
			t.Errorf("content %q: got %q, %v; want %q", step.content, got, err, step.want)
		}
	}
	os.Remove(path)
	if got, err := read(); err != nil || got != nil {
		t.Errorf("absent file: got %q, %v", got, err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); err == nil {
		t.Error("no error for a directory")
	}
}

func TestPrepare_refuses(t *testing.T) {
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(used, "precious")
	for dir, want := range map[string]string{
		used:                                   "not empty",
		"/tmp/" + strings.Repeat("x", 100):     "characters too long",
		filepath.Join(t.TempDir(), "a b"):      "escaped",
		filepath.Join(t.TempDir(), "a?socket"): "escaped",
		file:                                   "not a directory",
	} {
		if err := prepare(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", dir, err, want)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a refusal removed something: %v", err)
	}
	for _, dir := range []string{"/run/testhost", "/run"} {
		if _, err := makeDir(dir); err == nil || !strings.Contains(err.Error(), "/run is private") {
			t.Errorf("%s: got %v", dir, err)
		}
	}
}

func TestAttach_refuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Attach(dir); err == nil || !strings.Contains(err.Error(), "not the directory of a host") {
		t.Errorf("an empty directory: %v", err)
	}
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Attach(dir); err == nil {
		t.Error("no error for a host that never started")
	}
	// The one whose directory goes is last.
	for _, c := range []struct{ content, want string }{{"nonsense", "read"}, {"1 99999999999", "not running"}} {
		for _, f := range []string{pidFile, outerPidFile} {
			if err := os.WriteFile(filepath.Join(dir, f), []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		h, err := Attach(dir)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.content, err)
		}
		// The pid is that of another process now: stopping must not touch it, and
		// removes what is left.
		if errors.Is(err, ErrNotRunning) {
			if err := h.Stop(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the directory stays: %v", err)
			}
		}
	}
}

func TestRemoveGroups(t *testing.T) {
	root := t.TempDir()
	group := filepath.Join(root, "testhost-1")
	if err := os.MkdirAll(filepath.Join(group, "machine/qemu-1/vcpu0"), 0o755); err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(50 * time.Millisecond)
	if err := removeGroups([]string{group, filepath.Join(root, "absent")}, soon); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group stays: %v", err)
	}
	// A directory that cannot be removed stands for a group that stays busy.
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(group, "busy"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := removeGroups([]string{group}, soon); err == nil {
		t.Error("no error for a busy group")
	}
}

func TestRequirements_eachCanBeInstalled(t *testing.T) {
	for _, r := range Requirements {
		if r.What == "" || len(r.Files) == 0 || len(r.Packages) == 0 {
			t.Errorf("incomplete: %+v", r)
		}
	}
	err := &debian.MissingError{Missing: Requirements[:1], Packages: []string{"libvirt-daemon"}}
	if got := fmt.Sprintf("start a host: %v", err); !strings.Contains(got, "libvirtd (package libvirt-daemon)") ||
		!strings.Contains(got, "apt-get install -y --no-install-recommends libvirt-daemon") {
		t.Error(got)
	}
}

func TestStart_needsRoot(t *testing.T) {
	geteuid = func() int { return 1000 }
	defer func() { geteuid = os.Geteuid }()
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "root") {
		t.Errorf("got %v", err)
	}
}

func TestScripts(t *testing.T) {
	for _, name := range []string{supervisorFile, insideFile} {
		if out, err := exec.Command("sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

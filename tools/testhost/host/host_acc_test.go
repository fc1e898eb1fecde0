package host

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
)

// ownerEnv makes the test binary the process that TestAccHost_ownerIsKilled
// kills: it starts a host with a guest, says so and waits.
const ownerEnv = "TESTHOST_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerEnv) == "" {
		os.Exit(m.Run())
	}
	if err := own(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func own(ctx context.Context) error {
	h, err := Start(ctx, Options{})
	if err != nil {
		return err
	}
	file := filepath.Join(h.Dir(), "domain.xml")
	if err := os.WriteFile(file, []byte(domainXML(h, "orphan", direct(h, ""), logged(h, "orphan"))), 0o644); err != nil {
		return err
	}
	if _, err := h.Virsh(ctx, "create", file); err != nil {
		return err
	}
	if _, err := h.GuestReport(ctx, "orphan", bootTimeout); err != nil {
		return err
	}
	fmt.Printf("guest runs in %s\n", h.Dir())
	time.Sleep(time.Hour)
	return nil
}

// acceptance registers the case. These need no core; they are shared among the
// processes all the same, as each takes a while.
func acceptance(t *testing.T) {
	t.Helper()
	what := strings.TrimPrefix(t.Name(), "TestAccHost_")
	acctest.Case(t, "the throwaway host itself: "+what)
}

// bootTimeout is generous: guests are emulated, and machines are busy.
const bootTimeout = 6 * time.Minute

func start(t *testing.T, o Options) *Host {
	t.Helper()
	acceptance(t)
	if o.Log == nil {
		o.Log = t.Output()
	}
	began := time.Now()
	h, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("host %s answers after %.2f s", h.Dir(), time.Since(began).Seconds())
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// leftovers is all that a host may leave behind.
func leftovers(dir string, groups []string) []string {
	var left []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(data), dir) && filepath.Dir(f) != fmt.Sprintf("/proc/%d", os.Getpid()) {
			left = append(left, "process "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	if strings.Contains(string(mounts), dir) {
		left = append(left, "mount")
	}
	for _, path := range append([]string{dir}, groups...) {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			left = append(left, path)
		}
	}
	return left
}

// domainXML describes a machine with the parts that the tests are about.
func domainXML(h *Host, name, boot, devices string) string {
	return fmt.Sprintf(`<domain type="qemu">
  <name>%s</name><memory unit="MiB">256</memory><vcpu current="1">2</vcpu>
  <os><type arch="x86_64" machine="q35">hvm</type>%s</os>
  <features><acpi/></features>
  <devices>
    <interface type="network"><source network="default"/><model type="virtio"/></interface>
    <channel type="unix"><target type="virtio" name="org.qemu.guest_agent.0"/></channel>
    %s
  </devices>
</domain>`, name, boot, devices)
}

func direct(h *Host, words string) string {
	g := h.Guest()
	return fmt.Sprintf("<kernel>%s</kernel><initrd>%s</initrd><cmdline>%s %s</cmdline>", g.Kernel, g.Initrd, g.Cmdline, words)
}

func logged(h *Host, name string) string {
	return fmt.Sprintf(`<serial type="pty"><log file="%s" append="on"/></serial>`, h.ConsoleLog(name))
}

func virsh(t *testing.T, h *Host, args ...string) string {
	t.Helper()
	out, err := h.Virsh(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// run defines and starts a machine and waits until its guest has an address.
func run(t *testing.T, h *Host, name, xml string) (Machine, Report) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "domain.xml")
	if err := os.WriteFile(file, []byte(xml), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	virsh(t, h, "define", file)
	virsh(t, h, "start", name)
	r, err := h.GuestReport(t.Context(), name, bootTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s reports after %.1f s: %+v", name, time.Since(began).Seconds(), r)
	r, err = h.WaitReport(t.Context(), name, bootTimeout, hasAddress)
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Domain(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return m, r
}

func hasAddress(r Report) bool {
	for _, ip := range r.NICs {
		if ip != "" {
			return true
		}
	}
	return false
}

// askAgent repeats a virsh command that needs the guest's agent until the agent
// answers: libvirt gives it five seconds, a busy machine needs more.
func askAgent(t *testing.T, h *Host, args ...string) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(bootTimeout); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if _, err = h.Virsh(t.Context(), args...); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func waitOff(t *testing.T, h *Host, name string) {
	t.Helper()
	for deadline := time.Now().Add(bootTimeout); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if _, err := h.Domain(t.Context(), name); !errors.Is(err, ErrShutOff) {
			continue
		}
		// libvirt hears of it a moment later.
		if state, err := h.Virsh(t.Context(), "domstate", name); err == nil && strings.TrimSpace(state) == "shut off" {
			return
		}
	}
	t.Fatalf("%s is not off", name)
}

// The plain life of a host with a guest: it reports, gets an address, answers
// by agent, is not touched by a daemon's restart, and obeys the power button.
func TestAccHost_directKernel(t *testing.T) {
	h := start(t, Options{})
	m, r := run(t, h, "one", domainXML(h, "one", direct(h, ""), logged(h, "one")))
	if r.CPUs != 1 || r.MemKiB < 150<<10 || r.MemKiB > 256<<10 || r.Hostname != "localhost" {
		t.Errorf("unexpected report %+v", r)
	}
	later, err := h.GuestReport(t.Context(), "one", bootTimeout)
	if err != nil || later.Uptime <= r.Uptime || later.BootID != r.BootID {
		t.Errorf("uptime went from %v to %v (boot %s, %s), %v", r.Uptime, later.Uptime, r.BootID, later.BootID, err)
	}
	for mac, ip := range r.NICs {
		for _, out := range []string{virsh(t, h, "net-dhcp-leases", "default"), virsh(t, h, "domifaddr", "one")} {
			if !strings.Contains(out, mac) || !strings.Contains(out, ip+"/24") {
				t.Errorf("no %s %s in %s", mac, ip, out)
			}
		}
	}
	askAgent(t, h, "qemu-agent-command", "one", `{"execute":"guest-ping"}`)

	daemon := h.daemonPid()
	if err := h.RestartDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h.daemonPid() == daemon {
		t.Error("libvirtd is the same process")
	}
	after, err := h.Domain(t.Context(), "one")
	if err != nil || after != m {
		t.Errorf("the restart of libvirtd made %+v of %+v, %v", after, m, err)
	}
	if r2, err := h.GuestReport(t.Context(), "one", bootTimeout); err != nil || r2.BootID != r.BootID {
		t.Errorf("after the restart of libvirtd: %+v, %v", r2, err)
	}

	virsh(t, h, "shutdown", "--mode", "acpi", "one")
	waitOff(t, h, "one")
	virsh(t, h, "start", "one")
	again, err := h.GuestReport(t.Context(), "one", bootTimeout)
	if err != nil || again.BootID == r.BootID {
		t.Errorf("a power cycle: boot %s, then %s, %v", r.BootID, again.BootID, err)
	}
	if m2, err := h.Domain(t.Context(), "one"); err != nil || (m2.PID == m.PID && m2.Start == m.Start) {
		t.Errorf("a power cycle made %+v of %+v, %v", m2, m, err)
	}
	if text, err := h.Console(t.Context(), "one"); err != nil || !strings.Contains(text, r.BootID) || !strings.Contains(text, again.BootID) {
		t.Errorf("the console does not hold both runs, %v", err)
	}
}

// A machine as people have them: disk image, seed on a SATA CD, bare pty. It
// grows while it runs.
func TestAccHost_diskAndSeed(t *testing.T) {
	h := start(t, Options{})
	disk := filepath.Join(h.PoolDir(), "two.qcow2")
	seed := filepath.Join(h.PoolDir(), "seed.iso")
	userData := "#cloud-config\nhostname: web-1\n"
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", h.Guest().Disk, disk, "1G").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	writeISO(t, seed, "cidata", map[string]string{"user-data": userData, "meta-data": "instance-id: i\nlocal-hostname: other\n"})
	_, r := run(t, h, "two", domainXML(h, "two", "", fmt.Sprintf(`<serial type="pty"/>
    <disk type="file"><driver name="qemu" type="qcow2"/><source file="%s"/><target dev="vda" bus="virtio"/></disk>
    <disk type="file" device="cdrom"><driver name="qemu" type="raw"/><source file="%s"/><target dev="sda" bus="sata"/><readonly/></disk>`, disk, seed)))
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(userData))); r.Seed()["user-data"] != want {
		t.Errorf("the seed's user-data is %s, want %s", r.Seed()["user-data"], want)
	}
	if r.Hostname != "web-1" || r.Disks["vda"] != 1<<30 {
		t.Errorf("unexpected report %+v", r)
	}
	if _, err := h.Console(t.Context(), "two"); err == nil || !strings.Contains(err.Error(), "<log file=") {
		t.Errorf("the console of a bare pty: %v", err)
	}

	virsh(t, h, "setvcpus", "two", "2", "--live")
	virsh(t, h, "attach-interface", "two", "network", "default", "--model", "e1000e", "--live")
	virsh(t, h, "change-media", "two", "sda", "--eject", "--live")
	virsh(t, h, "blockresize", "two", "vda", "2G")
	_, err := h.WaitReport(t.Context(), "two", bootTimeout, func(r Report) bool {
		addresses := 0
		for _, ip := range r.NICs {
			if ip != "" {
				addresses++
			}
		}
		return r.CPUs == 2 && addresses == 2 && r.Seed() == nil && r.Disks["vda"] == 2<<30
	})
	if err != nil {
		t.Error(err)
	}
	askAgent(t, h, "shutdown", "--mode", "agent", "two")
	waitOff(t, h, "two")
}

// UEFI starts the disk image too, and Debian's kernel directly.
func TestAccHost_uefi(t *testing.T) {
	h := start(t, Options{})
	disk := filepath.Join(h.PoolDir(), "efi.qcow2")
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", h.Guest().Disk, disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fromDisk := domainXML(h, "efi", "", logged(h, "efi")+fmt.Sprintf(
		`<disk type="file"><driver name="qemu" type="qcow2"/><source file="%s"/><target dev="vda" bus="virtio"/></disk>`, disk))
	run(t, h, "efi", efi(fromDisk))
	if xml := virsh(t, h, "dumpxml", "efi"); !strings.Contains(xml, "<nvram") {
		t.Errorf("no UEFI machine: %s", xml)
	}
	virsh(t, h, "destroy", "efi")

	g := h.Guest()
	boot := fmt.Sprintf("<kernel>%s</kernel><initrd>%s</initrd><cmdline>%s</cmdline>", g.BzImage, g.Initrd, g.Cmdline)
	run(t, h, "efi2", efi(domainXML(h, "efi2", boot, logged(h, "efi2"))))
}

// efi makes a UEFI machine, which needs more memory to boot the guest.
func efi(xml string) string {
	return strings.NewReplacer("<os>", `<os firmware="efi">`, `<memory unit="MiB">256<`, `<memory unit="MiB">384<`).Replace(xml)
}

// A machine with much hardware: what libvirt needs helpers for, and enough for
// its ACPI tables to be large.
func TestAccHost_muchHardware(t *testing.T) {
	h := start(t, Options{})
	xml := domainXML(h, "rich", direct(h, ""), logged(h, "rich")+fmt.Sprintf(`
    <filesystem type="mount" accessmode="passthrough"><driver type="virtiofs"/><source dir="%s"/><target dir="share"/></filesystem>
    <tpm model="tpm-crb"><backend type="emulator" version="2.0"/></tpm>
    <graphics type="vnc" autoport="yes" passwd="secret"/><video><model type="virtio"/></video>
    <rng model="virtio"><backend model="random">/dev/urandom</backend></rng>
    <controller type="scsi" model="virtio-scsi"/><watchdog model="i6300esb" action="reset"/>`, h.PoolDir()))
	xml = strings.NewReplacer(
		"<features>", `<memoryBacking><source type="memfd"/><access mode="shared"/></memoryBacking><features>`,
		`<source network="default"/>`, `<source network="default"/><filterref filter="clean-traffic"/>`).Replace(xml)
	if err := os.WriteFile(filepath.Join(h.PoolDir(), "hello"), []byte("from outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, h, "rich", xml)
	askAgent(t, h, "qemu-agent-command", "rich", `{"execute":"guest-ping"}`)
	out, err := h.GuestExec(t.Context(), "rich", "mount -t virtiofs share /mnt && cat /mnt/hello && ls /dev/tpm0")
	if err != nil || out != "from outside/dev/tpm0\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if out, err := h.GuestExec(t.Context(), "rich", "echo reason >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "status 3: reason") {
		t.Errorf("a failing command: %q, %v", out, err)
	}
}

// The words on the command line: deaf to the power button, CD held mounted.
func TestAccHost_stubbornGuest(t *testing.T) {
	h := start(t, Options{})
	seed := filepath.Join(h.PoolDir(), "cd.iso")
	writeISO(t, seed, "data", map[string]string{"note": "x"})
	m, r := run(t, h, "mule", domainXML(h, "mule", direct(h, "guest.nopower=1 guest.mountcd=1"), logged(h, "mule")+fmt.Sprintf(
		`<disk type="file" device="cdrom"><source file="%s"/><target dev="sda" bus="sata"/></disk>`, seed)))
	if r.CDs["sr0"].Label != "data" || r.Seed() != nil {
		t.Errorf("unexpected CDs %+v", r.CDs)
	}
	virsh(t, h, "shutdown", "--mode", "acpi", "mule")
	askAgent(t, h, "qemu-agent-command", "mule", `{"execute":"guest-ping"}`)
	// A success has no answer, so this times out whatever the agent did; virsh
	// shutdown would wait for a minute.
	h.Virsh(t.Context(), "qemu-agent-command", "--timeout", "2", "mule", `{"execute":"guest-shutdown"}`)
	if _, err := h.Virsh(t.Context(), "change-media", "mule", "sda", "--eject", "--live"); err == nil {
		t.Error("a mounted CD was ejected")
	}
	if again, err := h.Domain(t.Context(), "mule"); err != nil || again != m {
		t.Errorf("the guest obeyed: %+v, %v", again, err)
	}
	later, err := h.WaitReport(t.Context(), "mule", bootTimeout, func(now Report) bool { return now.Uptime > r.Uptime+5 })
	if err != nil || later.BootID != r.BootID || later.CDs["sr0"].Label != "data" {
		t.Errorf("unexpected report %+v, %v", later, err)
	}
}

// Two hosts do not know of each other, and neither leaves anything behind.
func TestAccHost_sideBySide(t *testing.T) {
	a, b := start(t, Options{}), start(t, Options{NoGuest: true})
	xml := domainXML(a, "same", direct(a, ""), logged(a, "same"))
	m, r := run(t, a, "same", xml)
	n, _ := run(t, b, "same", strings.ReplaceAll(xml, a.Dir(), b.Dir()))
	if m.PID == n.PID || m.Name != n.Name {
		t.Errorf("machines %+v and %+v", m, n)
	}
	if got, err := b.Machines(); err != nil || len(got) != 1 || got[0].PID != n.PID {
		t.Errorf("the second host has %+v, %v", got, err)
	}
	listed := strings.Join(List(), " ")
	if !strings.Contains(listed, a.Dir()) || !strings.Contains(listed, b.Dir()) {
		t.Errorf("the list is %q", listed)
	}

	dir, groups := b.Dir(), b.controlGroups()
	began := time.Now()
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %.2f s; control groups: %q", time.Since(began).Seconds(), groups)
	if left := leftovers(dir, groups); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := b.Machines(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a stopped host: %v", err)
	}
	if err := b.Stop(); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
	if again, err := a.Domain(t.Context(), "same"); err != nil || again != m {
		t.Errorf("the first host's guest: %+v, %v", again, err)
	}
	if r2, err := a.GuestReport(t.Context(), "same", bootTimeout); err != nil || r2.BootID != r.BootID {
		t.Errorf("the first host's guest: %+v, %v", r2, err)
	}
}

// A host dies with the process that started it, however that ends.
func TestAccHost_ownerIsKilled(t *testing.T) {
	acceptance(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), ownerEnv+"=1")
			cmd.Stderr = t.Output()
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var dir string
			for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
				_, dir, _ = strings.Cut(lines.Text(), "guest runs in ")
			}
			if dir == "" {
				t.Fatalf("the owner said nothing: %v", cmd.Wait())
			}
			h, err := Attach(dir)
			if err != nil {
				t.Fatal(err)
			}
			m, err := h.Domain(t.Context(), "orphan")
			if err != nil {
				t.Fatal(err)
			}
			groups := h.controlGroups()
			// Like ctrl-C on a terminal: the whole process group.
			syscall.Kill(-cmd.Process.Pid, sig)
			began := time.Now()
			cmd.Wait()
			for time.Since(began) < 20*time.Second && len(leftovers(dir, groups)) > 0 {
				time.Sleep(20 * time.Millisecond)
			}
			t.Logf("gone after %.2f s", time.Since(began).Seconds())
			if left := leftovers(dir, groups); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			if p, err := lookUp(m.PID); err == nil && p.start == m.Start {
				t.Errorf("QEMU %d still runs", m.PID)
			}
		})
	}
}

// A supervisor that is killed takes its host along; what it could not clean up,
// Stop does.
func TestAccHost_supervisorIsKilled(t *testing.T) {
	h := start(t, Options{NoGuest: true})
	dir, groups := h.Dir(), h.controlGroups()
	h.outer.kill()
	for deadline := time.Now().Add(10 * time.Second); h.pid.alive() && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if h.pid.alive() {
		t.Error("the host outlives its supervisor")
	}
	if _, err := Attach(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("attach: %v", err)
	}
	if err := h.Stop(); err != nil {
		t.Error(err)
	}
	if left := leftovers(dir, groups); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What runs inside sees its own world; what it cannot do is an error.
func TestAccHost_exec(t *testing.T) {
	h := start(t, Options{NoGuest: true})
	out, err := h.Exec(t.Context(), "sh", "-c", "echo $LIBVIRT_DEFAULT_URI; pwd; ls /dev /run; ip -o -4 addr")
	if err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{h.URI() + "\n" + wd + "\n", "\nnull\n", "192.168.150.1/24"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	for _, hidden := range []string{"\nkvm\n", "\ndbus\n"} {
		if strings.Contains(out, hidden) {
			t.Errorf("%q is visible: %s", hidden, out)
		}
	}
	if _, err := h.Exec(t.Context(), "sh", "-c", "echo reason >&2; exit 3"); err == nil ||
		!strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "reason") {
		t.Errorf("a failing command: %v", err)
	}
	if _, err := h.Domain(t.Context(), "nobody"); err == nil || errors.Is(err, ErrShutOff) {
		t.Errorf("an unknown domain: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := h.Exec(ctx, "sh", "-c", "sleep 4711 & wait"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command that hangs: %v", err)
	}
	if out, _ := h.Exec(t.Context(), "sh", "-c", "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done"); strings.Contains(out, "sleep 4711") {
		t.Error("the command's child still runs")
	}
}

// CPU shares and memory limits are real where the machine has control groups.
func TestAccHost_controlGroups(t *testing.T) {
	h := start(t, Options{})
	if len(h.controlGroups()) == 0 {
		acctest.Unavailable(t, "this machine lets us make no control groups")
	}
	run(t, h, "tuned", domainXML(h, "tuned", direct(h, ""), logged(h, "tuned")))
	virsh(t, h, "schedinfo", "tuned", "--live", "--set", "cpu_shares=512")
	if out := virsh(t, h, "schedinfo", "tuned", "--live"); !strings.Contains(out, "cpu_shares     : 512") {
		t.Errorf("got %s", out)
	}
	found := false
	for _, group := range h.controlGroups() {
		shares, _ := filepath.Glob(filepath.Join(group, "machine/*/cpu.shares"))
		weight, _ := filepath.Glob(filepath.Join(group, "machine/*/cpu.weight"))
		for _, f := range append(shares, weight...) {
			data, err := os.ReadFile(f)
			found = found || err == nil && strings.TrimSpace(string(data)) == "512"
		}
	}
	if !found {
		t.Error("the kernel does not know of the shares")
	}
	virsh(t, h, "destroy", "tuned")
}

// A start that is given up, at whatever moment, leaves nothing behind.
func TestAccHost_startIsGivenUp(t *testing.T) {
	acceptance(t)
	before := allGroups()
	var waits []time.Duration
	for ms := time.Duration(0); ms < 60; ms += 3 {
		waits = append(waits, ms) // where the supervisor makes its processes
	}
	for _, after := range append(waits, 100, 200) {
		ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
		dir := filepath.Join(t.TempDir(), "h")
		h, err := Start(ctx, Options{Dir: dir, NoGuest: true})
		cancel()
		if err == nil {
			t.Logf("started within %d ms", after)
			err = h.Stop()
		} else if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		if err != nil {
			t.Errorf("after %d ms: %v", after, err)
		}
		if left := leftovers(dir, nil); len(left) > 0 {
			t.Errorf("after %d ms, left behind: %q", after, left)
		}
	}
	// Other tests may start and stop hosts meanwhile: only a group without a
	// process that stays is one too many.
	for _, group := range allGroups() {
		procs, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		if !slices.Contains(before, group) && err == nil && len(procs) == 0 {
			time.Sleep(2 * time.Second)
			if _, err := os.Stat(group); err == nil {
				t.Errorf("left behind: %s", group)
			}
		}
	}
}

// allGroups are the control groups of all hosts on this machine.
func allGroups() []string {
	var out []string
	for _, depth := range []string{"", "*/", "*/*/", "*/*/*/"} {
		found, _ := filepath.Glob("/sys/fs/cgroup/" + depth + "testhost-*")
		out = append(out, found...)
	}
	return out
}

// A libvirtd that cannot run is reported at once, with what it said.
func TestAccHost_daemonCannotRun(t *testing.T) {
	acceptance(t)
	dir := t.TempDir()
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "libvirtd.conf"), []byte("max_clients = \"many\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h := &Host{dir: dir}
	if err := h.supervise(false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := h.waitForInside(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := h.waitForDaemon(t.Context(), 0)
	if err == nil || !strings.Contains(err.Error(), "again and again") || !strings.Contains(err.Error(), "max_clients") {
		t.Errorf("got %v", err)
	}
	if err := h.RestartDaemon(t.Context()); err == nil || !strings.Contains(err.Error(), "restart libvirtd") {
		t.Errorf("restart: %v", err)
	}
}

package bounce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"

	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// bootTime is what a guest gets to boot while many others do.
const bootTime = 8 * time.Minute

// Moment is all that the host and the guest say of a machine at one time.
type Moment struct {
	Machine host.Machine
	Report  host.Report
	// Definition and Guest are the XML of both in the form that libvirt sends to
	// another host, where what a start adds by itself is not in it, and without
	// the provider's mark.
	Definition, Guest Leaves
	// Started is the definition that the guest was started with.
	Started Leaves
	// Generation and Observed are the provider's marks in the two.
	Generation, Observed string
	// Raw is every byte of both.
	Raw string
	// Off says that no QEMU runs: there is no machine, no report and no guest.
	Off bool
}

// balloonTime is what the guest's driver gets to move the balloon to where the
// definition has it, after a start.
const balloonTime = time.Minute

// settle waits until the balloon of a machine that was just started is where
// the definition wants it, and measures it then.
func settle(ctx context.Context, h *host.Host, name string, m *Moment) (*Moment, error) {
	var err error
	for deadline := time.Now().Add(balloonTime); err == nil && !m.Off && m.Guest[balloon] != m.Definition[balloon] && time.Now().Before(deadline); {
		m, err = look(ctx, h, name, nil)
	}
	return m, err
}

const balloon = "currentMemory"

// look measures a machine. fresh says which report of the guest counts; nil:
// any that is new.
func look(ctx context.Context, h *host.Host, name string, fresh func(host.Report) bool) (*Moment, error) {
	m := &Moment{}
	var err error
	if m.Machine, err = h.Domain(ctx, name); errors.Is(err, host.ErrShutOff) {
		m.Off = true
	} else if err != nil {
		return nil, err
	}
	if !m.Off {
		if fresh == nil {
			fresh = func(host.Report) bool { return true }
		}
		if m.Report, err = h.WaitReport(ctx, name, bootTime, fresh); err != nil {
			return nil, err
		}
	}
	return m, m.readXML(ctx, h, name)
}

func (m *Moment) readXML(ctx context.Context, h *host.Host, name string) error {
	const cut = "---- and then ----"
	var commands []string
	for _, flags := range []string{"--migratable --inactive", "--migratable", "--security-info --inactive", "--security-info"} {
		commands = append(commands, fmt.Sprintf("dumpxml --domain %s %s; echo '%s'", name, flags, cut))
	}
	out, err := h.Virsh(ctx, strings.Join(append(commands, "dominfo --domain "+name), "; "))
	if err != nil {
		return err
	}
	parts := strings.Split(out, cut)
	if len(parts) != 5 {
		return fmt.Errorf("read %s: %d parts:\n%s", name, len(parts), out)
	}
	if m.Definition, m.Generation, err = leaves(parts[0]); err != nil {
		return err
	}
	if !m.Off {
		if m.Guest, m.Observed, err = leaves(parts[1]); err != nil {
			return err
		}
	}
	m.Raw = parts[2] + parts[3]
	for _, line := range strings.Split(parts[4], "\n") {
		if value, ok := strings.CutPrefix(line, "Autostart:"); ok {
			m.Definition[Autostart] = strings.TrimSpace(value)
		}
	}
	return nil
}

// unlimited is what a running guest shows of limits that were taken away: what
// the kernel has where there never was one.
var unlimited = map[string]string{"quota": "-1", "period": "100000"}

// leaves reads a domain's XML, and the generation that it is marked with.
func leaves(xml string) (out Leaves, generation string, err error) {
	doc := etree.NewDocument()
	if err := doc.ReadFromString(xml); err != nil {
		return nil, "", fmt.Errorf("read the XML of a domain: %w", err)
	}
	if doc.Root() == nil {
		return nil, "", errors.New("read the XML of a domain: there is none")
	}
	out = Leaves{}
	var walk func(e *etree.Element, at string)
	walk = func(e *etree.Element, at string) {
		if e.NamespaceURI() == domain.Namespace {
			generation = e.SelectAttrValue("generation", "")
			return
		}
		for _, a := range e.Attr {
			if a.Space != "xmlns" && a.Key != "xmlns" {
				out[strings.TrimPrefix(at+"/@"+a.Key, "/")] = a.Value
			}
		}
		children := e.ChildElements()
		if text := strings.TrimSpace(e.Text()); text != "" || len(children) == 0 && len(e.Attr) == 0 {
			out[at] = text + strings.Repeat("(empty)", 1-min(1, len(text)))
		}
		count := map[string]int{}
		for _, child := range children {
			if child.FullTag() == "event" && child.SelectAttrValue("enabled", "") == "no" {
				continue // not counted, as if it were not there
			}
			tag := child.FullTag()
			if count[tag]++; count[tag] > 1 {
				tag = fmt.Sprintf("%s[%d]", tag, count[tag])
			}
			walk(child, strings.TrimPrefix(at+"/"+tag, "/"))
		}
	}
	walk(doc.Root(), "")
	delete(out, "metadata") // empty, where the mark was all
	out.dropCountedThreads()
	for at, value := range unlimited {
		for _, part := range []string{"", "global_", "emulator_", "iothread_"} {
			if out["cputune/"+part+at] == value {
				delete(out, "cputune/"+part+at)
			}
		}
	}
	return out, generation, nil
}

// dropCountedThreads takes out a list of I/O threads that says no more than
// their count does. A running guest has one as soon as anything of them changes.
func (l Leaves) dropCountedThreads() {
	isListed := func(at, _ string) bool { return strings.HasPrefix(at, "iothreadids/") }
	var ids []string
	for at, value := range l {
		if isListed(at, value) {
			if !strings.HasSuffix(at, "/@id") {
				return
			}
			ids = append(ids, value)
		}
	}
	for i := range ids {
		if !slices.Contains(ids, fmt.Sprint(i+1)) {
			return
		}
	}
	maps.DeleteFunc(l, isListed)
}

// differ lists the leaves that are not the same in both.
func differ(a, b Leaves) (out []string) {
	for at, value := range a {
		if b[at] != value {
			out = append(out, at)
		}
	}
	for at := range maps.Keys(b) {
		if _, ok := a[at]; !ok {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return out
}

// power is what became of a guest's run.
func power(before, after *Moment) Power {
	switch {
	case before.Machine.PID != after.Machine.PID || before.Machine.Start != after.Machine.Start:
		return Cycle
	case before.Report.BootID != after.Report.BootID:
		return Reset
	}
	return Nothing
}

// remember notes what definition the guest was started with. before is the
// moment before, nil for the first one.
func (m *Moment) remember(before *Moment) {
	if before == nil || power(before, m) == Cycle {
		m.Started = m.Definition
	} else {
		m.Started = before.Started
	}
}

// waitsFor says whether the definition has a leaf otherwise than the guest. Of
// the CPU, libvirt writes into the guest's XML what the definition came to:
// there it is the definition which the guest was started with that counts.
func (m *Moment) waitsFor(at string) bool {
	guest := m.Guest
	if root(at) == "cpu" {
		guest = m.Started
	}
	return at != Autostart && guest[at] != m.Definition[at]
}

// What happened beside the plan's words.
const (
	nothing = ""        // not even the definition is another one
	stopped = "stopped" // and not started again
)

// happened says in the plan's words what became of a machine between two
// moments.
func happened(before, after *Moment) string {
	if after.Off {
		return stopped
	}
	if power(before, after) != Nothing {
		return "restart"
	}
	defined := differ(before.Definition, after.Definition)
	for _, at := range defined {
		if after.waitsFor(at) {
			return "next_boot"
		}
	}
	switch {
	case len(differ(before.Guest, after.Guest)) > 0:
		return "live"
	case len(defined) > 0:
		return "none"
	}
	return nothing
}

// graceful says whether the last guest of a domain that ended was shut down in
// order, by libvirt's own log.
func graceful(ctx context.Context, h *host.Host, name string) (bool, error) {
	log, err := h.Exec(ctx, "cat", "/var/log/libvirt/qemu/"+name+".log")
	if err != nil {
		return false, fmt.Errorf("ask how the guest of %s ended: %w", name, err)
	}
	const mark = "shutting down, reason="
	i := strings.LastIndex(log, mark)
	if i < 0 {
		return false, fmt.Errorf("ask how the guest of %s ended: libvirt's log does not say", name)
	}
	reason, _, _ := strings.Cut(log[i+len(mark):], "\n")
	return strings.TrimSpace(reason) == "shutdown", nil
}

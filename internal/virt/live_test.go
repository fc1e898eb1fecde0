package virt_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// machine is a guest whose parts a test chooses. Every domain boots the
// throwaway host's guest and has an agent.
type machine struct {
	vcpu    string // the element, else one CPU
	memory  string // the elements, else 160 MiB
	cpu     string // the element
	top     string // more elements of the domain
	devices string
	words   string // more of the kernel's command line
}

func (m machine) xml(t testing.TB, name string) string {
	t.Helper()
	there := lab.Host(t)
	g := there.Guest()
	if m.vcpu == "" {
		m.vcpu = "<vcpu>1</vcpu>"
	}
	if m.memory == "" {
		m.memory = `<memory unit="MiB">160</memory>`
	}
	return fmt.Sprintf(`<domain type="qemu"><name>%s</name>%s%s%s%s
<os><type arch="x86_64" machine="q35">hvm</type><kernel>%s</kernel><initrd>%s</initrd><cmdline>%s %s</cmdline></os>
<features><acpi/></features><devices>%s
<serial type="file"><source path="%s" append="on"/></serial>
<channel type="unix"><target type="virtio" name="org.qemu.guest_agent.0"/></channel>
</devices></domain>`, name, m.memory, m.vcpu, m.cpu, m.top, g.Kernel, g.Initrd, g.Cmdline, m.words, m.devices, there.ConsoleLog(name))
}

// boot starts such a guest. The test ends with the proof that it is still the
// same run of the same QEMU.
func (m machine) boot(t testing.TB, name string) (*virt.Domain, *lab.Guest) {
	t.Helper()
	d := temporary(t, shared(t), m.xml(t, name))
	try(t, d.Start(context.Background(), virt.StartFlags{}))
	g := lab.Observe(t, name)
	t.Cleanup(func() {
		if !t.Failed() {
			g.Untouched(t, name)
		}
	})
	return d, g
}

// sides returns the XML of the guest and of the definition. Whether the agent has
// connected yet is left out.
func sides(t testing.TB, d *virt.Domain) (live, config string) {
	t.Helper()
	ctx := context.Background()
	live = got(d.XML(ctx, virt.XMLSecure))(t)
	return strings.NewReplacer(" state='connected'", "", " state='disconnected'", "").Replace(live), got(d.XML(ctx, virt.XMLInactive|virt.XMLSecure))(t)
}

// shows fails the test unless the two documents match the patterns; a pattern
// that begins with "!" must not match.
func shows(t testing.TB, d *virt.Domain, live, config string) {
	t.Helper()
	l, c := sides(t, d)
	for side, p := range map[string]struct{ xml, pattern string }{"guest": {l, live}, "definition": {c, config}} {
		pattern, absent := strings.CutPrefix(p.pattern, "!")
		if regexp.MustCompile(pattern).MatchString(p.xml) == absent {
			t.Errorf("the %s does not show %s:\n%s", side, p.pattern, p.xml)
		}
	}
}

// coded fails the test unless libvirt answered with the code and the words.
func coded(t testing.TB, err error, code int, words ...string) {
	t.Helper()
	var e *virt.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("got %v (%s), want code %d", err, codeOf(err), code)
		return
	}
	want(t, err, words...)
	t.Logf("[%d] %v", e.Code, err)
}

func codeOf(err error) string {
	var e *virt.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("code %d", e.Code)
	}
	return "no code"
}

// timed logs how long a call took.
func timed(t testing.TB, what string, f func() error) error {
	t.Helper()
	begin := time.Now()
	err := f()
	t.Logf("%s: %s", what, time.Since(begin).Round(time.Millisecond))
	return err
}

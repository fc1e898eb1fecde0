package domain_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// bench is a guest whose updates are called directly, so that every single call
// to libvirt can be broken. The configuration is its XML, edited.
type bench struct {
	host *virt.Host
	k    *domain.Kind
	name string
	uuid string
	xml  string // the definition as it was made, without the provider's mark

	owned tree.Value // the configuration of the last update that was complete

	definition, guest string // before the next update
}

// newBench defines and starts a guest with devices and other elements of its
// own.
func newBench(t *testing.T, name, elements, devices string) *bench {
	t.Helper()
	h := lab.Host(t)
	lab.Virsh(t, "define", definition(t, fmt.Sprintf(`<domain type='qemu'><name>%s</name><os><type arch='x86_64' machine='q35'>hvm</type>
<kernel>%s</kernel><initrd>%s</initrd><cmdline>%s</cmdline></os><features><acpi/></features>%s
<devices><serial type='file'><source path='%s' append='on'/></serial>%s</devices></domain>`,
		name, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, elements, h.ConsoleLog(name), devices)))
	forget(t, name)
	lab.Virsh(t, "start", name)
	b := &bench{host: virt.NewHost(virt.Options{URI: h.URI()}), name: name}
	t.Cleanup(func() { _ = b.host.Close() })
	b.k = domain.New(func() *virt.Host { return b.host })
	b.xml, b.uuid = definitions(t, []string{name})[name], strings.TrimSpace(lab.Virsh(t, "domuuid", name))
	b.owned = b.config(t)
	return b
}

// config is the configuration: the XML of the beginning, with pairs of what is
// replaced and by what.
func (b *bench) config(t testing.TB, pairs ...string) tree.Value {
	t.Helper()
	xml := b.xml
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(xml, pairs[i]) {
			t.Fatalf("no %q in\n%s", pairs[i], xml)
		}
		xml = strings.Replace(xml, pairs[i], pairs[i+1], 1)
	}
	config, err := spec.Domain().Decode(xml)
	if err != nil {
		t.Fatal(err)
	}
	return config.With("id", tree.NullValue).With("autostart", tree.BoolValue(false)).With("running", tree.BoolValue(true))
}

// plan is an update to a configuration, as the provider makes it from what the
// host says now.
func (b *bench) plan(t testing.TB, config tree.Value) kind.Update {
	t.Helper()
	facts, err := b.k.Read(context.Background(), tree.ObjectValue(map[string]tree.Value{"uuid": tree.StringValue(b.uuid)}))
	if err != nil {
		t.Fatal(err)
	}
	rules, typ, actual, guest := b.k.Rules(), b.k.Type(), facts.Definition, facts.Guest
	if guest.IsNull() {
		guest = actual
	}
	result := rules.Plan(change.Input{Type: typ, Config: config, Prior: actual, Baseline: actual, Actual: actual, Owned: b.owned, Guest: guest})
	prior, waiting := actual.With("status", facts.Status), rules.Waiting(typ, actual, guest, config)
	verdict := b.k.Judge(kind.Judgement{
		Config: config, Prior: prior, Planned: result.Planned, Changes: result.Changes, Live: result.Live, Guest: guest, Definition: actual, Waiting: waiting,
	})
	if len(verdict.Refusals) > 0 {
		t.Fatalf("the plan is refused: %v", verdict.Refusals)
	}
	return kind.Update{
		Config: config, Prior: prior, Planned: result.Planned, Owned: b.owned,
		Changes: result.Changes, Live: result.Live, Waiting: waiting, Effect: verdict.Effect,
	}
}

// settle makes an update that must work, and leave guest and definition as the
// configuration says.
func (b *bench) settle(t testing.TB, config tree.Value) {
	t.Helper()
	if _, err := b.k.Update(context.Background(), b.plan(t, config)); err != nil {
		t.Fatalf("an update in which nothing fails: %v", err)
	}
	b.owned = config
	if again := b.plan(t, config); len(again.Changes)+len(again.Live)+len(again.Waiting) > 0 {
		t.Fatalf("after it, this is still to be done: %v, in the guest %v; waiting %v\n%s", again.Changes, again.Live, again.Waiting, b.shown(t))
	}
}

// shown is the guest's XML without what moves by itself, its lines sorted: a
// device that left and came back is another place in the document.
func (b *bench) shown(t testing.TB) string {
	t.Helper()
	lines := strings.Split(lab.Virsh(t, "dumpxml", "--security-info", b.name), "\n")
	slices.Sort(lines)
	// QEMU counts the images that it opens, and libvirt numbers the connections to
	// its networks.
	return regexp.MustCompile(` (index|portid)='[^']+'`).ReplaceAllString(strings.Join(lines, "\n"), "")
}

// difference are the lines that only one of two texts has.
func difference(was, is string) string {
	var out []string
	for sign, sides := range map[string][2]string{"-": {was, is}, "+": {is, was}} {
		other := strings.Split(sides[1], "\n")
		for _, line := range strings.Split(sides[0], "\n") {
			if i := slices.Index(other, line); i >= 0 {
				other = slices.Delete(other, i, i+1)
			} else {
				out = append(out, sign+line)
			}
		}
	}
	return strings.Join(out, "\n")
}

// breakage is a way in which one call of an update goes wrong.
type breakage struct {
	name string
	hook func(m virttest.Match, cancel func()) virt.Hook
}

var breakages = []breakage{
	{"lost before it was made", func(m virttest.Match, _ func()) virt.Hook { return virttest.Fail(m, virttest.ConnectionLost) }},
	{"made, and its answer lost", func(m virttest.Match, _ func()) virt.Hook { return virttest.FailAfter(m, virttest.ConnectionLost) }},
	{"refused", func(m virttest.Match, _ func()) virt.Hook { return virttest.Fail(m, virttest.Internal("no room")) }},
	{"made, and the user gives up", func(m virttest.Match, cancel func()) virt.Hook {
		return virttest.FailAfter(m, func(virt.Call) error { cancel(); return nil })
	}},
}

// broken makes an update whose nth write goes wrong.
func (b *bench) broken(u kind.Update, n int, how breakage) (hit virt.Call, done kind.Done, err error) {
	hit, err = b.breaking(n, how, func(ctx context.Context) (err error) {
		done, err = b.k.Update(ctx, u)
		return err
	})
	return hit, done, err
}

// breaking calls something during which the nth write goes wrong. hit is that
// write, the zero value if there is none any more.
func (b *bench) breaking(n int, how breakage, call func(context.Context) error) (hit virt.Call, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	nth := virttest.Nth(n, virttest.Writes)
	defer virttest.Install(b.host, how.hook(func(c virt.Call) bool {
		if nth(c) {
			hit = c
			return true
		}
		return false
	}, cancel))()
	err = call(ctx)
	return hit, err
}

func TestAccFailures_everyStepOfALiveUpdate(t *testing.T) {
	acctest.Case(t, "whichever call of an update of a running guest goes wrong, and however: the guest is untouched, and it and its definition are as before")
	const name = "stepwise"
	pool := lab.Host(t).PoolDir()
	for _, file := range []string{"vda", "vdb", "one", "two"} {
		image(t, name+"-"+file+".raw")
	}
	ports := "<controller type='pci' index='0' model='pcie-root'/>" + strings.Repeat("<controller type='pci' model='pcie-root-port'/>", 8)
	disk := func(dev string) string {
		return fmt.Sprintf(`<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='%s/%s-%s.raw'/><target dev='%s' bus='virtio'/></disk>`, pool, name, dev, dev)
	}
	b := newBench(t, name, `<title>before</title><description>before</description><metadata><x:site xmlns:x="urn:x" rack="7"/></metadata>
<memory unit='MiB'>192</memory><vcpu>1</vcpu><iothreads>1</iothreads><cputune><shares>1024</shares><emulatorpin cpuset='0-1'/></cputune>
<on_reboot>restart</on_reboot>`, ports+disk("vda")+fmt.Sprintf(`
<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source file='%s/%s-one.raw'/><target dev='sda' bus='sata'/><readonly/></disk>
<interface type='network'><mac address='52:54:00:57:e9:01'/><source network='default'/><model type='virtio'/><link state='up'/><filterref filter='clean-traffic'/></interface>
<graphics type='vnc' autoport='yes' passwd='before'/><rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>`, pool, name))
	rng := regexp.MustCompile(`(?s)    <rng .*?</rng>\n`).FindString(b.xml)
	config := b.config(t,
		"<title>before", "<title>after", "<description>before", "<description>after", `rack="7"`, `rack="8"`,
		"<currentMemory unit='KiB'>196608", "<currentMemory unit='KiB'>163840",
		"<shares>1024", "<shares>512", "cpuset='0-1'", "cpuset='0'", "<iothreads>1", "<iothreads>2", "<on_reboot>restart", "<on_reboot>destroy",
		"<target dev='vda' bus='virtio'/>", "<target dev='vda' bus='virtio'/><iotune><total_iops_sec>500</total_iops_sec></iotune>",
		"<filterref filter='clean-traffic'/>", "", name+"-one.raw", name+"-two.raw", "<link state='up'/>", "<link state='down'/>",
		"passwd='before'", "passwd='after'", rng, "", "  <devices>", "  <devices>"+disk("vdb"),
	).With("autostart", tree.BoolValue(true)).SetAt("update.allow", tree.StringValue("live"))
	guest := lab.Observe(t, name)
	b.everyStep(t, config, nil)
	guest.Untouched(t, name)
}

// everyStep breaks every write of an update of a running guest, in every way.
// restarted is called after each restart if the update is one, nil if it is none.
func (b *bench) everyStep(t *testing.T, config tree.Value, restarted func(name string)) {
	t.Helper()
	restarts := restarted != nil
	if !restarts {
		restarted = func(string) {}
	}
	first := b.config(t).With("update", config.Attr("update"))
	b.settle(t, config)
	restarted(config.Attr("name").Str())
	b.settle(t, first)
	restarted(b.name)
	b.definition, b.guest = definitions(t, []string{b.name})[b.name], b.shown(t)
	for n, hit := 1, (virt.Call{Op: "first"}); hit.Op != ""; n++ {
		for i, how := range breakages {
			if acctest.Sampled() && i != n%len(breakages) {
				continue
			}
			var done kind.Done
			var err error
			hit, done, err = b.broken(b.plan(t, config), n, how)
			if hit.Op == "" {
				break
			}
			what := fmt.Sprintf("write %d, %s, is %s", n, hit, how.name)
			if err == nil {
				b.owned = config
				b.complete(t, what, config, hit)
				b.settle(t, first)
				b.definition, b.guest = definitions(t, []string{b.name})[b.name], b.shown(t)
			} else {
				b.check(t, what, done, err, restarts)
			}
			restarted(b.name)
		}
	}
	b.settle(t, config)
}

// complete is for the one write that may fail without harm, the last: all is
// done, and the guest is marked so.
func (b *bench) complete(t *testing.T, what string, config tree.Value, hit virt.Call) {
	t.Helper()
	again := b.plan(t, config)
	if hit.Op != "set metadata of domain" || len(again.Changes)+len(again.Live)+len(again.Waiting) > 0 {
		t.Errorf("%s: the update says nothing of it, and this is left to do: %v, in the guest %v; waiting %v", what, again.Changes, again.Live, again.Waiting)
	}
	t.Logf("failure | %s | the update is complete all the same", what)
}

// check holds what a broken update left behind against what was there before.
func (b *bench) check(t *testing.T, what string, done kind.Done, err error, restarts bool) {
	t.Helper()
	verdict := "as before"
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf(what+": "+format, args...)
		verdict = "WRONG"
	}
	// Whether a guest was asked to let go of a device is not known if the connection
	// was lost, and it may do so later.
	if !regexp.MustCompile("The previous definition is in force again|Nothing was changed|may let go of it later").MatchString(err.Error()) {
		wrong("%v", err)
	}
	if now := definitions(t, []string{b.name})[b.name]; now != b.definition {
		wrong("the definition differs:\n%s", difference(b.definition, now))
	}
	if now := b.shown(t); now != b.guest && !restarts { // else it is another run of it
		wrong("the guest differs:\n%s", difference(b.guest, now))
	}
	if facts, readErr := b.k.Read(context.Background(), done.Facts.Definition); readErr != nil || !done.Exists || !tree.Equal(facts.Definition, done.Facts.Definition) || !facts.Guest.IsNull() || !facts.Active {
		wrong("what is said to be true is not: %v; the guest is not as its definition in %v", readErr, b.k.Rules().Differences(b.k.Type(), facts.Definition, facts.Guest))
	}
	t.Logf("failure | %s | %s", what, verdict)
}

func TestAccFailures_everyStepOfACreation(t *testing.T) {
	acctest.Case(t, "whichever call of a creation goes wrong, and however: the state has the domain if and only if it is there, and nothing runs that the state does not have")
	const name = "creationwise"
	h := lab.Host(t)
	host := virt.NewHost(virt.Options{URI: h.URI()})
	defer func() { _ = host.Close() }()
	b := &bench{host: host, k: domain.New(func() *virt.Host { return host }), name: name, xml: fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='KiB'>131072</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type><kernel>%s</kernel><initrd>%s</initrd><cmdline>%s</cmdline></os></domain>`, name, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline)}
	config := b.config(t).With("autostart", tree.BoolValue(true))
	planned := b.k.Rules().Plan(change.Input{Type: b.k.Type(), Config: config}).Planned
	forget(t, name)
	for n, hit := 1, (virt.Call{Op: "first"}); hit.Op != ""; n++ {
		for _, how := range breakages {
			var done kind.Done
			var err error
			hit, err = b.breaking(n, how, func(ctx context.Context) (err error) {
				done, err = b.k.Create(ctx, planned, config)
				return err
			})
			what := fmt.Sprintf("write %d, %s, is %s", n, hit, how.name)
			exists := slices.Contains(strings.Fields(lab.Virsh(t, "list", "--all", "--name")), name)
			if exists != done.Exists || hit.Op == "" && err != nil {
				t.Fatalf("%s: the domain exists: %v, the state has it: %v; %v", what, exists, done.Exists, err)
			}
			if power := "shut off"; exists {
				now := strings.TrimSpace(lab.Virsh(t, "domstate", name))
				if done.Facts.Active {
					power = "running"
				} else if at := done.Facts.Status.At("state").Str(); at != "failed" {
					t.Errorf("%s: status.state is %s", what, at)
				}
				if now != power || !done.Facts.Definition.Attr("uuid").IsKnown() {
					t.Errorf("%s: the guest is %s, the state says %s; %v", what, now, power, done.Facts.Definition)
				}
			}
			t.Logf("failure | %s | exists: %v, runs: %v; %v", what, exists, done.Facts.Active, err)
			scrap(t, name)
		}
	}
}

package virt_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

const both = virt.AffectLive | virt.AffectConfig

func TestAccDomainLive_memory(t *testing.T) {
	acctest.Case(t, "a running guest's balloon moves up to its maximum, and that of the definition")
	ctx := context.Background()
	d, _ := machine{memory: `<memory unit="MiB">256</memory><currentMemory unit="MiB">192</currentMemory>`}.boot(t, "balloon")
	until(t, "the guest has given up what it does not get", time.Minute, func() bool { return *got(d.MemoryStats(ctx))(t).Balloon == 192<<10 })

	try(t, timed(t, "balloon, live", func() error { return d.SetMemory(ctx, 160<<10, virt.AffectLive) }))
	begin := time.Now()
	until(t, "the guest gives memory back", time.Minute, func() bool { return *got(d.MemoryStats(ctx))(t).Balloon == 160<<10 })
	t.Logf("followed after %s", time.Since(begin).Round(time.Millisecond))
	until(t, "the XML follows too", 4*time.Minute, func() bool { l, _ := sides(t, d); return strings.Contains(l, `<currentMemory unit='KiB'>163840</`) })
	t.Logf("the XML after %s", time.Since(begin).Round(time.Millisecond))
	less := got(lab.Host(t).GuestReport(ctx, "balloon", 4*time.Minute))(t).MemKiB
	shows(t, d, `<currentMemory unit='KiB'>163840</`, `<currentMemory unit='KiB'>196608</`)
	try(t, d.SetMemory(ctx, 170<<10, virt.AffectConfig))
	shows(t, d, `<currentMemory unit='KiB'>163840</`, `<currentMemory unit='KiB'>174080</`)
	try(t, d.SetMemory(ctx, 256<<10, both))
	until(t, "the guest takes memory", time.Minute, func() bool { return *got(d.MemoryStats(ctx))(t).Balloon == 256<<10 })
	if more := got(lab.Host(t).GuestReport(ctx, "balloon", 4*time.Minute))(t).MemKiB; more != less+96<<10 {
		t.Errorf("the guest managed %d KiB, now %d", less, more)
	}
	until(t, "the XML follows once more", 4*time.Minute, func() bool { l, _ := sides(t, d); return strings.Contains(l, `<currentMemory unit='KiB'>262144</`) })
	shows(t, d, `<currentMemory unit='KiB'>262144</`, `<currentMemory unit='KiB'>262144</`)

	coded(t, d.SetMemory(ctx, 300<<10, virt.AffectLive), virt.ErrInvalidArg)
	coded(t, d.SetMemory(ctx, 0, both), virt.ErrInvalidArg)
	want(t, d.SetMemory(ctx, -1, both), `set the balloon of domain "balloon"`, "negative")
	shows(t, d, `<memory unit='KiB'>262144</`, `<memory unit='KiB'>262144</`)
	coded(t, d.SetMemory(ctx, 600<<10, virt.AffectConfig), virt.ErrInvalidArg)
}

func TestAccDomainLive_memoryStatistics(t *testing.T) {
	acctest.Case(t, "a guest tells of its memory once it is asked to, and how often is kept")
	ctx := context.Background()
	d, _ := machine{}.boot(t, "statistics")
	before := got(d.MemoryStats(ctx))(t)
	if before.Balloon == nil || before.RSS == nil || *before.RSS == 0 {
		t.Errorf("got %+v", before)
	}
	try(t, d.SetMemoryStatsPeriod(ctx, 1, both))
	shows(t, d, `<stats period='1'/>`, `<stats period='1'/>`)
	until(t, "the guest tells", 4*time.Minute, func() bool {
		m := got(d.MemoryStats(ctx))(t)
		return m.Unused != nil && *m.Unused > 0 && m.Available != nil && m.LastUpdate != nil && *m.LastUpdate > 0
	})
	try(t, d.SetMemoryStatsPeriod(ctx, 0, virt.AffectLive))
	shows(t, d, `!<stats period`, `<stats period='1'/>`)
	try(t, d.SetMemoryStatsPeriod(ctx, 5, virt.AffectConfig))
	shows(t, d, `!<stats period`, `<stats period='5'/>`)
	coded(t, d.SetMemoryStatsPeriod(ctx, -1, both), virt.ErrInvalidArg)
}

func TestAccDomainLive_noBalloon(t *testing.T) {
	acctest.Case(t, "without a balloon the memory of a running guest stays")
	ctx := context.Background()
	d, _ := machine{devices: `<memballoon model="none"/>`}.boot(t, "rigid")
	coded(t, d.SetMemory(ctx, 128<<10, virt.AffectLive), virt.ErrOperationInvalid)
	coded(t, d.SetMemoryStatsPeriod(ctx, 1, virt.AffectLive), virt.ErrInternal)
	shows(t, d, `<currentMemory unit='KiB'>163840</`, `<currentMemory unit='KiB'>163840</`)
}

func TestAccDomainLive_vcpus(t *testing.T) {
	acctest.Case(t, "CPUs are plugged into a running guest up to its maximum, and into the definition up to the one there")
	ctx := context.Background()
	d, _ := machine{vcpu: `<vcpu current="1">5</vcpu>`}.boot(t, "cpus")
	counts := func(live, config int) {
		t.Helper()
		if l, c := got(d.VcpuCount(ctx, virt.AffectLive))(t), got(d.VcpuCount(ctx, virt.AffectConfig))(t); l != live || c != config {
			t.Errorf("live %d, config %d; want %d, %d", l, c, live, config)
		}
	}
	counts(1, 1)
	try(t, timed(t, "plug in, live", func() error { return d.SetVcpus(ctx, 2, virt.AffectLive) }))
	counts(2, 1)
	try(t, timed(t, "plug in, both", func() error { return d.SetVcpus(ctx, 3, both) }))
	counts(3, 3)
	if _, err := lab.Host(t).WaitReport(ctx, "cpus", 4*time.Minute, func(r host.Report) bool { return r.CPUs == 3 }); err != nil {
		t.Error(err)
	}
	if v := got(d.Vcpus(ctx))(t); len(v) != 3 || v[2].Number != 2 || len(v[0].CPUs) == 0 || v[0].Time == 0 {
		t.Errorf("got %+v", v)
	}
	if n := got(d.OnlineVcpuCount(ctx))(t); n != 3 {
		t.Errorf("%d online", n)
	}
	coded(t, d.SetVcpus(ctx, 6, virt.AffectLive), virt.ErrInvalidArg)
	coded(t, d.SetVcpus(ctx, 6, virt.AffectConfig), virt.ErrInvalidArg)
	coded(t, d.SetVcpus(ctx, 0, both), virt.ErrInvalidArg)

	lab.Virsh(t, "setvcpus", "cpus", "8", "--maximum", "--config")
	if live, config := got(d.MaxVcpuCount(ctx, virt.AffectLive))(t), got(d.MaxVcpuCount(ctx, virt.AffectConfig))(t); live != 5 || config != 8 {
		t.Errorf("the maximum is %d live, %d in the definition", live, config)
	}
	try(t, d.SetVcpus(ctx, 2, virt.AffectConfig))
	counts(3, 2)
	try(t, d.SetVcpu(ctx, virt.CPUSet{5, 6}, true, virt.AffectConfig))
	shows(t, d, `!<vcpu id='5'`, `<vcpu id='5' enabled='yes'`)
	counts(3, 4)
	coded(t, d.SetVcpu(ctx, virt.CPUSet{3, 4}, true, virt.AffectLive), virt.ErrUnsupported)
	try(t, d.SetVcpu(ctx, virt.CPUSet{3}, true, virt.AffectLive))
	counts(4, 4)
	coded(t, d.SetVcpu(ctx, virt.CPUSet{0}, false, virt.AffectLive), virt.ErrUnsupported)
}

func TestAccDomainLive_vcpusLeave(t *testing.T) {
	acctest.Case(t, "an emulated guest lets go of a CPU although libvirt gives up, and libvirt does not learn of it")
	ctx := context.Background()
	there := lab.Host(t)
	d, _ := machine{vcpu: `<vcpu current="1">3</vcpu>`}.boot(t, "leaver")
	try(t, d.SetVcpus(ctx, 3, both))
	if _, err := there.WaitReport(ctx, "leaver", 4*time.Minute, func(r host.Report) bool { return r.CPUs == 3 }); err != nil {
		t.Fatal(err)
	}
	coded(t, timed(t, "take out two", func() error { return d.SetVcpus(ctx, 1, both) }), virt.ErrOperationTimeout)
	// They are taken out one after the other, and the definition comes last.
	got(there.WaitReport(ctx, "leaver", 4*time.Minute, func(r host.Report) bool { return r.CPUs == 2 }))(t)
	if l, c := got(d.VcpuCount(ctx, virt.AffectLive))(t), got(d.VcpuCount(ctx, virt.AffectConfig))(t); l != 3 || c != 3 {
		t.Errorf("libvirt says %d live, %d in the definition", l, c)
	}
	if n := got(d.OnlineVcpuCount(ctx))(t); n != 2 {
		t.Errorf("the agent says %d", n)
	}
	coded(t, timed(t, "again", func() error { return d.SetVcpus(ctx, 1, virt.AffectLive) }), virt.ErrInternal, "cause is unknown")
}

func TestAccDomainLive_off(t *testing.T) {
	acctest.Case(t, "a guest that is off has no live side")
	ctx := context.Background()
	d := temporary(t, shared(t), machine{}.xml(t, "off"))
	coded(t, d.SetMemory(ctx, 64<<10, virt.AffectLive), virt.ErrOperationInvalid)
	coded(t, second(d.MemoryStats(ctx)), virt.ErrOperationInvalid)
	coded(t, second(d.Vcpus(ctx)), virt.ErrOperationInvalid)
	coded(t, second(d.VcpuCount(ctx, virt.AffectLive)), virt.ErrOperationInvalid)
}

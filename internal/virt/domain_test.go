package virt_test

import (
	"context"
	"slices"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func TestDomainLife(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	d := define(t, h, "life")
	byUUID := got(h.LookupDomain(ctx, d.UUID()))(t)
	byName := got(h.LookupDomainByName(ctx, "life"))(t)
	if byUUID.Name() != "life" || byName.UUID() != d.UUID() || len(d.UUID()) != 36 {
		t.Errorf("look-ups disagree: %q %q %q", byUUID.Name(), byName.UUID(), d.UUID())
	}
	state := func(want virt.State, active bool) {
		t.Helper()
		s, _, err := d.State(ctx)
		try(t, err)
		if s != want || s.Active() != active || got(d.IsActive(ctx))(t) != active {
			t.Errorf("state %v, active %v; want %v, %v", s, s.Active(), want, active)
		}
	}
	state(virt.StateShutoff, false)
	if id := got(d.ID(ctx))(t); id != -1 {
		t.Errorf("a domain that is off has the id %d", id)
	}
	if !got(d.IsPersistent(ctx))(t) || got(d.HasManagedSave(ctx))(t) || got(d.Autostart(ctx))(t) {
		t.Error("a new domain is not what it should be")
	}
	try(t, d.Start(ctx, virt.StartFlags{}))
	state(virt.StateRunning, true)
	first := got(d.ID(ctx))(t)
	want(t, d.Start(ctx, virt.StartFlags{}), `start domain "life"`, "already running")
	try(t, d.Suspend(ctx))
	state(virt.StatePaused, true)
	try(t, d.Resume(ctx))
	try(t, d.Shutdown(ctx))
	state(virt.StateShutoff, false)
	try(t, d.Start(ctx, virt.StartFlags{}))
	if again := got(d.ID(ctx))(t); again == first {
		t.Errorf("the id is %d again: an old one was remembered", again)
	}
	try(t, d.Destroy(ctx, false))
	try(t, d.SetAutostart(ctx, true))
	if !got(byName.Autostart(ctx))(t) {
		t.Error("autostart was not set")
	}
	try(t, d.Undefine(ctx, virt.UndefineFlags{}))
	for what, err := range map[string]error{
		"look-up by UUID": second(h.LookupDomain(ctx, d.UUID())), "look-up by name": second(h.LookupDomainByName(ctx, "life")),
		"XML through an old handle": second(d.XML(ctx, 0)), "write through an old handle": d.SetAutostart(ctx, false),
	} {
		if !virt.IsNotFound(err) {
			t.Errorf("%s of a domain that is gone: %v", what, err)
		}
	}
	// The same machine comes back; the old handle is by identity and finds it.
	xml := domainXML("life", "<uuid>"+d.UUID()+"</uuid>")
	got(h.DefineDomain(ctx, xml, virt.DefineFlags{}))(t)
	if !containsAny(got(byUUID.XML(ctx, virt.XMLInactive))(t), d.UUID()) {
		t.Error("another machine was read")
	}
}

func TestStateNames(t *testing.T) {
	for state, want := range map[virt.State]string{
		virt.StateRunning: "running", virt.StateBlocked: "blocked", virt.StatePaused: "paused", virt.StateShutdown: "shutdown",
		virt.StateShutoff: "shutoff", virt.StateCrashed: "crashed", virt.StatePMSuspended: "pmsuspended", virt.StateNone: "unknown",
		virt.State(99): "state 99",
	} {
		if got := state.String(); got != want {
			t.Errorf("%d is %q, want %q", state, got, want)
		}
	}
}

func TestDomainRename(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	d := define(t, h, "before")
	if err := d.Rename(ctx, "test"); err == nil {
		t.Error("renamed to a name that is taken")
	}
	if err := d.Rename(ctx, "after"); virt.HasCode(err, virt.ErrNoSupport) {
		t.Skip("the test driver of this libvirt cannot rename")
	} else {
		try(t, err)
	}
	if got := got(h.LookupDomainByName(ctx, "after"))(t).UUID(); got != d.UUID() {
		t.Errorf("another UUID: %s, then %s", d.UUID(), got)
	}
}

func TestDefineErrorsNameTheDomain(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	for name, c := range map[string]struct {
		xml   string
		flags virt.DefineFlags
		parts []string
	}{
		"refused":     {`<domain type="nothing"><name>web</name></domain>`, virt.DefineFlags{}, []string{`define domain "web": `}},
		"nameless":    {`<domain type="test"/>`, virt.DefineFlags{}, []string{"define domain: "}},
		"no document": {`<domain`, virt.DefineFlags{}, []string{"define domain: "}},
		"against the schema": {
			domainXML("web", "<made_up/>"), virt.DefineFlags{Validate: true}, []string{`define domain "web": `, "made_up"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.DefineDomain(ctx, c.xml, c.flags)
			want(t, err, c.parts...)
			if virt.IsNotFound(err) {
				t.Errorf("counts as not found: %v", err)
			}
		})
	}
}

func TestDomainsAreFiltered(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	off, on := define(t, h, "is-off"), define(t, h, "is-on")
	try(t, on.Start(ctx, virt.StartFlags{}))
	try(t, off.SetAutostart(ctx, true))
	names := func(only ...virt.DomainFilter) (out []string) {
		for _, d := range got(h.Domains(ctx, only...))(t) {
			if d.Name() == "is-off" || d.Name() == "is-on" {
				out = append(out, d.Name())
			}
		}
		slices.Sort(out)
		return out
	}
	for what, c := range map[string]struct{ got, want []string }{
		"all":            {names(), []string{"is-off", "is-on"}},
		"active":         {names(virt.OnlyActive), []string{"is-on"}},
		"inactive":       {names(virt.OnlyInactive), []string{"is-off"}},
		"autostart, off": {names(virt.OnlyAutostart, virt.OnlyInactive), []string{"is-off"}},
		"autostart, on":  {names(virt.OnlyAutostart, virt.OnlyActive), nil},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", what, c.got, c.want)
		}
	}
	for _, d := range got(h.Domains(ctx))(t) {
		got(d.XML(ctx, 0))(t) // handles of a list work
	}
}

func TestDomainMetadata(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	d := define(t, h, "described")
	if _, err := d.Metadata(ctx, virt.MetadataTitle, "", virt.AffectConfig); !virt.HasCode(err, virt.ErrNoDomainMetadata) || virt.IsNotFound(err) {
		t.Errorf("a missing title: %v", err)
	}
	const uri = "urn:example:test"
	for kind, text := range map[virt.MetadataKind]string{virt.MetadataTitle: "A <title>", virt.MetadataDescription: "Two\nlines"} {
		try(t, d.SetMetadata(ctx, kind, text, "", "", virt.AffectConfig))
		if got := got(d.Metadata(ctx, kind, "", virt.AffectConfig))(t); got != text {
			t.Errorf("kind %d is %q, want %q", kind, got, text)
		}
	}
	try(t, d.SetMetadata(ctx, virt.MetadataElement, "<generation>7</generation>", "t", uri, virt.AffectConfig))
	if got := got(d.Metadata(ctx, virt.MetadataElement, uri, virt.AffectConfig))(t); !containsAny(got, ">7<") {
		t.Errorf("got %q", got)
	}
	try(t, d.SetMetadata(ctx, virt.MetadataElement, "", "", uri, virt.AffectConfig))
	if _, err := d.Metadata(ctx, virt.MetadataElement, uri, virt.AffectConfig); !virt.HasCode(err, virt.ErrNoDomainMetadata) {
		t.Errorf("a removed element: %v", err)
	}
}

func TestDomainSnapshots(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	d := define(t, h, "pictured")
	if names := got(d.Snapshots(ctx))(t); len(names) != 0 {
		t.Errorf("got %q", names)
	}
	if _, err := d.Checkpoints(ctx); err != nil && !virt.HasCode(err, virt.ErrNoSupport) {
		t.Error(err)
	}
}

// The words are those of virsh; a reason that says nothing has none.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		state              virt.State
		reason             int
		want               string
		byHand, fault      bool
		ofDisk, ofWatchdog bool
	}{
		{state: virt.StateRunning, reason: 1, want: "booted"},
		{state: virt.StateRunning, reason: 0, want: ""},
		{state: virt.StatePaused, reason: 1, want: "user", byHand: true},
		{state: virt.StatePaused, reason: 3, want: "saving"},
		{state: virt.StatePaused, reason: 5, want: "I/O error", fault: true, ofDisk: true},
		{state: virt.StatePaused, reason: 6, want: "watchdog", fault: true, ofWatchdog: true},
		{state: virt.StatePaused, reason: 13, want: "post-copy failed", fault: true},
		{state: virt.StatePaused, reason: 0, want: ""},
		{state: virt.StateShutoff, reason: 1, want: "shutdown"},
		{state: virt.StateShutoff, reason: 5, want: "saved"},
		{state: virt.StateShutdown, reason: 1, want: "user"},
		{state: virt.StateCrashed, reason: 1, want: "panicked"},
		{state: virt.StateRunning, reason: 5, want: "unpaused"}, // numbers are those of their state
		{state: virt.StatePMSuspended, reason: 0, want: ""},
		{state: virt.State(99), reason: 1, want: ""},
	} {
		if got := virt.Reason(c.state, c.reason); got != c.want {
			t.Errorf("%s, %d: %q, want %q", c.state, c.reason, got, c.want)
		}
		if a, b, d, e := virt.IsPausedByHand(c.state, c.reason), virt.IsPausedByFault(c.state, c.reason), virt.IsPausedByDisk(c.state, c.reason), virt.IsPausedByWatchdog(c.state, c.reason); a != c.byHand || b != c.fault || d != c.ofDisk || e != c.ofWatchdog {
			t.Errorf("%s, %d: by hand %v, fault %v, disk %v, watchdog %v", c.state, c.reason, a, b, d, e)
		}
	}
}

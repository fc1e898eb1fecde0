package domain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A guest that somebody started is shut down with a warning, one whose owner
// changed their mind without.
func TestJudgeWarnsAboutAStart(t *testing.T) {
	for kindOf, warns := range map[change.Kind]bool{change.Drift: true, change.Intent: false} {
		v := New(nil).Judge(kind.Judgement{
			Prior:   tree.NullValue.With("name", tree.StringValue("web")).SetAt("status.power", tree.StringValue("running")),
			Config:  tree.NullValue.SetAt("update.shutdown.timeout", tree.IntValue(90)),
			Changes: []change.Change{{Path: tree.ParsePath("running"), Kind: kindOf, Desired: tree.BoolValue(false)}},
		})
		said := fmt.Sprint(v.Warnings)
		if (len(v.Warnings) == 1 && strings.Contains(said, `Somebody started domain "web"`) && strings.Contains(said, "1m30s")) != warns || len(v.Warnings) > 1 {
			t.Errorf("%s: %s", kindOf, said)
		}
	}
}

// What a saved guest does not get from its definition is said before it starts.
func TestJudgeOfASavedGuest(t *testing.T) {
	on, title, memory, name := change.Change{Path: tree.ParsePath("running"), Desired: tree.BoolValue(true)},
		change.Change{Path: tree.ParsePath("title")}, change.Change{Path: tree.ParsePath("memory")}, change.Change{Path: tree.ParsePath("name")}
	for what, c := range map[string]struct {
		allow   string
		saved   bool
		power   string
		changes []change.Change
		want    string // outcome, effect and fields
		warns   string
		refused string
	}{
		"a start":                         {"", true, "shutoff", []change.Change{on}, "update none [running: none]", "", ""},
		"a start with a change":           {"", true, "shutoff", []change.Change{on, title, memory}, "update next_boot [running: none title: next_boot memory: next_boot]", "memory, title", ""},
		"it is never refused":             {"live", true, "shutoff", []change.Change{on, memory}, "update next_boot [running: none memory: next_boot]", "memory", ""},
		"a restart is allowed":            {"restart", true, "shutoff", []change.Change{on, title}, "restart restart [running: none title: restart]", "", ""},
		"a change, and no start":          {"", true, "shutoff", []change.Change{memory}, "resize none [memory: none]", "", ""},
		"a start and a change, not saved": {"", false, "shutoff", []change.Change{on, memory}, "update none [running: none memory: none]", "", ""},
		"a rename":                        {"restart", true, "shutoff", []change.Change{name}, "update none [name: none]", "", "which has a managed save"},
		"a rename, not saved":             {"", false, "shutoff", []change.Change{name}, "update none [name: none]", "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			prior := tree.NullValue.With("name", tree.StringValue("web")).SetAt("status.power", tree.StringValue(c.power)).SetAt("status.managed_save", tree.BoolValue(c.saved))
			v := New(nil).Judge(kind.Judgement{Prior: prior, Config: tree.NullValue.SetAt("update.allow", textOrNull(c.allow)), Changes: c.changes})
			if got := fmt.Sprint(v.Outcome, " ", v.Effect, " ", v.Fields); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if said := fmt.Sprint(v.Warnings); (len(v.Warnings) > 0) != (c.warns != "") || !strings.Contains(said, c.warns) {
				t.Errorf("warnings %s, want %q", said, c.warns)
			}
			if said := fmt.Sprint(v.Refusals); (len(v.Refusals) > 0) != (c.refused != "") || !strings.Contains(said, c.refused) {
				t.Errorf("refusals %s, want %q", said, c.refused)
			}
		})
	}
}

// A guest that stands still is degraded only if nobody told it to.
func TestDegraded(t *testing.T) {
	const user, saving, ioError, watchdog, failed, panicked = 1, 3, 5, 6, 13, 1 // libvirt's numbers
	for _, c := range []struct {
		power        virt.State
		reason       int
		state, words string
		warns        []string
	}{
		{virt.StateRunning, 1, stateSettled, "booted", nil},
		{virt.StatePaused, user, stateSettled, "user", nil},
		{virt.StatePaused, saving, stateSettled, "saving", nil},
		{virt.StatePMSuspended, 0, stateSettled, "", nil},
		{virt.StateShutdown, 1, stateSettled, "user", nil},
		{virt.StateShutoff, 2, stateSettled, "destroyed", nil},
		{virt.StatePaused, ioError, stateDegraded, "I/O error", []string{`"web" was paused by libvirt: I/O error`, "virsh domblkerror web", "virsh resume web"}},
		{virt.StatePaused, watchdog, stateDegraded, "watchdog", []string{"watchdog", "virsh reset web"}},
		{virt.StatePaused, failed, stateDegraded, "post-copy failed", []string{"post-copy failed", "virsh resume web"}},
		{virt.StateCrashed, panicked, stateDegraded, "panicked", []string{`"web" has crashed`, `"panicked"`, "virsh destroy web", "update.shutdown.force"}},
		{virt.StateCrashed, 0, stateDegraded, "", []string{`"web" has crashed`}},
	} {
		s := &sight{name: "web", power: c.power, reason: c.reason, persistent: true}
		f := s.facts(tree.NullValue)
		if got := f.Status.Attr("state").Str(); got != c.state {
			t.Errorf("%s, %d: %s, want %s", c.power, c.reason, got, c.state)
		}
		if got := f.Status.Attr("power_reason").Str(); got != c.words {
			t.Errorf("%s, %d: the reason is %q, want %q", c.power, c.reason, got, c.words)
		}
		said := fmt.Sprint(f.Warnings)
		if len(f.Warnings) > 1 || len(f.Warnings) != min(1, len(c.warns)) {
			t.Errorf("%s, %d: %d warnings: %s", c.power, c.reason, len(f.Warnings), said)
		}
		for _, part := range c.warns {
			if !strings.Contains(said, part) {
				t.Errorf("%s, %d: no warning says %q: %s", c.power, c.reason, part, said)
			}
		}
	}
}

// The number of a guest is not known before it is started or shut down, and
// nobody's business else.
func TestNumberFollowsThePower(t *testing.T) {
	k := New(nil)
	on := tree.NullValue.With("name", tree.StringValue("web")).With("type", tree.StringValue("qemu")).With("running", tree.BoolValue(true)).With("id", tree.IntValue(7))
	off := on.With("running", tree.BoolValue(false)).With("id", tree.NullValue)
	for what, c := range map[string]struct {
		host    tree.Value
		running tree.Value // as configured
		title   string
		unknown bool
	}{
		"it is shut down":            {on, tree.BoolValue(false), "", true},
		"it is started":              {off, tree.BoolValue(true), "", true},
		"it runs on":                 {on, tree.BoolValue(true), "web server", false},
		"it stays off":               {off, tree.BoolValue(false), "web server", false},
		"nobody says":                {on, tree.NullValue, "web server", false},
		"nobody says, and it is off": {off, tree.NullValue, "web server", false},
	} {
		config := tree.NullValue.With("name", tree.StringValue("web")).With("type", tree.StringValue("qemu")).With("running", c.running).With("title", textOrNull(c.title))
		planned := k.rules.Plan(change.Input{Type: k.typ, Config: config, Prior: c.host, Baseline: c.host, Actual: c.host}).Planned
		if id := planned.Attr("id"); id.IsUnknown() != c.unknown || !c.unknown && !tree.Equal(id, c.host.Attr("id")) {
			t.Errorf("%s: the number is planned as %s", what, id)
		}
	}
}

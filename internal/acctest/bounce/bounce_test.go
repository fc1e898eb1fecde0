package bounce

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

const running = `<domain type='qemu' id='3'><name>a</name><title>t</title><memory unit='KiB'>1024</memory>
<metadata><driftsafe:domain xmlns:driftsafe="` + domain.Namespace + `" generation="4"/><x:site xmlns:x="urn:x" rack="7"/></metadata>
<vcpu placement='static' current='1'>2</vcpu><features><acpi/></features>
<devices><rng model='virtio'><backend model='random'>/dev/urandom</backend></rng><rng model='virtio-transitional'/></devices></domain>`

func TestLeaves(t *testing.T) {
	got, generation, err := leaves(running)
	if err != nil || generation != "4" {
		t.Fatalf("generation %q, %v", generation, err)
	}
	want := Leaves{
		"@type": "qemu", "@id": "3", "name": "a", "title": "t", "memory": "1024", "memory/@unit": "KiB", "metadata/x:site/@rack": "7",
		"vcpu": "2", "vcpu/@placement": "static", "vcpu/@current": "1", "features/acpi": "(empty)",
		"devices/rng/@model": "virtio", "devices/rng/backend": "/dev/urandom", "devices/rng/backend/@model": "random", "devices/rng[2]/@model": "virtio-transitional",
	}
	if !maps.Equal(got, want) {
		t.Errorf("differ in %q:\n%q", differ(got, want), got)
	}
	for _, bad := range []string{"", "<domain>"} {
		if _, _, err := leaves(bad); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}

// What a running guest shows of what is not there is left out.
func TestLeavesThatSayNothing(t *testing.T) {
	read := func(inside string) Leaves {
		t.Helper()
		got, _, err := leaves("<domain><name>a</name>" + inside + "</domain>")
		if err != nil {
			t.Fatal(err)
		}
		delete(got, "name")
		return got
	}
	for inside, want := range map[string]Leaves{
		`<cputune><period>100000</period><quota>-1</quota><global_quota>-1</global_quota><shares>512</shares></cputune>`: {"cputune/shares": "512"},
		`<cputune><period>90000</period><emulator_quota>5000</emulator_quota></cputune>`:                                 {"cputune/period": "90000", "cputune/emulator_quota": "5000"},
		`<perf><event name="a" enabled="no"/><event name="b" enabled="yes"/></perf>`:                                     {"perf/event/@name": "b", "perf/event/@enabled": "yes"},
		`<iothreads>2</iothreads><iothreadids><iothread id="2"/><iothread id="1"/></iothreadids>`:                        {"iothreads": "2"},
		`<iothreads>1</iothreads><iothreadids><iothread id="2"/></iothreadids>`:                                          {"iothreads": "1", "iothreadids/iothread/@id": "2"},
		`<iothreads>1</iothreads><iothreadids><iothread id="1" thread_pool_max="8"/></iothreadids>`:                      {"iothreads": "1", "iothreadids/iothread/@id": "1", "iothreadids/iothread/@thread_pool_max": "8"},
	} {
		if got := read(inside); !maps.Equal(got, want) {
			t.Errorf("%s: %q", inside, got)
		}
	}
}

// moment is a machine of the tests: settled, and running for 10 s.
func moment() *Moment {
	return &Moment{
		Machine:    host.Machine{Name: "a", PID: 7, Start: 70, ID: 1},
		Report:     host.Report{Uptime: 10, BootID: "one", CPUs: 1, MemKiB: 80000},
		Definition: Leaves{"memory": "128", "title": "t", Autostart: "disable"}, Guest: Leaves{"memory": "128", "title": "t"},
		Generation: "1", Observed: "1",
	}
}

// later is the machine 10 s later, with what the changes do to it.
func later(changes ...func(*Moment)) *Moment {
	m := moment()
	m.Report.Uptime = 20
	for _, c := range changes {
		c(m)
	}
	return m
}

func defined(at, value string) func(*Moment) {
	return func(m *Moment) { m.Definition[at] = value; m.Generation = "2" }
}

func guestHas(at, value string) func(*Moment) {
	return func(m *Moment) { m.Guest[at] = value; m.Observed = "2" }
}

func restarted(m *Moment) {
	m.Machine.PID, m.Machine.Start, m.Machine.ID, m.Report.BootID, m.Report.Uptime = 8, 80, 2, "two", 5
}

func TestHappened(t *testing.T) {
	for name, tc := range map[string]struct {
		after *Moment
		want  string
	}{
		"nothing":                       {later(), nothing},
		"autostart":                     {later(defined(Autostart, "enable")), "none"},
		"a definition like the guest":   {later(defined("memory", "128"), guestHas("memory", "128"), defined("title", "t")), nothing},
		"a title in both":               {later(defined("title", "u"), guestHas("title", "u")), "live"},
		"memory in the definition":      {later(defined("memory", "160")), "next_boot"},
		"one of each":                   {later(defined("memory", "160"), defined("title", "u"), guestHas("title", "u")), "next_boot"},
		"a value the definition loses":  {later(func(m *Moment) { delete(m.Definition, "memory") }), "next_boot"},
		"the guest alone":               {later(guestHas("title", "u")), "live"},
		"another process":               {later(restarted), "restart"},
		"the same process, booted anew": {later(func(m *Moment) { m.Report.BootID = "two" }), "restart"},
		"no process":                    {later(func(m *Moment) { m.Off = true }), stopped},
	} {
		if got := happened(moment(), tc.after); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	// What waited is taken back: the definition changes, towards the guest.
	before := moment()
	before.Definition["memory"] = "160"
	if got := happened(before, later()); got != "none" {
		t.Errorf("taken back: %q", got)
	}
	// So it is with a CPU, though the guest's XML never says what its definition said.
	cpu := func(mode string) *Moment {
		m := later(defined("cpu/@mode", mode), guestHas("cpu/@mode", "custom"))
		m.remember(&Moment{Machine: m.Machine, Started: Leaves{"cpu/@mode": "host-model"}})
		return m
	}
	if there, back := happened(cpu("host-model"), cpu("maximum")), happened(cpu("maximum"), cpu("host-model")); there != "next_boot" || back != "none" {
		t.Errorf("another CPU: %q; the first one again: %q", there, back)
	}
	if anew := cpu("maximum"); anew.Started["cpu/@mode"] != "host-model" {
		t.Errorf("a guest that runs on was started with %q", anew.Started)
	} else if restarted(anew); true {
		if anew.remember(cpu("maximum")); anew.Started["cpu/@mode"] != "maximum" {
			t.Errorf("a guest that was started anew was started with %q", anew.Started)
		}
	}
}

func status(state string, generation, observed int64, pending ...string) *values {
	v := &values{}
	text := `{"State":"` + state + `","Settled":` + map[bool]string{true: "true", false: "false"}[state == "settled"] + `}`
	if err := json.Unmarshal([]byte(text), &v.Status); err != nil {
		panic(err) // it is written here
	}
	v.Status.Generation, v.Status.ObservedGeneration, v.Status.Pending = generation, observed, pending
	return v
}

func (v *values) with(effect string, fields ...string) *values {
	if err := json.Unmarshal([]byte(`{"Effect":"`+effect+`"}`), &v.Change); err != nil {
		panic(err) // it is written here
	}
	v.Change.Fields = fields
	return v
}

// A result that is right in everything has no problems; each lie is found.
func TestJudgeFindsEveryLie(t *testing.T) {
	step := &Step{Live: Leaves{"title": "u"}, Boot: Leaves{"memory": "160"}}
	want := Want{Effect: "next_boot", Pending: []string{"memory"}}
	fields := []string{"memory: next_boot", "title: live"}
	right := func() *Result {
		return &Result{
			Planned: "next_boot", Fields: fields, Happened: "next_boot", Second: "empty", Before: moment(),
			After:  later(defined("memory", "160"), defined("title", "u"), func(m *Moment) { m.Guest["title"] = "u" }),
			Status: status("pending", 2, 1, "memory").with("next_boot", fields...),
		}
	}
	judge := func(r *Result, w Want) []string {
		r.judgePlan(w)
		r.judge(step, w)
		return r.Problems
	}
	if problems := judge(right(), want); len(problems) > 0 {
		t.Fatalf("the right one: %q", problems)
	}
	for says, lie := range map[string]func(*Result){
		"the plan says live":                           func(r *Result) { r.Planned = "live" },
		"what happened is restart":                     func(r *Result) { restarted(r.After); r.Happened = "restart"; r.Graceful = "in order" },
		"what happened is stopped":                     func(r *Result) { r.After.Off = true; r.Happened = stopped },
		"was not shut down in order":                   func(r *Result) { r.Graceful = "stopped hard" },
		"uptime went from":                             func(r *Result) { r.After.Report.Uptime = 3 },
		"ID:2":                                         func(r *Result) { r.After.Machine.ID = 2 },
		"touched: memory was":                          func(r *Result) { r.After.Guest["memory"] = "144" },
		`memory is "160" in the running guest already`: func(r *Result) { r.After.Guest["memory"] = "160" },
		`title is "t" in the running guest, not "u"`:   func(r *Result) { r.After.Guest["title"] = "t" },
		`memory is "128" in the definition`:            func(r *Result) { r.After.Definition["memory"] = "128" },
		"status.pending is []":                         func(r *Result) { r.Status.Status.Pending = nil },
		`status.held is ["vcpu"]`:                      func(r *Result) { r.Status.Status.Held = []struct{ Path string }{{"vcpu"}} },
		`status.state is "settled"`:                    func(r *Result) { r.Status.Status.State = "settled" },
		"status.generation is 3":                       func(r *Result) { r.Status.Status.Generation = 3 },
		"status.observed_generation is 2":              func(r *Result) { r.Status.Status.ObservedGeneration = 2 },
		"the guest is at generation 2 already":         func(r *Result) { r.After.Observed = "2" },
		"after the apply, and was":                     func(r *Result) { r.Status.Change.Effect = "live" },
		"the second plan is not empty":                 func(r *Result) { r.Second = "next_boot" },
		"there is no status":                           func(r *Result) { r.Status = nil },
	} {
		r := right()
		lie(r)
		if problems := judge(r, want); !strings.Contains(strings.Join(problems, "\n"), says) {
			t.Errorf("not found: %s; problems: %q", says, problems)
		}
	}
	settled := right()
	settled.Status = status("settled", 2, 1).with("next_boot", fields...)
	if problems := judge(settled, Want{Effect: "next_boot"}); !strings.Contains(strings.Join(problems, "\n"), "nothing waits, and the guest is at generation 1 of 2") {
		t.Errorf("a guest that is behind though nothing waits: %q", problems)
	}
	bystander := &Result{Happened: "live", Second: "empty", Before: moment(), After: later(guestHas("title", "u"))}
	if bystander.judgeBystander(); len(bystander.Problems) == 0 {
		t.Error("a bystander may be touched")
	}
	back := &Result{Before: moment(), After: later(defined("memory", "160"), guestHas("title", "u"))}
	if back.judgeBack(moment(), Want{}, nil); len(back.Problems) != 2 {
		t.Errorf("not taken back: %q", back.Problems)
	}
	for stay, problems := range map[string]int{"memory": 0, "vcpu": 1} {
		stays := &Result{Before: moment(), After: later(defined("memory", "160"))}
		if stays.judgeBack(moment(), Want{}, []string{stay}); len(stays.Problems) != problems {
			t.Errorf("memory differs, %s stays: %q", stay, stays.Problems)
		}
	}
	silent := &Result{Happened: nothing, Before: moment(), After: later(func(m *Moment) { m.Report.MemKiB = 1 })}
	if silent.judgeRun(&Step{}); len(silent.Problems) != 1 {
		t.Errorf("a guest that lost memory in silence: %q", silent.Problems)
	}
}

func TestCheckTable(t *testing.T) {
	step := Step{Change: Fields{"memory": "1"}, Boot: Leaves{"memory": "1"}, Want: Waits("memory")}
	if err := Check([]Row{{Name: "good", Steps: []Step{step}}, {Name: "absent", Unavailable: "no such thing"}}); err != nil {
		t.Fatal(err)
	}
	with := func(edit func(*Step)) []Row {
		s := step
		edit(&s)
		return []Row{{Name: "row", Steps: []Step{s}}}
	}
	for says, rows := range map[string][]Row{
		"small letters":         {{Name: "A Row", Steps: []Step{step}}},
		"there are two":         {{Name: "a", Steps: []Step{step}}, {Name: "a", Steps: []Step{step}}},
		"no steps":              {{Name: "a"}},
		"does not say what it":  with(func(s *Step) { s.Want = nil }),
		"unknown effect":        with(func(s *Step) { s.Want = Always(Want{Effect: "soon"}) }),
		"and has the effect":    with(func(s *Step) { s.Want = Always(Want{Effect: "live", Refused: "no"}) }),
		"though nothing happen": with(func(s *Step) { s.Want = Always(Want{}) }),
		"looked for":            with(func(s *Step) { s.Boot = nil }),
		"two levels deep":       with(func(s *Step) { s.Change = Fields{"a.b.c": "1"} }),
		"taking it back does":   {{Name: "a", Steps: []Step{step}, Back: Wants{}}},
	} {
		if err := Check(rows); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestChosenRows(t *testing.T) {
	rows := []Row{{Name: "memory-up"}, {Name: "vcpu-up"}}
	for pattern, want := range map[string]int{"": 2, "^memory": 1, "up$": 2, "none": 0} {
		if got, err := chosen(rows, pattern); err != nil || len(got) != want {
			t.Errorf("%q chooses %v, %v", pattern, got, err)
		}
	}
	if _, err := chosen(rows, "("); err == nil {
		t.Error("a broken expression is no error")
	}
}

func TestWantBack(t *testing.T) {
	live, boot := Leaves{"title": "u"}, Leaves{"memory": "160"}
	for name, tc := range map[string]struct {
		row  Row
		want [3]string // by policy
	}{
		"live":  {Row{Steps: []Step{{Live: live, Want: Always(Live)}}}, [3]string{"live", "live", "live"}},
		"none":  {Row{Steps: []Step{{Want: Always(None)}}}, [3]string{"none", "none", "none"}},
		"waits": {Row{Steps: []Step{{Boot: boot, Want: Waits("memory")}}}, [3]string{"none", "none", "restart"}},
		"both":  {Row{Steps: []Step{{Live: live, Boot: boot, Want: Waits("memory")}}}, [3]string{"none", "live", "restart"}},
		"said":  {Row{Steps: []Step{{Boot: boot, Want: Waits("memory")}}, Back: Always(Live)}, [3]string{"live", "live", "live"}},
	} {
		for i, p := range Policies {
			if got := tc.row.wantBack(p).Effect; got != tc.want[i] {
				t.Errorf("%s under %s: %q, want %q", name, p, got, tc.want[i])
			}
		}
	}
}

func TestResource(t *testing.T) {
	f := Fields{"name": `"a"`, "os.type": `"hvm"`, "memory": "1"}.over(Fields{"memory": Gone, "os.kernel": `"/k"`})
	got := strings.Join(strings.Fields(f.resource("label")), " ")
	const want = `resource "libvirt_domain" "label" { name = "a" os = { kernel = "/k" type = "hvm" } }`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReadPlan(t *testing.T) {
	p := &plan{changes: map[string]change{}}
	err := p.read(`a warning
{"resource_changes":[
 {"address":"libvirt_domain.a","change":{"actions":["update"],"before":{"status":{"pending":["memory"],"observed_generation":3}},"after":{"change":{"effect":"live","fields":["title: live"]}}}},
 {"address":"libvirt_domain.b","change":{"actions":["no-op"],"before":{},"after":{}}},
 {"address":"libvirt_domain.c","change":{"actions":["delete","create"],"before":{},"after":{}}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{"libvirt_domain.a": "live", "libvirt_domain.b": "", "libvirt_domain.c": "delete+create"} {
		if got := p.changes[address].effect(); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	if st := p.changes["libvirt_domain.a"].Change.Before.Status; st.ObservedGeneration != 3 || !slices.Equal(st.Pending, []string{"memory"}) {
		t.Errorf("status %+v", st)
	}
	all := messages("{\"@level\":\"error\",\"diagnostic\":{\"severity\":\"error\",\"summary\":\"no\",\"detail\":\"not\\nso\",\"address\":\"libvirt_domain.a\"}}\nnoise\n")
	if got := about(of(all, "error"), "libvirt_domain.a"); len(got) != 1 || got[0].String() != "no: not so" {
		t.Errorf("messages %v", all)
	}
}

func TestMarkdown(t *testing.T) {
	row := &Row{Name: "a-row", Steps: []Step{{Want: Always(Live)}}}
	play := &Result{Row: "a-row", Step: "1", Last: true, Planned: "live", Happened: "live", Before: moment(), After: later(), Status: status("settled", 1, 1), Second: "empty"}
	back := &Result{Planned: "live", Happened: "live", Status: status("settled", 1, 1), Second: "empty"}
	w := &wave{guests: []*guest{{row: row, rounds: []*round{{AllowLive, []*Result{play}, back}}}}, absent: []*Row{{Name: "gone", Unavailable: "no | such thing"}}}
	file := filepath.Join(t.TempDir(), "r.md")
	for range 2 {
		if err := appendTo(file, markdown("title", w.lines(), []string{"one\nproblem"})); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## title\n", "| a-row | live |  | live | live | 7 | 1 | 10.0 → 20.0 | none | empty | live | live | none | empty | ok |\n",
		`| unavailable: no \| such thing |`, "\n- one problem\n\n## title\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	play.problem("it is wrong")
	if got := w.lines()[0]; got[len(got)-1] != "WRONG" {
		t.Errorf("a wrong row is called %q", got[len(got)-1])
	}
	if err := appendTo(t.TempDir(), "x"); err == nil {
		t.Error("a directory was written to")
	}
}

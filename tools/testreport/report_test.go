package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

const pkg = "example.org/internal/domain"

// stream turns a short script into events of `go test -json`. A line is "ACTION TEST [REST]",
// with "-" for the package itself; REST is the output, the seconds, or key and value of attr.
// The test opens with its events "run", the package with "start".
func stream(t *testing.T, script string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(script) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		action, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		test, rest, _ := strings.Cut(rest, " ")
		e := map[string]any{"Time": time.Now(), "Action": action, "Package": pkg}
		if test != "-" {
			e["Test"] = test
		}
		switch action {
		case "output":
			e["Output"] = rest + "\n"
		case "attr":
			e["Key"], e["Value"], _ = strings.Cut(rest, " ")
		case "pass", "fail", "skip":
			seconds, err := strconv.ParseFloat("0"+rest, 64)
			if err != nil {
				t.Fatalf("script line %q: %v", line, err)
			}
			e["Elapsed"] = seconds
		}
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", raw)
	}
	return b.String()
}

func readRun(t *testing.T, name, script string) *Run {
	t.Helper()
	run := NewRun(name, "1.2.3")
	if err := run.Read(strings.NewReader(stream(t, script)), func(*Test) {}); err != nil {
		t.Fatal(err)
	}
	return run
}

// passing is a whole stream with one case that passes.
const passing = `
	start -
	run TestAccA
	attr TestAccA acctest.case shows a
	pass TestAccA 1.5
	pass -`

// elsewhere is a whole stream with the same case left to another core.
func elsewhere(name string) string {
	return `
	start -
	run TestAccA
	attr TestAccA acctest.case shows a
	attr TestAccA acctest.elsewhere ` + name + `
	skip TestAccA
	pass -`
}

const notForTerraform = `
	start -
	run TestAccA
	attr TestAccA acctest.case shows a
	attr TestAccA acctest.not-for-core terraform lacks it
	skip TestAccA
	pass -`

const unavailable = `
	start -
	run TestAccA
	attr TestAccA acctest.case shows a
	attr TestAccA acctest.unavailable the kernel lacks sch_sfq
	skip TestAccA
	pass -`

func TestProblems(t *testing.T) {
	const unavailableLine = pkg + " TestAccA: the kernel lacks sch_sfq"
	for name, tc := range map[string]struct {
		tofu, terraform, unit string // scripts; an empty one did not run
		split                 string // half if empty
		partial               bool
		required, golden      []string
		want                  []string
	}{
		"half, once on one of the cores": {tofu: passing, terraform: elsewhere("tofu")},
		"half, the only core":            {tofu: passing},
		"all, on both":                   {tofu: passing, terraform: passing, split: core.SplitAll},
		"half, twice": {
			tofu: passing, terraform: passing,
			want: []string{pkg + " TestAccA ran on tofu and terraform, though one of them is to run it"},
		},
		"half, on none": {
			tofu: elsewhere("terraform"), terraform: elsewhere("tofu"),
			want: []string{pkg + " TestAccA ran on no core"},
		},
		"half, left to a core that does not know it": {
			tofu: elsewhere("terraform"), terraform: "start -\npass -",
			want: []string{pkg + " TestAccA ran on no core"},
		},
		"all, missing on one": {
			tofu: passing, terraform: "start -\npass -", split: core.SplitAll,
			want: []string{"terraform: " + pkg + " TestAccA did not run"},
		},
		"all, left to the other": {
			tofu: passing, terraform: elsewhere("tofu"), split: core.SplitAll,
			want: []string{"terraform: " + pkg + " TestAccA was left to tofu, though every core is to run it"},
		},
		"not for one core":              {tofu: passing, terraform: notForTerraform, split: core.SplitAll},
		"only for a core not installed": {terraform: notForTerraform},
		"not for any core that ran": {
			tofu: notForTerraform, terraform: notForTerraform,
			want: []string{pkg + " TestAccA ran on no core"},
		},
		"required core missing": {
			tofu: passing, required: []string{"tofu", "terraform"},
			want: []string{"core terraform is required and did not run"},
		},
		"failed": {
			tofu: "start -\nrun TestAccA\nattr TestAccA acctest.case a\nfail TestAccA 2\nfail -",
			want: []string{"tofu: " + pkg + " TestAccA failed"},
		},
		"failed subtest is named, not its parent": {
			unit: "start -\nrun TestA\nrun TestA/b\nfail TestA/b\nfail TestA\nfail -",
			want: []string{"unit: " + pkg + " TestA/b failed"},
		},
		"unavailable and expected": {tofu: unavailable, golden: []string{unavailableLine}},
		"unavailable on both cores is one line": {
			tofu: unavailable, terraform: unavailable, split: core.SplitAll, golden: []string{unavailableLine},
		},
		"unavailable and not expected": {
			tofu: unavailable,
			want: []string{"unavailable, but not in the golden file: " + unavailableLine},
		},
		"unavailable for another reason": {
			tofu: unavailable, golden: []string{pkg + " TestAccA: no KVM"},
			want: []string{
				"unavailable, but not in the golden file: " + unavailableLine,
				"in the golden file, but not unavailable for this reason: " + pkg + " TestAccA: no KVM",
			},
		},
		"expected to be unavailable and passed": {
			tofu: passing, golden: []string{unavailableLine},
			want: []string{"in the golden file, but not unavailable for this reason: " + unavailableLine},
		},
		"golden file names a case that is gone": {
			tofu: passing, golden: []string{pkg + " TestAccGone: no KVM"},
			want: []string{"in the golden file, but not unavailable for this reason: " + pkg + " TestAccGone: no KVM"},
		},
		"golden file names a case that was not asked for": {
			tofu: passing, partial: true, golden: []string{pkg + " TestAccOther: no KVM"},
		},
		"failed after it called itself unavailable": {
			tofu: strings.Replace(unavailable, "skip TestAccA\n\tpass -", "fail TestAccA\n\tfail -", 1),
			want: []string{"tofu: " + pkg + " TestAccA failed"},
		},
		"skipped without a reason": {
			tofu: "start -\nrun TestAccA\nattr TestAccA acctest.case a\nskip TestAccA\npass -",
			want: []string{"tofu: " + pkg + " TestAccA was skipped without acctest.Unavailable"},
		},
		"skipped unit test": {
			unit: "start -\nrun TestA\nskip TestA\npass -",
			want: []string{"unit: " + pkg + " TestA was skipped without acctest.Unavailable"},
		},
		"passed without Case": {
			tofu: "start -\nrun TestAccA\npass TestAccA\npass -",
			want: []string{"tofu: " + pkg + " TestAccA passed without acctest.Case, so it is not known on which core it belongs"},
		},
		"subtests that are cases": {
			tofu: "start -\nrun TestAccA\nrun TestAccA/b\nattr TestAccA/b acctest.case b\npass TestAccA/b\npass TestAccA\npass -",
		},
		"died": {
			tofu: "start -\nrun TestAccA\nattr TestAccA acctest.case a\noutput - panic: test timed out after 1s\nfail -",
			want: []string{"tofu: " + pkg + " TestAccA did not finish: its process ended (a panic, or the timeout)"},
		},
		"died after it called itself unavailable": {
			tofu: strings.Replace(unavailable, "skip TestAccA\n\tpass -", "fail -", 1),
			want: []string{"tofu: " + pkg + " TestAccA did not finish: its process ended (a panic, or the timeout)"},
		},
		"package failed outside of its tests": {
			tofu: "start -\nrun TestAccA\nattr TestAccA acctest.case a\npass TestAccA\nfail -",
			want: []string{"tofu: " + pkg + " failed outside of its tests (build, TestMain, a panic or exit)"},
		},
		"stream broke off": {
			tofu: "start -\nrun TestAccA\nattr TestAccA acctest.case a\npass TestAccA",
			want: []string{"tofu: " + pkg + ": the stream broke off before the package was finished"},
		},
		"package without tests": {tofu: passing + "\nstart -\nskip -"},
		"no case at all":        {tofu: "start -\nskip -", want: []string{"no acceptance case ran"}},
		"unit tests alone":      {unit: "start -\nrun TestA\npass TestA\npass -"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{Split: tc.split, Partial: tc.partial, Required: tc.required, Golden: tc.golden}
			if r.Split == "" {
				r.Split = core.SplitHalf
			}
			if tc.unit != "" {
				r.Unit = readRun(t, "unit", tc.unit)
			}
			if tc.tofu != "" {
				r.Cores = append(r.Cores, readRun(t, "tofu", tc.tofu))
			}
			if tc.terraform != "" {
				r.Cores = append(r.Cores, readRun(t, "terraform", tc.terraform))
			}
			if got := r.Problems(); !slices.Equal(got, tc.want) {
				t.Errorf("problems:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(tc.want, "\n  "))
			}
		})
	}
}

func TestUpdatedGoldenKeepsWhatWasNotAskedFor(t *testing.T) {
	other := pkg + " TestAccOther: no KVM"
	stale := pkg + " TestAccA: an older reason"
	for _, tc := range []struct {
		partial bool
		want    []string
	}{
		{false, []string{pkg + " TestAccA: the kernel lacks sch_sfq"}},
		{true, []string{pkg + " TestAccA: the kernel lacks sch_sfq", other}},
	} {
		r := &Report{
			Split: core.SplitHalf, Partial: tc.partial, Golden: []string{stale, other},
			Cores: []*Run{readRun(t, "tofu", unavailable)},
		}
		if got := r.updatedGolden(); !slices.Equal(got, tc.want) {
			t.Errorf("partial=%t: golden %q, want %q", tc.partial, got, tc.want)
		}
	}
}

func TestPrint(t *testing.T) {
	r := &Report{
		Split: core.SplitAll, Elapsed: 245 * time.Second,
		Unit: readRun(t, "unit", "start -\nrun TestA\npass TestA\nrun TestB\noutput TestB got 3, want 4\nfail TestB\nfail -"),
		Cores: []*Run{
			readRun(t, "tofu", passing),
			readRun(t, "terraform", notForTerraform),
		},
	}
	var b strings.Builder
	r.Print(&b)
	for _, want := range []string{
		"---- unit: " + pkg + " TestB (FAIL)\ngot 3, want 4\n",
		"case                                  tofu 1.2.3  terraform 1.2.3  what it shows\n",
		pkg + " TestAccA  pass 1.5s   not for core     shows a\n",
		"unit tests: 1 passed, 1 failed, in 1 package (0 unchanged), 0.0s\n",
		"1 acceptance case in all, each on every core\n",
		"not for this core:\n  " + pkg + " TestAccA, on terraform: terraform lacks it\n",
		"slowest cases:\n      1.5s  " + pkg + " TestAccA\n",
		"problems:\n  unit: " + pkg + " TestB failed\n",
		"result: FAILED, 1 problem, in 4m05s\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
}

func TestPrintNamesTheCoreThatDidNotRun(t *testing.T) {
	var b strings.Builder
	(&Report{Split: core.SplitHalf, Cores: []*Run{readRun(t, "tofu", passing)}}).Print(&b)
	for _, want := range []string{"core terraform did not run\n", "each once, on the only core", "result: ok"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
}

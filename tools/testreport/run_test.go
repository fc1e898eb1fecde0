package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

const sample = "tools/testreport/testdata/sample"

// fakeCores puts programs on the PATH that print a version and can do nothing else.
func fakeCores(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, banner := range map[string]string{"tofu": "OpenTofu v9.9.1", "terraform": "Terraform v9.9.2"} {
		script := "#!/bin/sh\necho " + banner + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// report runs the command with the arguments and returns its verdict and what it printed.
func report(t *testing.T, ctx context.Context, required string, args ...string) (bool, string) {
	t.Helper()
	var out strings.Builder
	o, err := parse(args, required, &out)
	if err != nil {
		t.Fatal(err)
	}
	ok, err := run(ctx, o, &out)
	if err != nil {
		t.Fatal(err)
	}
	return ok, out.String()
}

func goldenFile(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "unavailable.golden")
	if err := writeGolden(path, lines); err != nil {
		t.Fatal(err)
	}
	return path
}

const expected = sample + " TestAccUnavailable: no host at all"

func wantLines(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(out, line) {
			t.Errorf("the output lacks %q:\n%s", line, out)
		}
	}
}

func TestRunHalf(t *testing.T) {
	fakeCores(t)
	for _, mode := range []string{"-together=false", "-together=true"} {
		keep := t.TempDir()
		ok, out := report(t, t.Context(), "tofu,terraform",
			"-split", "half", mode, "-unit", "-keep", keep, "-golden", goldenFile(t, expected), "./testdata/sample")
		if !ok {
			t.Fatalf("%s: not ok:\n%s", mode, out)
		}
		wantLines(t, out,
			"unit tests: 1 passed, 0 failed, in 1 package",
			"tofu 9.9.1 ", "terraform 9.9.2 ",
			"7 acceptance cases in all, each once, the cores alternating",
			"unavailable on this host:\n  "+expected+"\n", "result: ok")
		for _, test := range []string{"TestAccOne", "TestAccTwo", "TestAccThree/a", "TestAccThree/b", "TestAccTofuOnly", "TestAccUnavailable", "TestAccEnding"} {
			progress := 0
			for line := range strings.Lines(out) {
				fields := strings.Fields(line)
				if len(fields) > 5 && slices.Contains(core.Names(), fields[1]) && strings.TrimSuffix(fields[5], ":") == test {
					progress++
				}
			}
			if progress != 1 {
				t.Errorf("%s: %s has %d lines of progress, want one:\n%s", mode, test, progress, out)
			}
		}
		again, stored := report(t, t.Context(), "tofu,terraform", "-split", "half", "-golden", goldenFile(t, expected),
			"-read", "unit="+keep+"/unit.json", "-read", "tofu="+keep+"/tofu.json", "-read", "terraform="+keep+"/terraform.json")
		if !again {
			t.Errorf("%s: the stored events are judged otherwise:\n%s", mode, stored)
		}
	}
}

func TestRunAll(t *testing.T) {
	fakeCores(t)
	ok, out := report(t, t.Context(), "", "-split", "all", "-golden", goldenFile(t, expected), "./testdata/sample")
	if !ok {
		t.Fatalf("not ok:\n%s", out)
	}
	wantLines(t, out, "each on every core",
		"not for this core:\n  "+sample+" TestAccTofuOnly, on terraform: terraform lacks it\n", "three b passes")
}

func TestRunOneCore(t *testing.T) {
	fakeCores(t)
	ok, out := report(t, t.Context(), "", "-split", "half", "-cores", "terraform", "-golden", goldenFile(t, expected), "./testdata/sample")
	if !ok {
		t.Fatalf("not ok:\n%s", out)
	}
	wantLines(t, out, "core tofu did not run", "each once, on the only core")
	ok, out = report(t, t.Context(), "tofu", "-cores", "terraform", "-golden", goldenFile(t, expected), "./testdata/sample")
	if ok {
		t.Errorf("ok, though tofu is required:\n%s", out)
	}
	wantLines(t, out, "core tofu is required and did not run")
}

func TestRunEndings(t *testing.T) {
	fakeCores(t)
	const test = sample + " TestAccEnding"
	for ending, want := range map[string][]string{
		"fail":  {"tofu: " + test + " failed\n", "what the failing case said"},
		"panic": {"tofu: " + test + " failed\n", "what the panicking case said"},
		"skip":  {"tofu: " + test + " was skipped without acctest.Unavailable\n", "just so"},
		"exit":  {"tofu: " + test + " did not finish"},
		"sleep": {"tofu: " + test + " did not finish", "panic: test timed out after 2s"},
	} {
		t.Run(ending, func(t *testing.T) {
			t.Setenv("SAMPLE_ENDING", ending)
			ok, out := report(t, t.Context(), "", "-cores", "tofu", "-timeout", "2s",
				"-run", "TestAccEnding", "-golden", goldenFile(t), "./testdata/sample")
			if ok {
				t.Errorf("ok:\n%s", out)
			}
			wantLines(t, out, append(want, "result: FAILED, 1 problem")...)
		})
	}
}

func TestRunBuildFailure(t *testing.T) {
	fakeCores(t)
	ok, out := report(t, t.Context(), "", "-cores", "tofu", "-golden", goldenFile(t), "./testdata/broken")
	if ok {
		t.Errorf("ok:\n%s", out)
	}
	wantLines(t, out, "undefined: undefinedName",
		"tofu: tools/testreport/testdata/broken failed outside of its tests", "result: FAILED, 1 problem")
}

func TestRunPackageThatDoesNotExist(t *testing.T) {
	fakeCores(t)
	ok, out := report(t, t.Context(), "", "-cores", "tofu", "-golden", goldenFile(t), "./testdata/nowhere")
	if ok {
		t.Errorf("ok:\n%s", out)
	}
	wantLines(t, out, "nowhere: directory not found", "result: FAILED")
}

func TestRunInterrupted(t *testing.T) {
	fakeCores(t)
	t.Setenv("SAMPLE_ENDING", "sleep")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	ok, out := report(t, ctx, "", "-cores", "tofu", "-run", "TestAccEnding", "-golden", goldenFile(t), "./testdata/sample")
	if ok {
		t.Errorf("ok:\n%s", out)
	}
	wantLines(t, out, "tofu: go test: interrupted", "result: FAILED")
}

func TestRunUpdatesGolden(t *testing.T) {
	fakeCores(t)
	golden := goldenFile(t, "gone TestAccGone: no KVM")
	if ok, out := report(t, t.Context(), "", "-cores", "tofu", "-update", "-golden", golden, "./testdata/sample"); !ok {
		t.Fatalf("not ok:\n%s", out)
	}
	got, err := readGolden(golden)
	if err != nil || !slices.Equal(got, []string{"gone TestAccGone: no KVM", expected}) {
		t.Errorf("golden file after -update of one package: %q, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"want half or all":      {"-split", "third"},
		`unknown core "pulumi"`: {"-cores", "tofu,pulumi"},
		"want NAME=FILE":        {"-read", "tofu"},
	} {
		if _, err := parse(args, "", &strings.Builder{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", args, err, want)
		}
	}
	if _, err := parse(nil, "tofu,pulumi", &strings.Builder{}); err == nil {
		t.Error("an unknown core in REQUIRE_CORES is accepted")
	}
}

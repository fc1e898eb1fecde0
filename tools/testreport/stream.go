package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

// A Result is how a test or package ended.
type Result string

// The results. Elsewhere and NotForCore are skips that the cases explain by an attribute.
const (
	Passed      Result = "pass"
	Failed      Result = "FAIL"
	Unavailable Result = "unavailable" // this host cannot do it
	Elsewhere   Result = "elsewhere"   // the other core runs it
	NotForCore  Result = "not for core"
	Skipped     Result = "skipped"    // without a reason that we know: a problem
	Unfinished  Result = "UNFINISHED" // the process ended first: a panic, the timeout
)

// A Key names a test within a checkout.
type Key struct {
	Package string // import path
	Test    string // with subtests, "TestAccX/sub"
}

// A Test is what one stream says about one test.
type Test struct {
	Key
	Case    string // what it shows, "" if it is not an acceptance case
	Result  Result
	Reason  string // of Unavailable, Elsewhere, NotForCore
	Elapsed time.Duration
	Output  bytes.Buffer

	skip Result // what a skip of this test means, by its attributes
}

// A Package is what one stream says about one test binary.
type Package struct {
	Path   string
	Result Result // Passed, Failed, Skipped (it has no tests) or Unfinished
	Cached bool   // go test repeated an earlier result
	Output bytes.Buffer
}

// A Run is one stream of `go test -json`: the unit tests, or the acceptance cases on one core.
type Run struct {
	Name     string // "unit" or the name of the core
	Version  string // of the core
	Tests    map[Key]*Test
	Packages map[string]*Package
	Builds   map[string]*bytes.Buffer // output of the compiler, by import path
	Noise    bytes.Buffer             // lines that are not events
	Stderr   bytes.Buffer             // of go test: what kept it from starting
	Err      error                    // how go test itself ended
	Elapsed  time.Duration
}

// NewRun returns an empty run.
func NewRun(name, version string) *Run {
	return &Run{
		Name: name, Version: version,
		Tests: map[Key]*Test{}, Packages: map[string]*Package{}, Builds: map[string]*bytes.Buffer{},
	}
}

// event is a line of `go test -json`, as `go doc test2json` and `go help buildjson` describe it.
type event struct {
	Action     string
	Package    string
	Test       string
	Elapsed    float64 // seconds
	Output     string
	Key, Value string // of the action "attr"
	ImportPath string // of build actions
}

// Read takes in the whole stream and calls finished for every test as it ends. A stream that
// breaks off leaves tests and packages Unfinished; Read fails only if reading does.
func (r *Run) Read(stream io.Reader, finished func(*Test)) error {
	reader := bufio.NewReader(stream)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			r.take(line, finished)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the events of %s: %w", r.Name, err)
		}
	}
}

func (r *Run) take(line []byte, finished func(*Test)) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		r.Noise.Write(line)
		return
	}
	switch {
	case strings.HasPrefix(e.Action, "build-"):
		if r.Builds[e.ImportPath] == nil {
			r.Builds[e.ImportPath] = &bytes.Buffer{}
		}
		r.Builds[e.ImportPath].WriteString(e.Output)
	case e.Test == "":
		r.packageEvent(e)
	default:
		r.testEvent(e, finished)
	}
}

func (r *Run) packageEvent(e event) {
	p := r.Packages[e.Package]
	if p == nil {
		p = &Package{Path: e.Package, Result: Unfinished}
		r.Packages[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.Output.WriteString(e.Output)
		if strings.HasPrefix(e.Output, "ok  \t") && strings.Contains(e.Output, "\t(cached)") {
			p.Cached = true
		}
	case "pass":
		p.Result = Passed
	case "fail":
		p.Result = Failed
	case "skip":
		p.Result = Skipped
	}
}

func (r *Run) testEvent(e event, finished func(*Test)) {
	key := Key{e.Package, e.Test}
	t := r.Tests[key]
	if t == nil {
		t = &Test{Key: key, Result: Unfinished, skip: Skipped}
		r.Tests[key] = t
	}
	switch e.Action {
	case "output":
		t.Output.WriteString(e.Output)
		return
	case "attr":
		t.attribute(e.Key, e.Value)
		return
	case "pass":
		t.Result = Passed
	case "fail":
		t.Result = Failed
	case "skip":
		t.Result = t.skip
	default: // run, pause, cont, start
		return
	}
	t.Elapsed = time.Duration(e.Elapsed * float64(time.Second))
	finished(t)
}

// attribute notes what a case says about itself. A verdict takes effect only if the test then
// ends as skipped; after it the test can still fail, or die.
func (t *Test) attribute(name, value string) {
	switch name {
	case core.AttrCase:
		t.Case = value
	case core.AttrElsewhere:
		t.skip, t.Reason = Elsewhere, value
	case core.AttrNotForCore:
		t.skip, t.Reason = NotForCore, value
	case core.AttrUnavailable:
		t.skip, t.Reason = Unavailable, value
	}
}

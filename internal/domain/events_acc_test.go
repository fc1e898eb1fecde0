package domain_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// events are what libvirt itself says that happens to its machines, in the order
// in which it happens: the proof of what an apply did and took back.
type events struct{ file string }

// watch begins to listen, until the end of the test or row. It returns when it
// hears: a machine that is only defined for that is heard of.
func watch(t testing.TB) *events {
	t.Helper()
	e := &events{file: filepath.Join(t.TempDir(), "events")}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		_, err := lab.Host(t).Exec(ctx, "sh", "-c", fmt.Sprintf("exec stdbuf -oL virsh --quiet --connect '%s' event --all --loop > '%s'", lab.Host(t).URI(), e.file))
		if ctx.Err() == nil {
			t.Errorf("the events of the host are not heard any more: %v", err)
		}
	}()
	const probe = "heard"
	file := definition(t, `<domain type='qemu'><name>`+probe+`</name><memory unit='MiB'>32</memory><os><type arch='x86_64' machine='q35'>hvm</type></os></domain>`)
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		lab.Virsh(t, "define", file)
		lab.Virsh(t, "undefine", probe)
		if e.count(probe, "lifecycle") > 0 {
			return e
		}
		if time.Now().After(until) {
			t.Fatalf("no event is heard, only %q", e.all())
		}
	}
}

// all are the lines of the events.
func (e *events) all() string {
	text, err := os.ReadFile(e.file)
	if err != nil {
		return "" // it has not begun
	}
	return string(text)
}

// of is a pattern for the events of one kind of a machine.
func (e *events) of(name, kind string) string {
	return fmt.Sprintf(`event '%s' for domain '?%s'?:`, regexp.QuoteMeta(kind), regexp.QuoteMeta(name))
}

// count is how often there was an event of one kind.
func (e *events) count(name, kind string) int {
	return len(regexp.MustCompile(e.of(name, kind)).FindAllString(e.all(), -1))
}

// inOrder fails the test unless these kinds of events of a machine followed one
// another, with others between them or not.
func (e *events) inOrder(t testing.TB, name string, kinds ...string) {
	t.Helper()
	patterns := make([]string, len(kinds))
	for i, kind := range kinds {
		patterns[i] = e.of(name, kind)
	}
	if !regexp.MustCompile(`(?s)` + strings.Join(patterns, `.*`)).MatchString(e.all()) {
		t.Errorf("%s: no %s, in this order, in\n%s", name, strings.Join(kinds, ", "), e.all())
	}
}

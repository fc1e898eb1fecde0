package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

// StartProject is NewProject for a configuration that a case writes itself;
// Config makes one.
func StartProject(t testing.TB, c core.Core, config string, env ...string) *Project {
	t.Helper()
	p := NewProject(t, c, t.TempDir(), env...)
	p.Write(config)
	return p
}

// Write replaces the configuration.
func (p *Project) Write(config string) {
	p.t.Helper()
	config = strings.Replace(config, Source(), "driftsafe/libvirt", 1)
	if err := os.WriteFile(filepath.Join(p.dir, "main.tf"), []byte(config), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Refuses runs the core and fails the test unless it fails with a message that
// has these parts in this order.
func (p *Project) Refuses(parts []string, args ...string) {
	p.t.Helper()
	if out := p.Must(1, args...); !Says(parts...).MatchString(out) {
		p.t.Fatalf("%s %s does not say %q:\n%s", p.core.Name, strings.Join(args, " "), parts, out)
	}
}

// Tells runs the core and fails the test unless it succeeds with a message that
// has these parts in this order.
func (p *Project) Tells(parts []string, args ...string) {
	p.t.Helper()
	if out := p.Must(0, args...); !Says(parts...).MatchString(out) {
		p.t.Fatalf("%s %s does not say %q:\n%s", p.core.Name, strings.Join(args, " "), parts, out)
	}
}

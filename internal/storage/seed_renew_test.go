package storage

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A guest that is started while the volume is written may have half a seed by
// fw_cfg, at its only first boot; who had a copy before is left in peace.
func TestGuestsWithACopyThatStartMeanwhile(t *testing.T) {
	ctx := context.Background()
	h, k, _, vol := cloning(t, "copied")
	guest := func(name string) (start, stop func()) {
		d, err := h.DefineDomain(ctx, fmt.Sprintf("<domain type='test'><name>%s</name><memory>1024</memory><os><type>hvm</type></os><sysinfo type='fwcfg'><entry name='opt/x' file='%s'/></sysinfo></domain>", name, vol.Path()), virt.DefineFlags{})
		if err != nil {
			t.Fatal(err)
		}
		do := func(f func() error) func() {
			return func() {
				t.Helper()
				if err := f(); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Cleanup(func() {
			_ = d.Destroy(ctx, false)
			_ = d.Undefine(ctx, virt.UndefineFlags{})
		})
		return do(func() error { return d.Start(ctx, virt.StartFlags{}) }), do(func() error { return d.Destroy(ctx, false) })
	}
	s, err := see(ctx, vol)
	if err != nil {
		t.Fatal(err)
	}
	r := &renewal{k: k, s: s, done: &kind.Done{}}
	runs, _ := guest("runs")
	restarts, stops := guest("restarts")
	starts, _ := guest("starts")
	guest("stays-off")
	runs()
	restarts()
	if r.copied, err = r.copies(ctx); err != nil || len(r.copied) != 2 {
		t.Fatalf("%+v, %v", r.copied, err)
	}
	stops()
	restarts()
	starts()
	for range 2 { // said once
		if err := r.noteStarted(ctx); err != nil {
			t.Fatal(err)
		}
	}
	said := map[string]bool{}
	for _, w := range r.done.Warnings {
		said[w.Summary] = true
	}
	if len(r.done.Warnings) != 2 || !said[`Guest "restarts" was started while volume "golden" was written`] || !said[`Guest "starts" was started while volume "golden" was written`] {
		t.Errorf("%+v", r.done.Warnings)
	}

	// Also what is taken back was written to meanwhile.
	for _, wrote := range []bool{false, true} {
		back := &renewal{k: k, s: s, done: &kind.Done{}, wrote: wrote}
		if err := back.rollBack(ctx, errors.New("broken")); err == nil || len(back.done.Warnings) > 0 != wrote {
			t.Errorf("written to: %v, and it says %+v", wrote, back.done.Warnings)
		}
	}
}

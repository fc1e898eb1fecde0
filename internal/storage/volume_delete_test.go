package storage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// While a domain changes its medium, no XML names the one that it had, and may go
// back to: a deletion waits until that is decided, and then asks the XML again.
func TestDeleteOfWhatAnUpdateMayGoBackTo(t *testing.T) {
	for name, c := range map[string]struct {
		back bool // the domain goes back to it
		stop bool // the user interrupts the wait
		says string
	}{
		"the guest let go of it":     {},
		"the domain goes back to it": {back: true, says: `Refusing to destroy volume "golden": it is in use: It is needed by domain drive (defined), disk sda.`},
		"nobody waits any longer":    {stop: true, says: "a domain whose update is under way may go back to it, so it was not deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			h, k, pool, vol := cloning(t, "drives")
			state := tree.NullValue.With("name", tree.StringValue(vol.Name())).With("pool", tree.StringValue(pool.Name())).With("key", tree.StringValue(vol.Key()))
			held := true
			release := k.Hold([]kind.Medium{{File: vol.Path()}})
			waits, was := 0, beat
			t.Cleanup(func() { beat = was })
			beat = func(ctx context.Context) error {
				if waits++; c.stop {
					cancel()
					return ctx.Err()
				}
				if waits < 3 {
					return nil
				}
				if c.back {
					d, err := h.DefineDomain(ctx, fmt.Sprintf("<domain type='test'><name>drive</name><memory>1024</memory><os><type>hvm</type></os><devices><disk type='file' device='cdrom'><source file='%s'/><target dev='sda' bus='sata'/></disk></devices></domain>", vol.Path()), virt.DefineFlags{})
					if err != nil {
						return err
					}
					t.Cleanup(func() { _ = d.Undefine(context.Background(), virt.UndefineFlags{}) })
				}
				held = false
				release()
				return nil
			}
			remove := virttest.Install(h, virttest.Observe(virttest.Op("delete volume"), func(virt.Call) {
				if held {
					t.Error("it is deleted while an update may go back to it")
				}
			}))
			_, err := k.Delete(ctx, state)
			remove()
			if c.says == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, not %q", err, c.says)
			}
			if left := len(volumesIn(t, pool)); left != 0 != (c.says != "") {
				t.Errorf("%d volumes are left", left)
			}
			if c.stop == (waits == 3) {
				t.Errorf("it waited %d times", waits)
			}
		})
	}
}

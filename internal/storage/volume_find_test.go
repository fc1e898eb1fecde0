package storage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Two clusters have an image web in a pool of theirs that is called vms there, so
// that both images have one key; a pool of the host is called vms, too. Volume
// groups lie below /dev, as do the devices of a pool that is off.
const manyPools = `<node>
<pool type='dir'><name>vms</name><uuid>7e1d5e3e-0000-4000-8000-00000000f001</uuid><target><path>/srv/vms</path></target>%[1]s</pool>
<pool type='dir'><name>ceph-a</name><uuid>7e1d5e3e-0000-4000-8000-00000000f002</uuid><target><path>/ceph/a</path></target>%[2]s%[3]s</pool>
<pool type='dir'><name>ceph-b</name><uuid>7e1d5e3e-0000-4000-8000-00000000f003</uuid><target><path>/ceph/b</path></target>%[2]s</pool>
<pool type='dir'><name>vg0</name><uuid>7e1d5e3e-0000-4000-8000-00000000f004</uuid><target><path>/dev/vg0</path></target>%[4]s</pool>
</node>`

func TestFindVolume(t *testing.T) {
	ctx := context.Background()
	volume := func(name, key, path string) string {
		return fmt.Sprintf("<volume><name>%s</name><key>%s</key><capacity>1048576</capacity><target><path>%s</path></target></volume>", name, key, path)
	}
	driver := filepath.Join(t.TempDir(), "driver.xml")
	text := fmt.Sprintf(manyPools, volume("web", "/srv/vms/web", "/srv/vms/web"), volume("web", "vms/web", "vms/web"), volume("db", "vms/db", "vms/db"), volume("root", "k3yOfTheVolume", "/dev/vg0/root"))
	if err := os.WriteFile(driver, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := virt.NewHost(virt.Options{URI: "test://" + driver})
	t.Cleanup(func() { _ = h.Close() })
	for name, target := range map[string]string{"devices": "/dev", "off": "/srv/off"} {
		if _, err := h.DefinePool(ctx, fmt.Sprintf("<pool type='dir'><name>%s</name><target><path>%s</path></target></pool>", name, target)); err != nil {
			t.Fatal(err)
		}
	}
	k := NewVolume(func() *virt.Host { return h })
	for id, want := range map[string]string{
		"vms/web":        "vms/web",      // not ceph-a/web, whose key it is
		"ceph-a/web":     "ceph-a/web",   // of those with one key, each
		"ceph-b/web":     "ceph-b/web",   // by its pool
		"vms/db":         "ceph-a/db",    // a key that no volume has as its name
		"/srv/vms/web":   "vms/web",      // a key that is a path
		"k3yOfTheVolume": "vg0/root",     // a key that is none
		"/dev/vg0/root":  "vg0/root",     // a path that is no key, below the target of a pool that is off
		"/dev/vg0/none":  "! not active", // perhaps in that one
		"off/web":        "! not active",
		"vms/none":       "! There is no volume \"vms/none\"",
		"nowhere/web":    "! There is no volume \"nowhere/web\"",
		"vms":            "! There is no volume \"vms\"",
	} {
		state, err := k.Find(ctx, id)
		if text, fails := strings.CutPrefix(want, "! "); fails {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", id, err, text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", id, err)
		} else if got := state.Attr("pool").Str() + "/" + state.Attr("name").Str(); got != want {
			t.Errorf("%s finds %s, want %s", id, got, want)
		}
	}
}

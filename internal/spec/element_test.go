package spec

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestElement(t *testing.T) {
	const xml = `<domain type="qemu" xmlns:q="http://libvirt.org/schemas/domain/qemu/1.0"><name>x</name><devices>
  <disk type="file"><target dev="vda"/></disk><interface type="user"/>
  <disk type="file" novel="1"><target dev="vdb"/><q:more/><surprise/></disk>
</devices></domain>`
	got, err := Domain().Element(xml, tree.ParsePath("devices.disks[1]"))
	want := `<disk type="file" novel="1" xmlns:q="http://libvirt.org/schemas/domain/qemu/1.0"><target dev="vdb"/><q:more/><surprise/></disk>`
	if err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	for _, missing := range []string{"devices.disks[2]", "devices.rngs[0]", "devices.nonsense[0]"} {
		if got, err := Domain().Element(xml, tree.ParsePath(missing)); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: got %q, %v", missing, got, err)
		}
	}
	if _, err := Domain().Element("<", tree.ParsePath("devices.disks[0]")); err == nil {
		t.Error("no error for broken XML")
	}
}

package storage

import (
	"context"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Which pools other hosts use, too, is told by their type, and of a file system by
// its kind.
func TestSharedPool(t *testing.T) {
	h := testHost(t)
	k := &Volume{host: func() *virt.Host { return h }}
	for name, want := range map[string]string{"dir": "", "logical": "", "netfs": "netfs", "rbd": "rbd", "gluster": "gluster", "iscsi": "iscsi"} {
		testPool(t, h, "shared-"+name, name, false)
		if got, err := k.SharedPool(context.Background(), "shared-"+name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for format, want := range map[string]string{"ext4": "", "gfs2": "gfs2", "ocfs2": "ocfs2"} {
		p, err := h.DefinePool(context.Background(), "<pool type='fs'><name>fs-"+format+"</name><source><device path='/dev/"+format+"'/><format type='"+format+"'/></source><target><path>/dev/fs</path></target></pool>")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Undefine(context.Background()) })
		if got, err := k.SharedPool(context.Background(), "fs-"+format); err != nil || got != want {
			t.Errorf("%s: %q, %v", format, got, err)
		}
	}
	if got, err := k.SharedPool(context.Background(), "no-such"); err == nil {
		t.Errorf("a pool that is not there is %q", got)
	}
}

package domain

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func TestExplain(t *testing.T) {
	definition, err := spec.Domain().Decode(`<domain type='qemu'><name>port-new</name><title>7777</title><devices>
<disk type='file' device='disk'><source file='/images/a.raw'/><target dev='vda' bus='virtio'/></disk>
<disk type='file' device='disk'><source file='/images/a.raw.old'/><target dev='vdb' bus='virtio'/></disk>
<interface type='network'><mac address='52:54:00:00:00:01'/><source network='default'/><filterref filter='strict'/></interface>
<serial type='tcp'><source mode='bind' host='127.0.0.1' service='7777'/><protocol type='raw'/><target port='1'/></serial>
<graphics type='vnc' port='5999' listen='127.0.0.1' passwd='7777'/></devices></domain>`)
	if err != nil {
		t.Fatal(err)
	}
	k, all := New(nil), []tree.Path{tree.Root}
	disk, nic := tree.ParsePath("devices.disks[1]"), tree.ParsePath("devices.interfaces[0].filter_ref.filter")
	lost := &virt.LostError{Err: &virt.Error{Message: "reset by peer"}}
	for message, c := range map[string]struct {
		err         error
		about, sure []tree.Path
		want        string
	}{
		"Failed to reserve port 5999": {about: all,
			want: "devices.graphics[0].vnc.port is 5999. The way out: something on the host has that port already; end what listens there, or choose another port, and apply again"},
		"-chardev socket,host=127.0.0.1,port=7777,server=on: Failed to find an available port: Address already in use": {about: []tree.Path{tree.ParsePath("devices.serials[0]")},
			want: `devices.serials[1].source.tcp.host is "127.0.0.1". devices.serials[1].source.tcp.service is "7777". The way out: something on the host has that port`},
		"Unable to write '/images/a.raw': No space left on device": {about: all,
			want: `devices.disks[vda].source.file.file is "/images/a.raw". The way out: make room`},
		`Failed to get "write" lock`: {about: []tree.Path{disk}, sure: []tree.Path{disk.Attr("source")},
			want: `devices.disks[vdb].source.file.file is "/images/a.raw.old". The way out: another guest or program has the file open`},
		"Cannot instantiate filter due to unresolvable variables": {about: []tree.Path{nic}, sure: []tree.Path{nic},
			want: `devices.interfaces[52:54:00:00:00:01].filter_ref.filter is "strict". The way out: give the filter what it asks for (filter_ref.parameters;`},
		"port-new is cursed": {about: all, want: "port-new is cursed. The way out: put right what is named there"},
		"the guest has gone": {err: &virt.Error{Code: virt.ErrOperationInvalid, Message: "the guest has gone"}, about: all, want: "the guest has gone"},
		"the daemon has":     {err: lost, about: all, want: lost.Error()},
		"not of libvirt's":   {err: errors.New("not of libvirt's"), about: all, want: "not of libvirt's"},
	} {
		refusal := c.err
		if refusal == nil {
			refusal = &virt.Error{Code: virt.ErrInternal, Message: message}
		}
		got := k.explain(fmt.Errorf("start: %w", refusal), definition, c.about, c.sure)
		if !strings.Contains(got.Error(), c.want) || !errors.Is(got, refusal) || strings.Contains(c.want, "way out") != strings.Contains(got.Error(), "way out") {
			t.Errorf("%s: %s\nwant %s", message, got, c.want)
		}
		if strings.Count(got.Error(), " is ") > strings.Count(message+c.want, " is ") {
			t.Errorf("%s: it tells too much: %s", message, got)
		}
	}
}

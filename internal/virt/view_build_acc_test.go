package virt_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func TestAccView_builds(t *testing.T) {
	acctest.Case(t, "asking whether libvirt can build a guest finds what a start would refuse, changes nothing on the host, runs no scripts, and does not crash the daemon over devices of the host")
	ctx := context.Background()
	private := own(t)
	h := open(t, virt.Options{URI: private.URI()})
	ran := filepath.Join(private.Dir(), "ran")
	script := filepath.Join(private.Dir(), "ifup")
	try(t, os.WriteFile(script, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755))
	inside := func(command string) string { return got(private.Exec(ctx, "sh", "-c", command))(t) }
	const look = "ip -o link | cut -d: -f1,2; find /var/lib/libvirt /run/libvirt /etc/libvirt | sort; pgrep qemu-system; cat " // and what the daemon's pid is
	pid := filepath.Join(private.Dir(), "libvirtd.pid")
	got(private.Virsh(ctx, "pool-define-as", "stopped", "dir", "--target", private.Dir()))(t)
	before := inside(look + pid)

	const nic = `<devices><interface type="`
	const address = `<source><address type="pci" domain="0" bus="1" slot="0" function="0"/></source>`
	for what, c := range map[string]struct {
		document string
		code     int
	}{
		"a plain guest":                       {bareXML("b", ""), 0},
		"another firmware":                    {strings.Replace(bareXML("b", "<features><acpi/></features>"), "<os>", `<os firmware="efi">`, 1), 0},
		"a firmware that there is not":        {strings.Replace(bareXML("b", ""), "<os>", `<os firmware="bios">`, 1), virt.ErrOperationFailed},
		"a CPU that nobody knows":             {bareXML("b", `<cpu mode="custom"><model>bogus</model></cpu>`), virt.ErrInternal},
		"features that the host lacks":        {bareXML("b", `<cpu mode="custom" check="partial"><model>kvm64</model><feature policy="require" name="avx512f"/></cpu>`), virt.ErrCPUIncompatible},
		"what QEMU cannot":                    {bareXML("b", `<cpu mode="custom"><model>kvm64</model><feature policy="require" name="bogus"/></cpu>`), virt.ErrConfigUnsupported},
		"an interface with a script":          {bareXML("b", nic+`ethernet"><script path="`+script+`"/><target dev="tapb"/></interface></devices>`), 0},
		"an interface in a network":           {bareXML("b", nic+`network"><source network="default"/></interface></devices>`), 0},
		"an interface of the host":            {bareXML("b", nic+`hostdev">`+address+`</interface></devices>`), 0},
		"a USB interface of the host":         {bareXML("b", nic+`hostdev"><source><address type="usb" bus="1" device="1"/></source></interface></devices>`), 0},
		"a device of the host":                {bareXML("b", `<devices><hostdev mode="subsystem" type="pci">`+address+`</hostdev></devices>`), 0},
		"a volume of a pool that is stopped":  {bareXML("b", `<devices><disk type="volume" device="disk"><driver name="qemu" type="qcow2"/><source pool="stopped" volume="v"/><target dev="vda" bus="virtio"/></disk></devices>`), 0},
		"a volume of no pool, passed through": {bareXML("b", `<devices><controller type="scsi" model="virtio-scsi"/><disk type="volume" device="lun"><driver name="qemu" type="raw"/><source pool="nobody's" volume="v"/><target dev="sda" bus="scsi"/></disk></devices>`), 0},
		"a volume on a bus that there is not": {bareXML("b", `<devices><disk type="volume" device="disk"><source pool="stopped" volume="v"/><target dev="xvda" bus="xen"/></disk></devices>`), virt.ErrInternal},
		"displays and channels": {bareXML("b", `<devices><graphics type="vnc" autoport="yes"/><channel type="unix"><target type="virtio" name="a"/></channel>`+
			`<serial type="file"><source path="`+filepath.Join(private.Dir(), "serial.log")+`"/></serial></devices>`), 0},
	} {
		err := h.View().Builds(ctx, c.document)
		if c.code == 0 && err != nil || c.code != 0 && !virt.HasCode(err, c.code) {
			t.Errorf("%s: %v, want code %d", what, err, c.code)
		}
	}
	if after := inside(look + pid); after != before {
		t.Errorf("the host was\n%s\nand is\n%s", before, after)
	}
	for _, file := range []string{ran, filepath.Join(private.Dir(), "serial.log")} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s was made", file)
		}
	}
}

func TestAccView_choices(t *testing.T) {
	acctest.Case(t, "what a host has instead of what is missing: machine types, volumes, bridges")
	ctx := context.Background()
	v := shared(t).View()
	machines := got(v.Machines(ctx, virt.Offer{Arch: "x86_64"}))(t)
	if !strings.Contains(strings.Join(machines, " "), "pc-q35-") {
		t.Errorf("machine types: %q", machines)
	}
	if links := got(v.Links(ctx))(t); links["lo"] == "" {
		t.Errorf("interfaces: %v", links)
	}
	has := got(v.Capabilities(ctx, virt.Offer{Machine: "q35", Arch: "x86_64", VirtType: "qemu"}))(t)
	if has.MaxVCPUs < 255 || !strings.HasPrefix(has.Machine, "pc-q35-") || !strings.Contains(strings.Join(has.Values["cpu.model"], " "), "qemu64") || len(has.Values["disk.bus"]) == 0 {
		t.Errorf("capabilities: %+v", has)
	}
	if _, err := v.Volumes(ctx, "nobody's"); err == nil {
		t.Error("the volumes of a pool that there is not")
	}
	got(v.Volumes(ctx, "default"))(t)
}

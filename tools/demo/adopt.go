package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// handMade is a machine that the provider has never seen.
const handMade = `<domain type="qemu">
  <name>handmade</name>
  <title>Made by hand, years ago</title>
  <memory unit="MiB">128</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch="x86_64" machine="q35">hvm</type>
    <kernel>%s</kernel>
    <initrd>%s</initrd>
    <cmdline>%s</cmdline>
  </os>
  <features><acpi/></features>
  <devices>
    <disk type="file" device="disk">
      <driver name="qemu" type="qcow2"/>
      <source file="%s"/>
      <target dev="vda" bus="virtio"/>
    </disk>
    <interface type="network">
      <mac address="52:54:00:de:30:01"/>
      <source network="default"/>
      <model type="virtio"/>
    </interface>
    <serial type="file">
      <source path="%s" append="on"/>
    </serial>
  </devices>
</domain>
`

// adopt takes over a machine that runs, and shows that nothing of it was touched.
func (d *demo) adopt(ctx context.Context) error {
	const name = "handmade"
	fmt.Println("   A machine that no configuration knows runs on the host, with a disk in libvirt's pool.")
	if err := d.makeByHand(ctx, name); err != nil {
		return err
	}
	before, err := d.observe(ctx, name)
	if err != nil {
		return err
	}
	definition, err := d.host.Virsh(ctx, "dumpxml", "--inactive", name)
	if err != nil {
		return err
	}
	program := filepath.Join(d.dir, "adopt")
	err = d.step("build adopt", func() (string, error) {
		return "", d.command(ctx, "", "go", "build", "-tags", "libvirt_dlopen", "-buildvcs=false", "-o", program, "./tools/adopt")
	})
	if err != nil {
		return err
	}
	err = d.step("adopt -uses domain/"+name, func() (string, error) {
		cmd := exec.CommandContext(ctx, program, "-uri", d.host.URI(), "-core", d.core, "-out", filepath.Join(d.dir, "adopted"), "-uses", "domain/"+name)
		cmd.Env = d.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w\n%s", err, out)
		}
		return lastLine(string(out)), nil
	})
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(d.dir, "adopted", "domains.tf"))
	if err != nil {
		return err
	}
	quote(strings.Split(strings.TrimSpace(string(text)), "\n"))
	err = d.step("apply it", func() (string, error) {
		out, err := d.runIn(ctx, "adopted", nil, "apply", "-auto-approve")
		if err == nil && !strings.Contains(out, "4 imported, 0 added, 0 changed, 0 destroyed") {
			err = fmt.Errorf("it does not import four objects and nothing else:\n%s", out)
		}
		return "4 imported, 0 added, 0 changed, 0 destroyed", err
	})
	if err != nil {
		return err
	}
	after, err := d.host.Virsh(ctx, "dumpxml", "--inactive", name)
	if err != nil {
		return err
	}
	if after != definition {
		return fmt.Errorf("the definition of %s was %s\nand is now %s", name, definition, after)
	}
	d.proved("a machine made by hand is taken over as it is", "its definition is the same to the byte")
	return d.untouched(ctx, name, before, "adopted")
}

// makeByHand defines and starts the machine as a person does.
func (d *demo) makeByHand(ctx context.Context, name string) error {
	return d.step("virsh vol-create-as, define, start "+name, func() (string, error) {
		disk := filepath.Join(d.host.PoolDir(), name+".qcow2")
		file := filepath.Join(d.dir, name+".xml")
		g := d.host.Guest()
		if err := os.WriteFile(file, fmt.Appendf(nil, handMade, g.Kernel, g.Initrd, g.Cmdline, disk, d.host.ConsoleLog(name)), 0o600); err != nil {
			return "", err
		}
		for _, args := range [][]string{
			{"vol-create-as", "default", name + ".qcow2", "8M", "--format", "qcow2"}, {"define", file}, {"start", name},
		} {
			if _, err := d.host.Virsh(ctx, args...); err != nil {
				return "", err
			}
		}
		return "", nil
	})
}

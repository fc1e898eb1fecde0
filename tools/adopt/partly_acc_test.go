package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Parts of TestAccAdopt_machines, on the host that it has laid out.

// half leaves out every second attribute of a machine, and of what stays every
// second element of the lists of devices: other ones for odd and even. What a
// machine must say stays.
func half(machine tree.Value, odd int) tree.Value {
	out := map[string]tree.Value{}
	for i, name := range machine.Names() {
		switch v := machine.Attr(name); {
		case name == "name" || name == "type":
			out[name] = v
		case name == "devices":
			out[name] = halfOfDevices(v, odd)
		case strings.HasSuffix(name, "_unit"): // it follows its number
		case i%2 == odd:
			out[name] = v
			if unit := machine.Attr(name + "_unit"); !unit.IsNull() {
				out[name+"_unit"] = unit
			}
		}
	}
	return tree.ObjectValue(out)
}

func halfOfDevices(devices tree.Value, odd int) tree.Value {
	out := map[string]tree.Value{}
	for i, name := range devices.Names() {
		v := devices.Attr(name)
		if v.Kind() != tree.List {
			if i%2 == odd {
				out[name] = v
			}
			continue
		}
		var elems []tree.Value
		for j, e := range v.Elems() {
			if (i+j)%2 == odd {
				elems = append(elems, e)
			}
		}
		if elems != nil {
			out[name] = tree.ListValue(elems)
		}
	}
	return tree.ObjectValue(out)
}

// writeHalves writes a configuration of all machines that says half of what adopt
// would write, and returns its directory and how much was left out.
func writeHalves(t *testing.T) (dir string, machines int) {
	t.Helper()
	r := open(lab.Host(t).URI())
	defer func() { _ = r.close() }()
	objects, _, err := r.choose(context.Background(), options{chosen: []string{"domain/*"}})
	if err != nil {
		t.Fatal(err)
	}
	whole, kept := 0, 0
	count := func(n *int) func(tree.Path, tree.Value) bool {
		return func(tree.Path, tree.Value) bool {
			*n++
			return true
		}
	}
	for i, o := range objects {
		o.essence.Walk(count(&whole))
		o.essence = half(o.essence, i%2)
		o.essence.Walk(count(&kept))
	}
	if kept*3 > whole*2 || kept*4 < whole {
		t.Fatalf("%d of %d values are kept", kept, whole)
	}
	files, err := compose(objects, r.URI(), r.Display()).files()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "half")
	if err := writeNew(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir, len(objects)
}

// playHalves adopts all machines with a configuration that says half of them.
func playHalves(t *testing.T, c core.Core, before picture) {
	dir, machines := writeHalves(t)
	p := lab.NewProject(t, c, dir)
	if out := p.Must(0, "apply", "-auto-approve"); !strings.Contains(out, fmt.Sprintf("%d imported, 0 added, 0 changed, 0 destroyed", machines)) {
		t.Errorf("the apply does more than import:\n%s", out)
	}
	before.unchanged(t, "half of a configuration")
	p.Must(0, "plan", "-detailed-exitcode")
}

// playUses chooses one machine, and what it uses comes with it: no more, no less.
func playUses(t *testing.T, c core.Core, before picture) {
	dir := filepath.Join(t.TempDir(), "infra")
	said, code := runAsCommand(t, "-uri", lab.Host(t).URI(), "-out", dir, "-core", c.Path, "-uses", "domain/volumes-by-name", "domain/router-eight-nics")
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	var got []string
	for _, line := range strings.Split(contents(t, filepath.Join(dir, "imports.tf")), "\n") {
		if _, address, is := strings.Cut(line, "to = "); is {
			got = append(got, address)
		}
	}
	want := []string{
		"libvirt_network.adopt_lan", "libvirt_network.default", "libvirt_pool.default",
		"libvirt_volume.adopt_base", "libvirt_volume.router_eight_nics", "libvirt_volume.volumes_by_name", "libvirt_volume.volumes_by_name_overlay",
		"libvirt_domain.router_eight_nics", "libvirt_domain.volumes_by_name",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("it adopts %q, want %q", got, want)
	}
	if want := fmt.Sprintf("%d to import, 0 to add, 0 to change, 0 to destroy", len(want)); !strings.Contains(said, want) {
		t.Errorf("it does not say %q:\n%s", want, said)
	}
	for file, want := range map[string]string{
		"domains.tf": "volume = libvirt_volume.volumes_by_name_overlay.name",
		"volumes.tf": "path = libvirt_volume.adopt_base.path",
	} {
		if text := strings.Join(strings.Fields(contents(t, filepath.Join(dir, file))), " "); !strings.Contains(text, want) {
			t.Errorf("%s does not have %q:\n%s", file, want, text)
		}
	}
	before.unchanged(t, "adopting what a machine uses")
}

// playDifferent has somebody change the host after it was read, and before the
// proof: that is told, and is an end of its own. So is a plan that cannot be made.
func playDifferent(t *testing.T, c core.Core) {
	script := filepath.Join(t.TempDir(), "core")
	meanwhile := func(command string) {
		text := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = plan ]; then\n%s\nfi\nexec '%s' \"$@\"\n", command, c.Path)
		if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	adopt := func() (said string, code int) {
		return runAsCommand(t, "-uri", lab.Host(t).URI(), "-out", filepath.Join(t.TempDir(), "infra"), "-core", script, "domain/virt-manager-desktop", "domain/pinned")
	}
	meanwhile(fmt.Sprintf("virsh -c '%s' desc virt-manager-desktop --config --title 'Desktop of somebody' >/dev/null", lab.Host(t).URI()))
	said, code := adopt()
	if code != exitDiffers {
		t.Errorf("exit code %d, want %d:\n%s", code, exitDiffers, said)
	}
	for _, want := range []string{
		"not proved: the plan of", "libvirt_domain.virt_manager_desktop: update",
		`title: "Desktop of somebody" on the host, "Desktop of the lab" in the plan`, "Write what the host has into the configuration",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "proved with") || strings.Contains(said, "libvirt_domain.pinned") {
		t.Errorf("it says that it is proved, or speaks of the other machine:\n%s", said)
	}
	lab.Virsh(t, "desc", "virt-manager-desktop", "--config", "--title", "Desktop of the lab")

	meanwhile("echo 'no plan today' >&2; exit 1")
	if said, code := adopt(); code != exitDiffers || !strings.Contains(said, "could not make a plan:\nno plan today") {
		t.Errorf("exit code %d without a plan:\n%s", code, said)
	}
	if said, code := runAsCommand(t, "-uri", lab.Host(t).URI(), "-out", t.TempDir(), "-core", c.Path, "domain/nobody"); code != exitError || !strings.Contains(said, `has nothing that "domain/nobody" chooses`) {
		t.Errorf("exit code %d for a machine that is not there:\n%s", code, said)
	}
}

// asCommand has the test's binary be adopt itself.
const asCommand = "ADOPT_AS_COMMAND"

// runAsCommand runs adopt as a person does, and returns what it printed and its
// exit code.
func runAsCommand(t *testing.T, args ...string) (said string, code int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

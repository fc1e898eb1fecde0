package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// TestAccAdopt_machines adopts a host with machines of many shapes, and looks
// after each step whether anything was touched.
func TestAccAdopt_machines(t *testing.T) {
	c := acctest.Case(t, "hand-made machines of 28 shapes are adopted, a volume whose file was removed is left out: the plan imports and does nothing else, the apply touches nothing, also if the configuration says little, or is generated as the query command does it; a proof that fails is told")
	layOut(t)
	guest := lab.Observe(t, "direct-kernel")
	before := takePicture(t)

	bare := lab.StartProject(t, c, "")
	for _, e := range bare.Env() {
		if name, value, _ := strings.Cut(e, "="); name == "TF_CLI_CONFIG_FILE" {
			t.Setenv(name, value)
		}
	}
	dir := filepath.Join(t.TempDir(), "infra")
	var said bytes.Buffer
	if err := run(context.Background(), options{uri: lab.Host(t).URI(), out: dir, all: true, core: c.Path, prove: true}, &said); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	for _, want := range []string{"proved with", "0 to add, 0 to change, 0 to destroy", "note: domain/transient has no definition",
		"note: volume/default/adopt-gone.qcow2 is left out: its pool lists it, but it is not there",
		"note: domain/qemu-arguments is written with the texts of qemu_commandline.args[].value, qemu_commandline.envs[].value as they are"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, said.String())
		}
	}
	if domains := contents(t, filepath.Join(dir, "domains.tf")); strings.Contains(domains, "Trommel7") || strings.Count(domains, "\nresource ") != len(shapes)-1 {
		t.Errorf("domains.tf holds a secret, or not %d machines:\n%s", len(shapes), domains)
	}
	before.unchanged(t, "adopting")

	p := lab.NewProject(t, c, dir)
	if out := p.Must(0, "apply", "-auto-approve"); !strings.Contains(out, "imported, 0 added, 0 changed, 0 destroyed") {
		t.Errorf("the apply does more than import:\n%s", out)
	}
	before.unchanged(t, "the apply")
	p.Must(0, "plan", "-detailed-exitcode")
	before.unchanged(t, "the next plan")

	t.Run("sparse", func(t *testing.T) {
		s := lab.StartProject(t, c, lab.Config(t, sparse))
		if out := s.Must(0, "apply", "-auto-approve"); !strings.Contains(out, "4 imported, 0 added, 0 changed, 0 destroyed") {
			t.Errorf("the apply does more than import:\n%s", out)
		}
		s.Must(0, "plan", "-detailed-exitcode")
		before.unchanged(t, "a sparse configuration")
	})
	t.Run("half", func(t *testing.T) { playHalves(t, c, before) })
	t.Run("query", func(t *testing.T) { playQuery(t, before) })
	t.Run("uses", func(t *testing.T) { playUses(t, c, before) })
	guest.Untouched(t, "direct-kernel")
	t.Run("different", func(t *testing.T) { playDifferent(t, c) })
	t.Run("again", playAgain)
}

// sparse is what a person writes who wants to manage little, with values spelt
// in other ways than libvirt does.
const sparse = `
import {
  to = libvirt_domain.desktop
  id = "virt-manager-desktop"
}
resource "libvirt_domain" "desktop" {
  name = "virt-manager-desktop"
  type = "qemu"
}

import {
  to = libvirt_domain.router
  id = "router-eight-nics"
}
resource "libvirt_domain" "router" {
  name      = "router-eight-nics"
  type      = "qemu"
  memory    = 196608
  autostart = true
  os        = { type = "hvm", type_machine = "q35" }
  devices = {
    interfaces = [
      { mac = { address = "52:54:00:AD:07:07" }, source = { network = { network = "adopt-lan" } } },
      { mac = { address = "52:54:00:ad:07:02" }, model = { type = "virtio" } },
    ]
  }
}

import {
  to = libvirt_domain.proxmox
  id = "proxmox-like"
}
resource "libvirt_domain" "proxmox" {
  name        = "proxmox-like"
  type        = "qemu"
  vcpu        = 4
  memory      = 524288
  memory_unit = "KiB"
  os          = { type = "hvm", type_machine = "pc" }
  devices = {
    disks = [{ target = { dev = "vdb", bus = "virtio" }, driver = { type = "qcow2" } }]
  }
}

import {
  to = libvirt_domain.windows
  id = "windows-11"
}
resource "libvirt_domain" "windows" {
  name = "windows-11"
  type = "qemu"
  devices = {
    tpms = [{ model = "tpm-crb" }]
  }
}
`

// playAgain shows that what is written of a machine is the whole of it: another
// machine that is made of it differs in nothing that would be written.
func playAgain(t *testing.T) {
	r := open(lab.Host(t).URI())
	defer func() { _ = r.close() }()
	objects, _, err := r.choose(context.Background(), options{chosen: []string{"domain/*"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		made := again(t, r, o)
		if made == nil {
			continue
		}
		// libvirt may say more of what is made today than it said of an old machine.
		want, got := o.essence, made.essence.With("name", text(o.name)).With("autostart", o.essence.Attr("autostart"))
		if !tree.Equal(want, got) {
			t.Errorf("%s: what is written of it makes another machine:\n%s", o.name, apart(want, got))
		}
	}
}

// apart lists the leaves in which two trees differ.
func apart(a, b tree.Value) string {
	var out strings.Builder
	leaves := func(v tree.Value) map[string]string {
		all := map[string]string{}
		v.Walk(func(p tree.Path, n tree.Value) bool {
			if n.Kind() != tree.Object && n.Kind() != tree.List || n.Len() == 0 {
				all[p.String()] = n.String()
			}
			return true
		})
		return all
	}
	x, y := leaves(a), leaves(b)
	for p, v := range x {
		if y[p] != v {
			fmt.Fprintf(&out, "  %s: %s, then %q\n", p, v, y[p])
		}
	}
	for p, v := range y {
		if _, both := x[p]; !both {
			fmt.Fprintf(&out, "  %s: not there, then %s\n", p, v)
		}
	}
	return out.String()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// values are those of every machine, whoever keeps it.
const values = `  title       = "Machine of a benchmark"
  memory      = 128
  memory_unit = "MiB"
  vcpu        = 1
  autostart   = false
  os = {
    type         = "hvm"
    type_arch    = "x86_64"
    type_machine = "q35"
  }
  devices = {
    disks = [{
      driver = { name = "qemu", type = "qcow2" }
      source = { file = { file = "/nonexistent/bench.qcow2" } }
      target = { dev = "vda", bus = "virtio" }
    }]
    interfaces = [{
      model  = { type = "virtio" }
      source = { network = { network = "default" } }
    }]
    serials = [{ source = { pty = {} }, target = { port = 0 } }]
  }
`

func machineName(core string, n, i int) string { return fmt.Sprintf("bench-%s-%d-%d", core, n, i) }

func machineNames(core string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = machineName(core, n, i)
	}
	return names
}

// layOut writes the configuration of n machines for one subject.
func (b *bench) layOut(dir, subject, core string, n int) error {
	name := fmt.Sprintf("%q", machineName(core, n, 0))
	name = name[:len(name)-2] + `${count.index}"`
	text := fmt.Sprintf(`terraform {
  required_providers {
    libvirt = { source = "driftsafe/libvirt" }
  }
}
provider "libvirt" {
  uri = %q
}
resource "libvirt_domain" "machine" {
  count = %d
  name  = %s
  type  = "qemu"
%s}
`, b.host.URI(), n, name, values)
	if subject == without {
		text = fmt.Sprintf("resource \"terraform_data\" \"machine\" {\n  count = %d\n  input = {\n  name = %s\n  type = \"qemu\"\n%s}\n}\n", n, name, values)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o644)
}

// bareCalls measures the calls to libvirt that a refresh of the machines makes,
// ten at once as a core does, with nothing around them.
func bareCalls(ctx context.Context, uri string, names []string, runs int) (out []time.Duration, err error) {
	h := virt.NewHost(virt.Options{URI: uri})
	defer func() { err = errors.Join(err, h.Close()) }()
	if err := h.Connect(ctx); err != nil {
		return nil, err
	}
	for range runs {
		begin := time.Now()
		var wait sync.WaitGroup
		work, errs := make(chan string), make(chan error, 10)
		for range 10 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for name := range work {
					if err := readOnce(ctx, h, name); err != nil {
						select {
						case errs <- err:
						default:
						}
					}
				}
			}()
		}
		for _, name := range names {
			work <- name
		}
		close(work)
		wait.Wait()
		select {
		case err := <-errs:
			return nil, err
		default:
		}
		out = append(out, time.Since(begin))
	}
	return out, nil
}

// readOnce makes the calls of internal/domain for a machine that is off.
func readOnce(ctx context.Context, h *virt.Host, name string) error {
	d, err := h.LookupDomainByName(ctx, name)
	if err != nil {
		return err
	}
	if _, err := d.XML(ctx, virt.XMLInactive|virt.XMLSecure); err != nil {
		return err
	}
	if _, _, err := d.State(ctx); err != nil {
		return err
	}
	if _, err := d.IsPersistent(ctx); err != nil {
		return err
	}
	if _, err := d.Autostart(ctx); err != nil {
		return err
	}
	_, err = d.HasManagedSave(ctx)
	return err
}

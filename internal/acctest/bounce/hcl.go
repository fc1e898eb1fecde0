package bounce

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// memory is what the tiny guest needs to boot, with something to give away.
const memory = 128 // MiB

// tiny is what every machine of the matrix has.
func tiny(h *host.Host, name string, p Policy) Fields {
	image := h.Guest()
	return Fields{
		"name": quote(name), "type": `"qemu"`, "running": "true",
		"memory": fmt.Sprint(memory), "memory_unit": `"MiB"`, "vcpu": "1",
		"os.type": `"hvm"`, "os.type_arch": `"x86_64"`, "os.type_machine": `"q35"`,
		"os.kernel": quote(image.Kernel), "os.initrd": quote(image.Initrd), "os.cmdline": quote(image.Cmdline),
		"devices.serials": fmt.Sprintf("[{ source = { file = { path = %s, append = \"on\" } }, target = { port = 0 } }]", quote(h.ConsoleLog(name))),
		"update.allow":    quote(string(p)),
	}
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// With is the fields and one more.
func (f Fields) With(path, expression string) Fields { return f.over(Fields{path: expression}) }

// over lays fields over others and returns both.
func (f Fields) over(more Fields) Fields {
	out := maps.Clone(f)
	if out == nil {
		out = Fields{}
	}
	for name, value := range more {
		if value == Gone {
			delete(out, name)
		} else {
			out[name] = value
		}
	}
	return out
}

// resource writes the block of a domain.
func (f Fields) resource(label string) string {
	objects := map[string]Fields{}
	var b strings.Builder
	fmt.Fprintf(&b, "resource \"libvirt_domain\" %q {\n", label)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if object, attr, nested := strings.Cut(name, "."); nested {
			if objects[object] == nil {
				objects[object] = Fields{}
			}
			objects[object][attr] = f[name]
			continue
		}
		fmt.Fprintf(&b, "  %s = %s\n", name, f[name])
	}
	for _, object := range slices.Sorted(maps.Keys(objects)) {
		fmt.Fprintf(&b, "  %s = {\n", object)
		for _, attr := range slices.Sorted(maps.Keys(objects[object])) {
			fmt.Fprintf(&b, "    %s = %s\n", attr, objects[object][attr])
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// configuration is a whole one, with the provider on the host.
func configuration(uri string, resources ...string) string {
	return fmt.Sprintf(`terraform {
  required_providers {
    libvirt = { source = "driftsafe/libvirt" }
  }
}

provider "libvirt" {
  uri = %q
}

%s`, uri, strings.Join(resources, "\n"))
}

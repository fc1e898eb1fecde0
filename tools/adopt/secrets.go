package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// What libvirt knows to be secret gets a variable and is never written. Some places
// take any text, and people put secrets there, too: nothing tells these from
// others, and a machine would not be the same without them. They are written, in
// files that only this user can read, and a note names the places.

// hide puts variables into the places of secrets.
func (p *project) hide() {
	taken := names{"uri": true}
	for _, o := range p.objects {
		root := roots[o.kind]()
		o.essence.Walk(func(path tree.Path, v tree.Value) bool {
			if f := root.Fields[path.Pattern()]; f == nil || !f.Flags.Has(spec.Secret) || v.Kind() != tree.String {
				return true
			}
			name := taken.take(o.label + "_" + path[len(path)-1].Attr)
			p.variables = append(p.variables, variable{name, "Of " + o.address() + ": " + path.String(), v.Str()})
			p.links[o][path.String()] = "var." + name
			return true
		})
	}
}

// openTexts are where a text of any meaning may stand. Each is the end of a
// pattern, whole names.
var openTexts = []string{
	// What an emulator, a boot loader or an init gets: -object secret,data=…,
	// -fw_cfg …,string=…, systemd.set_credential=….
	"qemu_commandline.args[].value", "qemu_commandline.envs[].value",
	"bhyve_commandline.args[].value", "bhyve_commandline.envs[].value",
	"xen_commandline.args[].value", "bootloader_args",
	"os.cmdline", "os.init_args[]", "os.init_env[].value",
	// What a guest reads at its first boot: an Ignition configuration, credentials.
	"sys_info[].fw_cfg.entry[].value", "sys_info[].smbios.oem_strings.entry[]",
	// What the host passes on to a server of files or images: password=…, ?token=….
	"source.network.query", "fs_commandline.options[].name", "rbd_commandline.options[].value",
	"dnsmasq_options.option[].value",
}

// isOpenText says whether such a text stands there. An image may name another
// one by a URL with a password.
func isOpenText(pattern string, v tree.Value) bool {
	if v.Kind() != tree.String || v.Str() == "" {
		return false
	}
	if pattern == "backing_store.path" {
		return strings.Contains(v.Str(), "://") || strings.HasPrefix(v.Str(), "json:")
	}
	return slices.ContainsFunc(openTexts, func(end string) bool {
		return pattern == end || strings.HasSuffix(pattern, "."+end)
	})
}

// mayBeSecret is a note for each object with such texts.
func (p *project) mayBeSecret() (notes []string) {
	for _, o := range p.objects {
		var places []string
		o.essence.Walk(func(path tree.Path, v tree.Value) bool {
			if pattern := path.Pattern(); p.links[o][path.String()] == "" && isOpenText(pattern, v) && !slices.Contains(places, pattern) {
				places = append(places, pattern)
			}
			return true
		})
		if len(places) > 0 {
			notes = append(notes, fmt.Sprintf("%s is written with the texts of %s as they are on the host, and nobody can tell by them whether they are secret. "+
				"If one is, put it into a variable with sensitive = true before the files go to others.", oneLine(o.selector()), strings.Join(places, ", ")))
		}
	}
	return notes
}

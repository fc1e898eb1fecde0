package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// TestOpenTexts shows that each place is one that the provider knows.
func TestOpenTexts(t *testing.T) {
	for _, end := range openTexts {
		field := strings.TrimSuffix(end, "[]") // of a list of texts
		known := false
		for _, root := range roots {
			for pattern := range root().Fields {
				known = known || pattern == field || strings.HasSuffix(pattern, "."+field)
			}
		}
		if !known {
			t.Errorf("no object has %s", end)
		}
	}
}

// TestMayBeSecret shows which objects get a note, and that it names the places.
func TestMayBeSecret(t *testing.T) {
	for pattern, row := range map[string]struct {
		at   string
		text tree.Value
	}{
		"qemu_commandline.args[].value":              {"qemu_commandline.args", list(obj("value", "-object"), obj("value", "secret,id=s0,data=hunter2"))},
		"qemu_commandline.envs[].value":              {"qemu_commandline.envs", list(obj("name", "TOKEN", "value", "hunter2"))},
		"sys_info[].fw_cfg.entry[].value":            {"sys_info", list(obj("fw_cfg", obj("entry", list(obj("name", "opt/com.coreos/config", "value", "hunter2")))))},
		"sys_info[].smbios.oem_strings.entry[]":      {"sys_info", list(obj("smbios", obj("oem_strings", obj("entry", list(text("io.systemd.credential:a=hunter2"))))))},
		"os.cmdline":                                 {"os.cmdline", text("systemd.set_credential=a:hunter2")},
		"os.init_args[]":                             {"os.init_args", list(text("hunter2"))},
		"devices.disks[].source.network.query":       {"devices.disks", list(obj("source", obj("network", obj("query", "token=hunter2"))))},
		"backing_store.path":                         {"backing_store.path", text("https://u:hunter2@h/x.img")},
		"fs_commandline.options[].name":              {"fs_commandline.options", list(obj("name", "password=hunter2"))},
		"sys_info[].smbios.oem_strings.entry[] (no)": {"sys_info", list(obj("smbios", obj("system", obj("entry", list(obj("name", "serial", "value", "7"))))))},
		"backing_store.path (no)":                    {"backing_store.path", text("/srv/images/base.qcow2")},
	} {
		quiet, o := machine("quiet", "/x"), machine("web", "/y")
		o.essence = o.essence.SetAt(row.at, row.text)
		notes := compose([]*object{quiet, o}, "qemu:///system", "qemu:///system").mayBeSecret()
		if strings.HasSuffix(pattern, " (no)") {
			if len(notes) > 0 {
				t.Errorf("%s: %q", pattern, notes)
			}
			continue
		}
		if len(notes) != 1 || !strings.HasPrefix(notes[0], "domain/web is written with the texts of "+pattern+" as they are") || strings.Contains(notes[0], "hunter2") {
			t.Errorf("%s: %q", pattern, notes)
		}
	}
}

// TestNoteOfOpenTexts shows that a run prints the note.
func TestNoteOfOpenTexts(t *testing.T) {
	var out bytes.Buffer
	o := machine("web", "/y")
	o.essence = o.essence.SetAt("os.cmdline", text("hunter2"))
	err := write(context.Background(), compose([]*object{o}, testDriver, testDriver), []string{"of the reader"}, options{out: filepath.Join(t.TempDir(), "infra")}, nil, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"note: of the reader\n", "note: domain/web is written with the texts of os.cmdline"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}

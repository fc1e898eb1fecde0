package seed

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

const ignition3 = `{"ignition": {"version": "3.4.0"}}`

var ignitionInputs = []input{
	{name: "smallest", text: ignition3},
	{name: "spread over lines", text: "{\n  \"ignition\": {\n\t\"version\": \"3.0.0\"\n  },\r\n  \"storage\": {\"files\": [{\"path\": \"/a\"}, {\"path\": \"/b\"}]}\n}\n"},
	{name: "version 2", text: `{"ignition":{"version":"2.3.0"},"passwd":{}}`},
	{name: "key in other case", text: `{"Ignition":{"Version":"3.1.0"}}`},
	{name: "unicode", text: `{"ignition":{"version":"3.6.0"},"a":"Grüße 🚀"}`},

	{name: "experimental", text: `{"ignition":{"version":"3.7.0-experimental"}}`, want: warned, at: "1:24", says: "experimental versions"},
	{name: "of the future", text: `{"ignition":{"version":"3.99.0"}}`, want: warned, at: "1:24", says: "newer than all"},
	{name: "duplicate key", text: "{\"ignition\":{\"version\":\"3.4.0\"},\n \"storage\":{}, \"storage\":{}}", want: warned, at: "2:16", says: `the key "storage" stands twice`},
	{name: "duplicate key, deep", text: "{\"ignition\":{\"version\":\"3.4.0\"},\n \"storage\":{\"files\":[1,{\"a\":[],\n\"a\":{}}]}}", want: warned, at: "3:1", says: `the key "a" stands twice`},

	{name: "empty", text: "", want: refused, says: "It is empty"},
	{name: "blank", text: " \n", want: refused, says: "It is empty"},
	{name: "YAML", text: "ignition:\n  version: 3.4.0\n", want: refused, at: "1:1", says: "not valid JSON"},
	{name: "Butane", text: "variant: fcos\nversion: 1.5.0\n", want: refused, says: "translate it with butane"},
	{name: "cloud-config", text: "#cloud-config\na: 1\n", want: refused, says: "libvirt_cloudinit_disk"},
	{name: "script", text: "#!/bin/sh\n", want: refused, says: "libvirt_combustion"},
	{name: "byte order mark", text: "\ufeff" + ignition3, want: refused, says: "byte order mark"},
	{name: "base64", text: encoded([]byte(ignition3)), want: refused, says: "base64decode"},
	{name: "trailing comma", text: "{\"ignition\":\n  {\"version\":\"3.4.0\",}}", want: refused, at: "2:22", says: "not valid JSON"},
	{name: "comment", text: "{\n// hello\n}", want: refused, at: "2:1", says: "not valid JSON"},
	{name: "single quotes", text: "{'ignition': 1}", want: refused, at: "1:2", says: "not valid JSON"},
	{name: "cut off", text: "{\"ignition\":\n{\"version\": \"3.4.0\"}", want: refused, at: "2:21", says: "unexpected end"},
	{name: "two documents", text: ignition3 + "\n{}", want: refused, at: "2:1", says: "not valid JSON"},
	{name: "tab in a text", text: "{\"a\": \"b\tc\"}", want: refused, at: "1:9", says: "not valid JSON"},
	{name: "NUL", text: "{\"a\":\n \x00}", want: refused, at: "2:2", says: "NUL byte"},
	{name: "not UTF-8", text: "{\"a\": \"\xff\"}", want: refused, says: "UTF-8"},
	{name: "too large", text: `{"a":"` + strings.Repeat("x", MaxContent) + `"}`, want: refused, says: "larger than 10 MiB"},
	{name: "list", text: "\n [1]", want: refused, at: "2:2", says: "not a JSON object"},
	{name: "text", text: `"x"`, want: refused, at: "1:1", says: "not a JSON object"},
	{name: "without ignition", text: `{"storage":{}}`, want: refused, says: "no ignition.version"},
	{name: "version 1", text: `{"ignitionVersion":1}`, want: refused, at: "1:20", says: "version 1 of the specification"},
	{name: "ignition is a text", text: `{"ignition":"3.4.0"}`, want: refused, at: "1:13", says: "not an object"},
	{name: "without version", text: "{\n\"ignition\": {}}", want: refused, at: "2:13", says: "no ignition.version"},
	{name: "version is a number", text: `{"ignition":{"version":3.4}}`, want: refused, at: "1:24", says: "not a text"},
	{name: "version is null", text: `{"ignition":{"version":null}}`, want: refused, at: "1:24", says: "not a text"},
	{name: "version of two numbers", text: `{"ignition":{"version":"3.4"}}`, want: refused, at: "1:24", says: "no semantic version"},
	{name: "version with a v", text: `{"ignition":{"version":"v3.4.0"}}`, want: refused, at: "1:24", says: "no semantic version"},
	{name: "family 1", text: `{"ignition":{"version":"1.0.0"}}`, want: refused, at: "1:24", says: "are 2.x and 3.x"},
	{name: "family 4", text: `{"ignition":{"version":"4.0.0"}}`, want: refused, at: "1:24", says: "are 2.x and 3.x"},
	{name: "patch level", text: `{"ignition":{"version":"3.4.1"}}`, want: refused, at: "1:24", says: "ends in .0"},
	{name: "candidate", text: `{"ignition":{"version":"3.4.0-rc1"}}`, want: refused, at: "1:24", says: "which no Ignition knows"},
}

var combustionInputs = []input{
	{name: "bash", text: "#!/bin/bash\n# combustion: network\necho hello\n"},
	{name: "two markers", text: "#! /usr/bin/env bash\n# combustion: network prepare\n"},
	{name: "python", text: "#!/usr/bin/python3\nprint('{')\n"},
	{name: "prose about it", text: "#!/bin/sh\n# this is for combustion, and needs the network\n"},

	{name: "no interpreter line", text: "echo hello\n", want: warned, at: "1:1", says: "does not begin with #!"},
	{name: "marker without space", text: "#!/bin/sh\n\n#combustion: network\n", want: warned, at: "3:1", says: "does not recognise this marker"},
	{name: "marker in capitals", text: "#!/bin/sh\n# Combustion: Network\n", want: warned, at: "2:1", says: "does not recognise this marker"},
	{name: "marker indented", text: "#!/bin/sh\n  # combustion: network\n", want: warned, at: "2:1", says: "does not recognise this marker"},
	{name: "marker with another word", text: "#!/bin/sh\n# combustion: networking\n", want: warned, at: "2:1", says: "does not recognise this marker"},

	{name: "empty", text: "", want: refused, says: "It is empty"},
	{name: "blank", text: "\n\n", want: refused, says: "It is empty"},
	{name: "cloud-config", text: "#cloud-config\na: 1\n", want: refused, says: "for cloud-init"},
	{name: "MIME", text: multi(mimePart("text/x-shellscript", "#!/bin/sh\n")), want: refused, says: "a MIME message"},
	{name: "Ignition", text: ignition3, want: refused, says: "libvirt_ignition"},
	{name: "byte order mark", text: "\ufeff#!/bin/sh\n", want: refused, says: "byte order mark"},
	{name: "base64", text: encoded([]byte("#!/bin/sh\necho hello\n")), want: refused, says: "base64decode"},
	{name: "Windows line ends", text: "#!/bin/sh\r\necho\r\n", want: refused, at: "1:10", says: "Windows"},
	{name: "empty line before", text: "\n#!/bin/sh\n", want: refused, at: "1:1", says: "very beginning"},
	{name: "no interpreter", text: "#!\necho\n", want: refused, at: "1:3", says: "names no interpreter"},
	{name: "relative interpreter", text: "#!bash\necho\n", want: refused, at: "1:3", says: "absolute path"},
	{name: "NUL", text: "#!/bin/sh\necho \x00\n", want: refused, at: "2:6", says: "NUL byte"},
	{name: "not UTF-8", text: "#!/bin/sh\n# \xff\n", want: refused, says: "UTF-8"},
	{name: "too large", text: "#!/bin/sh\n" + strings.Repeat("#", MaxContent), want: refused, says: "larger than 10 MiB"},
}

func TestCheckIgnition(t *testing.T) {
	for _, in := range ignitionInputs {
		t.Run(in.name, func(t *testing.T) { in.check(t, CheckIgnition(in.text)) })
	}
}

func TestCheckCombustion(t *testing.T) {
	for _, in := range combustionInputs {
		t.Run(in.name, func(t *testing.T) { in.check(t, CheckCombustion(in.text)) })
	}
}

func TestCheckFormat(t *testing.T) {
	for format, want := range map[string]int{"raw": 0, "iso": 0, "": 1, "ISO": 1, "qcow2": 1} {
		if got := CheckFormat(format); len(got) != want {
			t.Errorf("CheckFormat(%q) = %v", format, got)
		}
	}
}

// A finding is printed by the core, and these texts are secret, too.
func TestFindingsOfTextsKeepSecrets(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, text := range []string{
		secret, "{" + secret, `{"a": ` + secret + `}`, `{"ignition": "` + secret + `"}`, `["` + secret + `"]`, `{"a": "` + secret, "variant: a\n" + secret,
		"#cloud-config\n" + secret, "#!" + secret, "#! /bin/sh " + secret + "\r\n", "\ufeff" + secret, "#combustion: " + secret, encoded([]byte("{" + secret)),
	} {
		found := append(CheckIgnition(text), CheckCombustion(text)...)
		if len(found) == 0 {
			t.Errorf("nothing found in %q", text)
		}
		for _, f := range found {
			if strings.Contains(f.String(), secret) {
				t.Errorf("%q quotes the input", f)
			}
		}
	}
}

func TestPlain(t *testing.T) {
	const text = "#!/bin/sh\n"
	sum := sha256.Sum256([]byte("#!/bin/sh")) // white space at the end means nothing
	for name, p := range map[string]Plain{".ign": Ignition(text), ".sh": Combustion(text)} {
		if got := p.Digest(); got.String() != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: digest %s", name, got)
		}
		file := FileName("web", p)
		if b, err := p.Bytes(); err != nil || string(b) != text || file != "web-sha256-"+p.Digest().String()+name {
			t.Errorf("%s: %q, %v, %s", name, b, err, file)
		}
		if back, digest, ok := ParsePath("/x/" + file); !ok || back != "web" || digest != p.Digest() {
			t.Errorf("ParsePath(%q) = %q, %v, %v", file, back, digest, ok)
		}
	}
	if _, err := Ignition(strings.Repeat(" ", MaxContent+1)).Bytes(); err == nil || !strings.Contains(err.Error(), "larger than 10 MiB") {
		t.Errorf("error %v", err)
	}
	dir := t.TempDir()
	placed, err := open(t, dir).Put("web", Combustion(text))
	if err != nil || !placed.Written || placed.Size != int64(len(text)) || mode(t, placed.Path) != 0o600 {
		t.Errorf("%+v, %v", placed, err)
	}
	if again, err := open(t, dir).Put("web", Combustion(text)); err != nil || again.Written {
		t.Errorf("%+v, %v: written again", again, err)
	}
	if err := Remove(placed.Path); err != nil {
		t.Error(err)
	}
}

func FuzzCheckTexts(f *testing.F) {
	for _, inputs := range [][]input{ignitionInputs, combustionInputs} {
		for _, in := range inputs {
			if len(in.text) < 10000 {
				f.Add(in.text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range [][]Finding{CheckIgnition(text), CheckCombustion(text)} {
			for _, f := range found {
				if f.Problem == "" || f.Line < 0 || f.Line > strings.Count(text, "\n")+1 {
					t.Errorf("%+v for %q", f, text)
				}
			}
		}
	})
}

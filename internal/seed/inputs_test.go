package seed

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// verdict is what becomes of an input in a guest.
type verdict int

const (
	fine verdict = iota
	warned
	refused
)

// input is one row: a text, what we say about it, and, unless another program
// than cloud-init is meant, what cloud-init does (TestAccSeed_cloudInitAgrees).
type input struct {
	name string
	text string
	want verdict
	at   string // "line:column" of the first finding
	says string // part of the first finding
	// others: the input is for another reader than cloud-init, or for another
	// version than those that are tested against.
	others bool
	// lenient: cloud-init uses the input, though we refuse or warn: why.
	lenient string
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// multi builds a message as the data source cloudinit_config does: mixed line
// ends included.
func multi(parts ...string) string {
	text := "Content-Type: multipart/mixed; boundary=\"MIMEBOUNDARY\"\nMIME-Version: 1.0\r\n\r\n"
	for _, p := range parts {
		text += "--MIMEBOUNDARY\r\n" + p + "\r\n"
	}
	return text + "--MIMEBOUNDARY--\r\n"
}

func mimePart(kind, text string) string {
	return "Content-Transfer-Encoding: 7bit\r\nContent-Type: " + kind + "\r\nMime-Version: 1.0\r\n\r\n" + text
}

func base64Part(kind string, b []byte) string {
	code := encoded(b)
	var lines []string
	for len(code) > 76 {
		lines, code = append(lines, code[:76]), code[76:]
	}
	return "Content-Transfer-Encoding: base64\r\nContent-Type: " + kind + "\r\nContent-Disposition: attachment; filename=\"f\"\r\nMIME-Version: 1.0\r\n\r\n" +
		strings.Join(append(lines, code), "\r\n")
}

const partHandler = "#part-handler\ndef list_types():\n    return [\"text/x-mine\"]\ndef handle_part(data, ctype, filename, payload):\n    pass\n"

var userDataInputs = []input{
	{name: "empty", text: ""},
	{name: "blank", text: " \n\n", lenient: "a warning in its log about nothing"},
	{name: "cloud-config", text: "#cloud-config\nhostname: a\nruncmd:\n  - [ls, -l]\n"},
	{name: "cloud-config, capitals and space before", text: "\n  #Cloud-Config\nhostname: a\n"},
	{name: "cloud-config, Windows line ends", text: "#cloud-config\r\nhostname: a\r\n"},
	{name: "cloud-config, header alone", text: "#cloud-config\n", lenient: "a warning in its log about nothing"},
	{name: "cloud-config, JSON", text: "#cloud-config\n{\"runcmd\": [[\"ls\"]]}"},
	{name: "cloud-config, block scalar with tabs", text: "#cloud-config\nwrite_files:\n  - path: /a\n    content: |\n      a:\n      \tb\n  - path: \"/b\tc\"\n    # a\tb\n"},
	{name: "cloud-config, anchors and merge", text: "#cloud-config\na: &a {b: 1}\nc: {<<: *a, d: 2}\ne: {<<: [*a, *a]}\n"},
	{name: "cloud-config, one document with marks", text: "#cloud-config\n---\na: 1\n...\n"},
	{name: "cloud-config, text that mentions MIME", text: "#cloud-config\nwrite_files:\n  - path: /mail\n    content: |\n      MIME-Version: 1.0\n"},
	{name: "cloud-config, version directive", text: "#cloud-config\n%YAML 1.2\n---\na: 1\n"},
	{name: "cloud-config, equals sign as a key", text: "#cloud-config\na: {=: 1}\n"},
	{name: "cloud-config, unicode", text: "#cloud-config\nmotd: Grüße 🚀\n"},
	{name: "script", text: "#!/bin/sh\necho hello: : :\n"},
	{name: "boothook", text: "#cloud-boothook\n#!/bin/sh\n"},
	{name: "part handler", text: partHandler},
	{name: "archive", text: "#cloud-config-archive\n- type: text/cloud-config\n  content: |\n    hostname: a\n"},
	{name: "JSON patch", text: "#cloud-config-jsonp\n[{\"op\": \"add\", \"path\": \"/runcmd\", \"value\": []}]\n"},
	{name: "jinja", text: "## template: jinja\n#cloud-config\na: {{ v1.region }}\n"},
	{name: "jinja, rendered header", text: "## template: jinja\n{% if true %}#cloud-config\nhostname: a{% endif %}\n"},
	{name: "MIME", text: multi(mimePart("text/cloud-config", "#cloud-config\na: 1\n"), mimePart("text/x-shellscript", "#!/bin/sh\n"), mimePart("text/plain", "#cloud-config\na: 1\n"))},
	{name: "MIME, base64 and gzip", text: multi(base64Part("text/cloud-config", []byte(strings.Repeat("a: 1 # comment\n", 1))), base64Part("application/gzip", gzipped("#cloud-config\nb: 2\n")))},
	{name: "MIME, single", text: "MIME-Version: 1.0\nContent-Type: text/cloud-config\n\na: 1\n"},
	{name: "MIME, mailbox line", text: "From nobody Thu Jan  1 00:00:00 1970\n" + multi(mimePart("text/cloud-config", "a: 1\n"))},
	{name: "MIME, cloud-config labelled as script", text: multi(mimePart("text/x-shellscript", "#cloud-config\na: 1\n"))},
	{name: "MIME, unknown type with a handler", text: multi(mimePart("text/part-handler", partHandler), mimePart("text/x-mine", "whatever"))},

	{name: "for Windows", text: "#ps1_sysnative\nGet-Date\n", others: true},
	{name: "for Windows, batch", text: "rem cmd\ndir\n", others: true},
	{name: "for Talos", text: "version: v1alpha1\nmachine:\n  type: worker\n", others: true},
	{name: "for Talos, several documents", text: "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n---\napiVersion: v1alpha1\nkind: X\n", others: true},

	{name: "upstart", text: "#upstart-job\nstart on started\n", want: warned, says: "since 22.2", others: true},
	{name: "duplicate key", text: "#cloud-config\nruncmd: [a]\nusers: []\nruncmd: [b]\n", want: warned, at: "4:1", says: `the key "runcmd" stands twice`, lenient: "it uses the last"},
	{name: "MIME, unknown type", text: multi(mimePart("text/x-mine", "whatever")), want: warned, says: "Part 1: its type \"text/x-mine\""},
	{name: "MIME, header that net/mail cannot read", text: "MIME-Version: 1.0\nContent-Type: text/cloud-config\n{a}\n", want: warned, says: "too unusual", lenient: "its parser takes more"},

	{name: "no header", text: "hostname: a\n", want: refused, says: "put #cloud-config into its first line"},
	{name: "no header, yamlencode", text: "\"hostname\": \"a\"\n", want: refused, says: "put #cloud-config into its first line"},
	{name: "no header, JSON", text: "{\"hostname\": \"a\"}\n", want: refused, says: "put #cloud-config into its first line"},
	{name: "no header, prose", text: "set it up, please\n", want: refused, says: "Begin it with one of #cloud-config, #!"},
	{name: "space in the header", text: "# cloud-config\nhostname: a\n", want: refused, says: "very first line, and without a space"},
	{name: "comment before the header", text: "# made by us\n#cloud-config\nhostname: a\n", want: refused, says: "very first line"},
	{name: "document mark before the header", text: "---\n#cloud-config\nhostname: a\n", want: refused, says: "very first line"},
	{name: "byte order mark", text: "\ufeff#cloud-config\nhostname: a\n", want: refused, says: "byte order mark"},
	{name: "base64", text: encoded([]byte("#cloud-config\nhostname: a\n")), want: refused, says: "base64_encode = false"},
	{name: "base64 of gzip", text: encoded(gzipped("#cloud-config\nhostname: a\n")), want: refused, says: "gzip = false"},
	{name: "base64 of MIME", text: encoded([]byte(multi(mimePart("text/cloud-config", "a: 1\n")))), want: refused, says: "base64_encode = false"},
	{name: "MIME without version", text: "Content-Type: text/cloud-config\n\na: 1\n", want: refused, says: "MIME-Version: line"},
	{name: "NUL", text: "#!/bin/sh\necho \x00\n", want: refused, at: "2:6", says: "NUL byte", lenient: "it stores the script as it is"},
	{name: "control character", text: "#cloud-config\na: \"\x1b[0m\"\n", want: refused, at: "2:5", says: "control character"},
	{name: "list", text: "#cloud-config\n- a\n", want: refused, at: "2:1", says: "not a mapping"},
	{name: "scalar", text: "#cloud-config\nhello\n", want: refused, at: "2:1", says: "not a mapping"},
	{name: "indentation", text: "#cloud-config\na: 1\n b: 2\n", want: refused, at: "3:3", says: "mapping values are not allowed"},
	{name: "open bracket", text: "#cloud-config\na: [1,\n", want: refused, at: "3:1", says: "not valid YAML"},
	{name: "open quote", text: "#cloud-config\na: \"x\nb: 1\n", want: refused, says: "not valid YAML"},
	{name: "colon in a value", text: "#cloud-config\nruncmd:\n  - echo a: b: c\n", want: refused, at: "3:14", says: "mapping values"},
	{name: "at sign", text: "#cloud-config\na: @b\n", want: refused, at: "2:4", says: "cannot start any token"},
	{name: "tab as indentation", text: "#cloud-config\na:\n\tb: 1\n", want: refused, at: "3:1", says: "cannot start any token"},
	{name: "tab after a colon", text: "#cloud-config\na:\tb\n", want: refused, at: "2:4", says: "a tab stands beside"},
	{name: "tab in a plain value", text: "#cloud-config\na: b\tc\n", want: refused, at: "2:4", says: "a tab stands beside"},
	{name: "tab before a comment", text: "#cloud-config\na: b\t# c\n", want: refused, at: "2:4", says: "a tab stands beside"},
	{name: "tabs in JSON", text: "#cloud-config\n{\n\t\"a\": 1\n}\n", want: refused, at: "3:2", says: "a tab stands beside"},
	{name: "template without its header", text: "#cloud-config\nhostname: {{ v1.region }}\n", want: refused, at: "2:12", says: "cannot be a key"},
	{name: "unknown tag", text: "#cloud-config\na: !vault x\n", want: refused, at: "2:4", says: "tag"},
	{name: "python tag", text: "#cloud-config\na: !!python/object/apply:os.system [x]\n", want: refused, at: "2:4", says: "tag"},
	{name: "unknown anchor", text: "#cloud-config\na: *b\n", want: refused, at: "2:4", says: "unknown anchor referenced. To begin a text with *"},
	{name: "version directive of another YAML", text: "#cloud-config\n%YAML 2.0\n---\na: 1\n", want: refused, at: "2:1", says: "incompatible YAML"},
	{name: "merge of a scalar", text: "#cloud-config\na: {<<: 3}\n", want: refused, at: "2:9", says: "<< merges"},
	{name: "no such day", text: "#cloud-config\nexpiredate: 2026-02-30\n", want: refused, at: "2:13", says: "no such day"},
	{name: "bare equals sign", text: "#cloud-config\na: =\n", want: refused, at: "2:4", says: "bare ="},
	{name: "two documents", text: "#cloud-config\na: 1\n---\nb: 2\n", want: refused, at: "3:1", says: "second YAML document"},
	{name: "archive that is no list", text: "#cloud-config-archive\na: 1\n", want: refused, at: "2:1", says: "not a list"},
	{name: "JSON patch that does not parse", text: "#cloud-config-jsonp\n[{]\n", want: refused, at: "2:4", says: "not a JSON patch"},
	{name: "JSON patch that is none", text: "#cloud-config-jsonp\n{\"a\": 1}\n", want: refused, says: "not a JSON patch"},
	{name: "jinja without a second header", text: "## template: jinja\nhostname: a\n", want: refused, at: "2:1", says: "does not begin with a header"},
	{name: "MIME, broken part", text: multi(mimePart("text/x-shellscript", "#!/bin/sh\n"), mimePart("text/cloud-config", "a: 1\n b: 2\n")), want: refused, at: "2:3", says: "Part 2, line 2, column 3"},
	{name: "MIME, part without header", text: multi(mimePart("text/plain", "hello\n")), want: refused, says: "its type says nothing"},
	{name: "MIME, not base64", text: multi("Content-Transfer-Encoding: base64\r\nContent-Type: text/cloud-config\r\n\r\n%%%"), want: refused, says: "cannot be decoded"},
	{name: "MIME, not gzip", text: multi(base64Part("application/gzip", []byte("#cloud-config\n"))), want: refused, says: "cannot be decoded"},
	{name: "MIME, no boundary", text: "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n--x\n\na: 1\n--x--\n", want: refused, says: "without a boundary"},
	{name: "MIME, cut off", text: strings.TrimSuffix(multi(mimePart("text/cloud-config", "a: 1\n")), "--MIMEBOUNDARY--\r\n")},
	{name: "MIME, cut off and broken", text: strings.TrimSuffix(multi(mimePart("text/cloud-config", "a: @1\n")), "--MIMEBOUNDARY--\r\n"), want: refused, at: "1:4", says: "Part 1"},
	{name: "MIME, another boundary", text: strings.ReplaceAll(multi(mimePart("text/cloud-config", "a: 1\n")), "--MIMEBOUNDARY", "--OTHER"), want: refused, says: "without any part"},
	{name: "too large", text: "#!/bin/sh\n" + strings.Repeat("#", MaxContent), want: refused, says: "larger than 10 MiB", lenient: "it has no limit"},
	{name: "not UTF-8", text: "#!/bin/sh\n\xff\n", want: refused, says: "UTF-8"},
}

var metaDataInputs = []input{
	{name: "YAML", text: "instance-id: web-1\nlocal-hostname: web-1\n"},
	{name: "JSON", text: `{"instance-id": "web-1"}`},
	{name: "number", text: "instance-id: 1\n"},
	{name: "alias", text: "local-hostname: &n web\ninstance-id: *n\n"},
	{name: "merged", text: "base: &b {instance-id: web-1}\n<<: *b\n"},
	{name: "merged from a list, from a mapping that merges", text: "a: &a {instance-id: web-1}\nb: &b {<<: *a}\n<<: [{c: 1}, *b]\n"},
	{name: "merged without one", text: "base: &b {id: web-1}\n<<: *b\n", want: refused, says: "It has no instance-id"},
	{name: "merged, hidden by an empty one", text: "base: &b {instance-id: web-1}\n<<: *b\ninstance-id:\n", want: refused, at: "3:13", says: "instance-id is empty"},
	{name: "empty", text: "", want: refused, says: "It is empty"},
	{name: "comment", text: "# nothing\n", want: refused, says: "It is empty"},
	{name: "null", text: "null\n", want: refused, says: "It is empty"},
	{name: "without instance-id", text: "local-hostname: web-1\n", want: refused, says: "It has no instance-id"},
	{name: "underscore", text: "instance_id: web-1\n", want: refused, says: "It has no instance-id"},
	{name: "no value", text: "instance-id:\nlocal-hostname: a\n", want: refused, at: "1:13", says: "instance-id is empty"},
	{name: "empty value", text: "instance-id: ''\n", want: refused, at: "1:14", says: "instance-id is empty"},
	{name: "list value", text: "instance-id: [a]\n", want: refused, at: "1:14", says: "not a plain value", lenient: "it uses the list as Python writes it"},
	{name: "list", text: "- instance-id: a\n", want: refused, at: "1:1", says: "not a mapping"},
	{name: "scalar", text: "instance-id\n", want: refused, at: "1:1", says: "not a mapping"},
	{name: "broken", text: "instance-id: a\n  b: c\n", want: refused, at: "2:4", says: "not valid YAML"},
	{name: "duplicate", text: "instance-id: a\ninstance-id: b\n", want: warned, at: "2:1", says: "twice", lenient: "it uses the last"},
	{name: "NUL", text: "instance-id: a\x00\n", want: refused, at: "1:15", says: "NUL"},
}

var networkInputs = []input{
	{name: "empty", text: ""},
	{name: "comment", text: "# DHCP\n"},
	{name: "version 2", text: "version: 2\nethernets:\n  eth0: {dhcp4: true}\n"},
	{name: "version 2 below network", text: "network:\n  version: 2\n  ethernets: {}\n"},
	{name: "version 2, JSON", text: `{"version": 2}`},
	{name: "version 1", text: "version: 1\nconfig:\n  - type: physical\n    name: eth0\n    subnets: [{type: dhcp}]\n"},
	{name: "version 1 below network", text: "network:\n  version: 1\n  config: []\n"},
	{name: "version 2, merged", text: "a: &a {version: 2}\nnetwork: {<<: *a, ethernets: {}}\n"},
	{name: "disabled", text: "config: disabled\n"},
	{name: "disabled below network", text: "network: {config: disabled}\n"},
	{name: "list", text: "- a\n", want: refused, at: "1:1", says: "not a mapping"},
	{name: "network is a list", text: "network:\n  - a\n", want: refused, at: "2:3", says: "below network"},
	{name: "no version", text: "ethernets:\n  eth0: {dhcp4: true}\n", want: refused, at: "1:1", says: "no version"},
	{name: "no version below network", text: "network:\n  ethernets: {}\n", want: refused, at: "2:3", says: "no version"},
	{name: "version 3", text: "version: 3\n", want: refused, at: "1:10", says: "neither the number 1"},
	{name: "version in quotes", text: "version: \"2\"\n", want: refused, at: "1:10", says: "without quotes"},
	{name: "version 1 without config", text: "version: 1\nethernets: {}\n", want: refused, at: "1:1", says: "needs a list called config"},
	{name: "version 1, config is a mapping", text: "version: 1\nconfig: {}\n", want: refused, says: "needs a list called config", lenient: "it configures nothing"},
	{name: "broken", text: "version: 2\n ethernets: {}\n", want: refused, at: "2:11", says: "not valid YAML"},
	{name: "duplicate interface", text: "version: 2\nethernets:\n  eth0: {dhcp4: true}\n  eth0: {dhcp4: false}\n", want: warned, at: "4:3", says: "twice", lenient: "it uses the last"},
}

func (in input) check(t *testing.T, found []Finding) {
	t.Helper()
	got := fine
	for _, f := range found {
		if got < warned {
			got = warned
		}
		if !f.Warning {
			got = refused
		}
	}
	if got != in.want {
		t.Fatalf("verdict %d, want %d: %v", got, in.want, found)
	}
	if len(found) == 0 {
		return
	}
	if at := fmt.Sprintf("%d:%d", found[0].Line, found[0].Column); in.at != "" && at != in.at {
		t.Errorf("at %s, want %s: %v", at, in.at, found[0])
	}
	if in.says == "" || !strings.Contains(found[0].String(), in.says) {
		t.Errorf("says %q, want %q in it", found[0], in.says)
	}
	if !found[0].Warning && found[0].Advice == "" {
		t.Errorf("no way out in %q", found[0])
	}
}

func TestCheckUserData(t *testing.T) {
	for _, in := range userDataInputs {
		t.Run(in.name, func(t *testing.T) { in.check(t, CheckUserData(in.text)) })
	}
}

func TestCheckMetaData(t *testing.T) {
	for _, in := range metaDataInputs {
		t.Run(in.name, func(t *testing.T) { in.check(t, CheckMetaData(in.text)) })
	}
}

func TestCheckNetworkConfig(t *testing.T) {
	for _, in := range networkInputs {
		t.Run(in.name, func(t *testing.T) { in.check(t, CheckNetworkConfig(in.text)) })
	}
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]int{"web-1": 0, "a/b c": 0, "": 1, " \t": 1} {
		if got := CheckName(name); len(got) != want {
			t.Errorf("CheckName(%q) = %v", name, got)
		}
	}
}

// A finding is printed by the core, so it must not carry the input, which may
// be secret.
func TestFindingsKeepSecrets(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, text := range []string{
		secret, "#cloud-config\n" + secret, "#cloud-config\npassword: @" + secret, "#cloud-config\npassword: " + secret + ": x: y",
		"#cloud-config\npassword: \"" + secret, "#cloud-config\npassword: !x " + secret, "#cloud-config\n\tpassword: " + secret,
		"#cloud-config\npassword: *" + secret, "#cloud-config\npassword: *" + secret + "'s", "#cloud-config\npassword: &" + secret + ": @",
		"#cloud-config-jsonp\n" + secret, "## template: jinja\n" + secret, multi(mimePart("text/plain", secret)), multi(mimePart("text/cloud-config", secret)),
		encoded([]byte("#!" + secret)),
	} {
		found := CheckUserData(text)
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

func FuzzCheck(f *testing.F) {
	for _, inputs := range [][]input{userDataInputs, metaDataInputs, networkInputs} {
		for _, in := range inputs {
			if len(in.text) < 10000 {
				f.Add(in.text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range [][]Finding{CheckUserData(text), CheckMetaData(text), CheckNetworkConfig(text)} {
			for _, f := range found {
				if f.Problem == "" || f.Line < 0 || f.Line > len(lineBreak.FindAllString(text, -1))+2 && f.Part == "" {
					t.Errorf("%+v for %q", f, text)
				}
			}
		}
	})
}

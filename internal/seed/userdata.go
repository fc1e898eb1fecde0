package seed

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// format is what the beginning of a text makes of it.
type format int

const (
	unknownFormat format = iota
	script               // also boothooks, part handlers, include lists: nothing to check
	cloudConfig
	cloudConfigArchive
	jsonPatch
	jinja
	upstart // old cloud-inits only
)

// headers are the beginnings that decide, the longer before its own prefix.
// cloud-init ignores the case, and white space before them.
var headers = []struct {
	text   string
	format format
}{
	{"#cloud-config-archive", cloudConfigArchive},
	{"#cloud-config-jsonp", jsonPatch},
	{"#cloud-config", cloudConfig},
	{"#cloud-boothook", script},
	{"#part-handler", script},
	{"#include-once", script},
	{"#include", script},
	{"## template: jinja", jinja},
	{"#upstart-job", upstart},
	{"#!", script},
	// cloudbase-init, which reads the same volume in Windows guests.
	{"#ps1", script},
	{"rem cmd", script},
	{"<powershell>", script},
	{"<script>", script},
}

const headerList = "#cloud-config, #!, #include, #include-once, #cloud-boothook, #part-handler, #cloud-config-archive, #cloud-config-jsonp, ## template: jinja, or the header of a MIME message with a MIME-Version: line"

// formatOf looks at the beginning of a text.
func formatOf(text string) format {
	text = strings.TrimSpace(text)
	text = strings.ToLower(text[:min(len(text), 64)])
	for _, h := range headers {
		if strings.HasPrefix(text, h.text) {
			return h.format
		}
	}
	return unknownFormat
}

// CheckUserData checks a user-data file. An empty one is fine: a machine without
// user data is an ordinary machine.
func CheckUserData(text string) []Finding {
	if found := checkText(text); found != nil {
		return found
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if isMessage(text) {
		return checkMessage(text)
	}
	f := formatOf(text)
	if f == unknownFormat {
		if isTalos(text) {
			return nil
		}
		return finding("it begins with none of the headers that cloud-init knows, so cloud-init ignores it", adviseHeader(text))
	}
	return checkFormat(f, text)
}

// checkFormat checks a text of a known format.
func checkFormat(f format, text string) []Finding {
	switch f {
	case cloudConfig:
		return checkYAML(text, yaml.MappingNode, "a mapping of keys to values")
	case cloudConfigArchive:
		return checkYAML(text, yaml.SequenceNode, "a list")
	case jsonPatch:
		return checkJSONPatch(text)
	case jinja:
		return checkJinja(text)
	case upstart:
		return []Finding{{Warning: true, Problem: "#upstart-job is ignored by every cloud-init since 22.2", Advice: "Write a systemd unit with write_files of a #cloud-config, and start it with runcmd"}}
	case unknownFormat, script:
	}
	return nil
}

// checkYAML checks a document that must be of one kind, or empty.
func checkYAML(text string, kind yaml.Kind, what string) []Finding {
	root, found := parseYAML(text)
	if root == nil || root.Kind == kind || root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return found
	}
	return append(found, Finding{Line: root.Line, Column: root.Column,
		Problem: "what follows the header is not " + what + ", so cloud-init ignores it", Advice: "Correct it; yamlencode() writes valid YAML"})
}

func checkJSONPatch(text string) []Finding {
	const header = "#cloud-config-jsonp"
	start := strings.Index(strings.ToLower(text), header) + len(header)
	var patch []map[string]any
	err := json.Unmarshal([]byte(text[start:]), &patch)
	if err == nil {
		return nil
	}
	f := Finding{Problem: "what follows the header is not a JSON patch, which is a list of operations", Advice: "Correct it; jsonencode() writes valid JSON"}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		f.Line, f.Column = position(text, min(start+int(syntax.Offset), len(text)))
	}
	return []Finding{f}
}

// checkJinja checks what is certain before a template is rendered, which happens
// in the guest: a second header must follow the first line, unless that is
// rendered, too.
func checkJinja(text string) []Finding {
	_, body, _ := strings.Cut(strings.TrimSpace(text), "\n")
	body = strings.TrimSpace(body)
	if strings.HasPrefix(body, "{") {
		return nil
	}
	switch formatOf(body) {
	case unknownFormat, jinja, upstart, cloudConfigArchive:
		return []Finding{{Line: 2, Column: 1, Problem: "the template does not begin with a header that cloud-init uses below ## template: jinja, so cloud-init ignores it", Advice: "Put #cloud-config, or the line with #! of a script, into the second line"}}
	case script, cloudConfig, jsonPatch:
	}
	return nil
}

// isTalos recognises the machine configuration of Talos Linux, which reads the
// same volume, and whose user data has no header.
func isTalos(text string) bool {
	loader, err := yaml.NewLoader(strings.NewReader(text))
	if err != nil {
		return false
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil || errors.Is(err, io.EOF) || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return false
	}
	root := doc.Content[0]
	has := func(key string) bool { return lookUp(root, key) != nil }
	return has("version") && (has("machine") || has("cluster")) || has("apiVersion") && has("kind")
}

var (
	looseHeader = regexp.MustCompile(`(?im)^[ \t]*#+[ \t]*cloud-config(-archive)?[ \t]*\r?$`)
	yamlKey     = regexp.MustCompile(`^\s*(---\s*\n)?\s*["']?[\w-]+["']?\s*:(\s|$)`)
	mimeField   = regexp.MustCompile(`(?i)^(content-type|mime-version|content-transfer-encoding):`)
)

// adviseHeader guesses what was meant by a text whose beginning is unknown.
func adviseHeader(text string) string {
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(trimmed, "\ufeff"):
		return "It begins with a byte order mark, which most editors do not show: save the file without it, or use trimprefix(…, \"\\ufeff\")"
	case isEncoded(trimmed):
		return "It is encoded in base64, which cloud-init does not undo for this kind of seed: give the plain text (for the data source cloudinit_config, set gzip = false and base64_encode = false)"
	case mimeField.MatchString(trimmed):
		return "It looks like a MIME message: cloud-init takes it for one only if a MIME-Version: line stands in its first 4,096 bytes"
	case looseHeader.MatchString(trimmed):
		return "The header must be the very first line, and without a space after the #: move it there"
	case yamlKey.MatchString(trimmed), strings.HasPrefix(trimmed, "{"):
		return "If it is a cloud-config, put #cloud-config into its first line, for example \"#cloud-config\\n${yamlencode({ … })}\""
	}
	return "Begin it with one of " + headerList
}

// isEncoded tells whether a text is base64 of something that cloud-init would
// have accepted.
func isEncoded(text string) bool {
	return encodes(text, func(plain []byte) bool {
		return plain[0] == 0x1f && plain[1] == 0x8b || formatOf(string(plain)) != unknownFormat || mimeField.Match(plain)
	})
}

// encodes tells whether a text is base64 of what begins so.
func encodes(text string, so func(plain []byte) bool) bool {
	text = strings.Join(strings.Fields(text), "")
	head := text[:min(len(text), 400)&^3]
	plain, err := base64.StdEncoding.DecodeString(head)
	return err == nil && len(plain) >= 4 && so(plain)
}

// selfDescribing tells whether a part of this type says by itself what it is, in
// its first line. (cloud-init looks into shell scripts, too, since many a
// cloud-config is labelled as one.)
func selfDescribing(contentType string) bool {
	return slices.Contains([]string{"", "text/plain", "text/x-not-multipart", "text/x-shellscript"}, contentType)
}

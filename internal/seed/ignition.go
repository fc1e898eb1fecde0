package seed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Ignition reads its configuration at the first boot, before there is anything
// to log in to, and a machine whose configuration it refuses stays in its
// emergency shell. So what it would refuse for certain is found here: JSON that
// does not parse, and a version of the specification that it does not know.

// What is known of Ignition's specification: the last version of each family.
// All of them have the patch level 0, and Ignition knows each by its whole text.
var ignitionFamilies = map[int]int{2: 4, 3: 6}

const (
	ignitionAdvice = `Write it with jsonencode({ ignition = { version = "3.4.0" }, … }), or translate it with butane`
	versionAdvice  = `Write one that the guest's Ignition knows, for example "3.4.0" (Ignition 2.15 and later), or "2.3.0" for Ignition 0.x`
)

// CheckIgnition checks an Ignition configuration.
func CheckIgnition(text string) []Finding {
	if found := checkText(text); found != nil {
		return found
	}
	if strings.TrimSpace(text) == "" {
		return finding("it is empty, so Ignition does nothing", ignitionAdvice)
	}
	if advice := mistakenForIgnition(text); advice != "" {
		return finding("it is not JSON, which is all that Ignition reads", advice)
	}
	if found := jsonSyntax(text); found != nil {
		return found
	}
	w := &jsonWalker{text: text, decoder: json.NewDecoder(strings.NewReader(text))}
	w.decoder.UseNumber()
	root := w.value()
	if root.members == nil {
		line, column := position(text, root.offset)
		return []Finding{{Line: line, Column: column, Problem: "it is not a JSON object, which every Ignition configuration is", Advice: ignitionAdvice}}
	}
	return append(w.checkVersion(root), w.found...)
}

// mistakenForIgnition says what to do with a text that is something else.
func mistakenForIgnition(text string) string {
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(trimmed, "{"):
		return ""
	case strings.HasPrefix(trimmed, "\ufeff"):
		return "It begins with a byte order mark, which most editors do not show: save the file without it, or use trimprefix(…, \"\\ufeff\")"
	case butaneKey.MatchString(text):
		return "It looks like Butane, which is what people write: translate it with butane --strict, or the data source ct_config of the provider poseidon/ct"
	case formatOf(trimmed) != unknownFormat:
		return "It is for cloud-init or for Combustion: give it to a libvirt_cloudinit_disk or a libvirt_combustion"
	case encodes(trimmed, func(plain []byte) bool { return plain[0] == '{' }):
		return "It is encoded in base64: give the plain text, with base64decode(…)"
	}
	return ""
}

var butaneKey = regexp.MustCompile(`(?m)^variant:[ \t]*[a-z]`)

// jsonSyntax finds the place where a text is no JSON.
func jsonSyntax(text string) []Finding {
	var raw json.RawMessage
	err := json.Unmarshal([]byte(text), &raw)
	if err == nil {
		return nil
	}
	f := Finding{Problem: "it is not valid JSON", Advice: "Correct it; jsonencode() writes valid JSON"}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at := int(syntax.Offset)
		if at > 0 && at <= len(text) && strings.Contains(err.Error(), "invalid character") {
			at-- // the offset is behind the character
		}
		f.Line, f.Column = position(text, min(at, len(text)))
		f.Problem += ": " + quoted.ReplaceAllString(err.Error(), "")
	}
	return []Finding{f}
}

// jsonNode is a value with its place.
type jsonNode struct {
	offset  int
	token   json.Token           // of a scalar
	members map[string]*jsonNode // of an object; its keys in lower case, as Go compares them
}

// jsonWalker reads a text that is valid.
type jsonWalker struct {
	text    string
	decoder *json.Decoder
	found   []Finding
}

// value reads the next value.
func (w *jsonWalker) value() *jsonNode {
	n := &jsonNode{offset: w.next()}
	token, err := w.decoder.Token()
	if err != nil {
		return n
	}
	n.token = token
	delim, ok := token.(json.Delim)
	if !ok {
		return n
	}
	if delim == '{' {
		n.members = map[string]*jsonNode{}
	}
	for w.decoder.More() {
		if delim == '[' {
			w.value()
			continue
		}
		at := w.next()
		key, err := w.decoder.Token()
		name, isText := key.(string)
		if err != nil || !isText {
			return n
		}
		if n.members[strings.ToLower(name)] != nil && len(w.found) < 10 {
			line, column := position(w.text, at)
			w.found = append(w.found, Finding{Warning: true, Line: line, Column: column,
				Problem: "the key " + shorten(name) + " stands twice in this object, and only one of them counts", Advice: "Remove one, or join their values"})
		}
		n.members[strings.ToLower(name)] = w.value()
	}
	_, err = w.decoder.Token()
	if err != nil && !errors.Is(err, io.EOF) {
		return n
	}
	return n
}

// next returns where the next token begins, in bytes.
func (w *jsonWalker) next() int {
	at := int(w.decoder.InputOffset())
	for at < len(w.text) && strings.IndexByte(" \t\r\n,:", w.text[at]) >= 0 {
		at++
	}
	return at
}

// checkVersion checks ignition.version.
func (w *jsonWalker) checkVersion(root *jsonNode) []Finding {
	at := func(n *jsonNode, warning bool, problem, advice string) []Finding {
		line, column := position(w.text, n.offset)
		return []Finding{{Warning: warning, Line: line, Column: column, Problem: problem, Advice: advice}}
	}
	ignition := root.members["ignition"]
	switch {
	case ignition == nil && root.members["ignitionversion"] != nil:
		return at(root.members["ignitionversion"], false, "it is in version 1 of the specification, which no Ignition reads any more", ignitionAdvice)
	case ignition == nil:
		return finding("it has no ignition.version, without which Ignition refuses it", ignitionAdvice)
	case ignition.members == nil:
		return at(ignition, false, "ignition is not an object", ignitionAdvice)
	}
	version := ignition.members["version"]
	if version == nil {
		return at(ignition, false, "it has no ignition.version, without which Ignition refuses it", versionAdvice)
	}
	text, ok := version.token.(string)
	if !ok {
		return at(version, false, "ignition.version is not a text", `Write it in quotes, with three numbers: "3.4.0"`)
	}
	m := semver.FindStringSubmatch(text)
	if m == nil {
		return at(version, false, fmt.Sprintf("ignition.version is %s, which is no semantic version", shorten(text)), `Write three numbers, for example "3.4.0"`)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	last, known := ignitionFamilies[major]
	switch {
	case !known:
		return at(version, false, fmt.Sprintf("ignition.version is %s; the versions of the specification are 2.x and 3.x", shorten(text)), versionAdvice)
	case m[3] != "0":
		return at(version, false, fmt.Sprintf("ignition.version is %s; every version of the specification ends in .0, and Ignition knows no other", shorten(text)), fmt.Sprintf(`Write "%d.%d.0"`, major, minor))
	case m[4] != "" && m[4] != "-experimental":
		return at(version, false, fmt.Sprintf("ignition.version is %s, which no Ignition knows", shorten(text)), fmt.Sprintf(`Write "%d.%d.0", or "%[1]d.%[2]d.0-experimental"`, major, minor))
	case m[4] != "":
		return at(version, true, fmt.Sprintf("ignition.version is %s: experimental versions are known to few releases of Ignition, and refused by all later ones", shorten(text)), "Use a stable version where that is possible")
	case minor > last:
		return at(version, true, fmt.Sprintf("ignition.version is %s, which is newer than all that this provider knows (%d.%d.0): the guest's Ignition refuses it if it does not know it either", shorten(text), major, last), "")
	}
	return nil
}

var semver = regexp.MustCompile(`^(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})(-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$`)

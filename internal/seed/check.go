package seed

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// A Finding is one thing in an input that a guest would not do as it reads.
// Its texts never quote the input, which may be secret: only names of keys.
type Finding struct {
	// Warning: the guest acts on the input, but not as its author may think.
	// Otherwise the guest would ignore the input, most of them silently.
	Warning bool
	// Line and Column begin at 1; 0 means the input as a whole.
	Line, Column int
	// Part names a part of a multi-part message; Line and Column count in it.
	Part string
	// Problem says what is wrong, Advice what to do.
	Problem, Advice string
}

// String puts place, problem and advice into sentences.
func (f Finding) String() string {
	var place []string
	if f.Part != "" {
		place = append(place, f.Part)
	}
	if f.Line > 0 {
		place = append(place, fmt.Sprintf("line %d, column %d", f.Line, max(f.Column, 1)))
	}
	text := f.Problem + "."
	if len(place) > 0 {
		text = strings.Join(place, ", ") + ": " + text
	}
	if f.Advice != "" {
		text += " " + f.Advice + "."
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// finding is an error about a whole input.
func finding(problem, advice string) []Finding {
	return []Finding{{Problem: problem, Advice: advice}}
}

// checkText finds what no input may contain.
func checkText(text string) []Finding {
	if len(text) > MaxContent {
		return finding(fmt.Sprintf("it is larger than %d MiB", MaxContent>>20), "Let the guest fetch large data by itself")
	}
	if !utf8.ValidString(text) {
		return finding("it is not valid UTF-8", "Save it in UTF-8; what is no text has to be packed, for example with base64encode(), and unpacked by the guest")
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		line, column := position(text, i)
		return []Finding{{Line: line, Column: column, Problem: "it contains a NUL byte, which ends the text for most programs in a guest", Advice: "Remove it"}}
	}
	return nil
}

// position turns a byte offset into a line and a column.
func position(text string, offset int) (line, column int) {
	before := text[:offset]
	line = 1 + strings.Count(before, "\n")
	return line, 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

// CheckName tells whether a seed may have this name: anything that is not empty.
func CheckName(name string) []Finding {
	if strings.TrimSpace(name) == "" {
		return finding("it is empty", "Give the seed a name that is unique on this machine: the name of its image begins with it")
	}
	return nil
}

// CheckMetaData checks a meta-data file: a YAML mapping (JSON is YAML) with an
// instance-id.
func CheckMetaData(text string) []Finding {
	if found := checkText(text); found != nil {
		return found
	}
	root, found := parseYAML(text)
	if root == nil && len(found) > 0 {
		return found
	}
	const advice = `Set instance-id to a string that is unique to this machine, for example yamlencode({ instance-id = "web-1" })`
	if root == nil || root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return append(found, Finding{Problem: "it is empty, so it has no instance-id", Advice: advice})
	}
	if root.Kind != yaml.MappingNode {
		return append(found, Finding{Line: root.Line, Column: root.Column, Problem: "it is not a mapping of keys to values, so cloud-init ignores it", Advice: advice})
	}
	id := lookUp(root, "instance-id")
	switch {
	case id == nil:
		found = append(found, Finding{Problem: "it has no instance-id, by which cloud-init tells a new machine from one that it has set up already", Advice: advice})
	case id.Kind == yaml.AliasNode:
	case id.Kind != yaml.ScalarNode || id.Tag == "!!null" || strings.TrimSpace(id.Value) == "":
		found = append(found, Finding{Line: id.Line, Column: id.Column, Problem: "its instance-id is empty, or not a plain value", Advice: advice})
	}
	return found
}

// CheckNetworkConfig checks a network-config file: version 1 or 2 of cloud-init's
// format, with or without "network:" above it. An empty one is fine: cloud-init
// then uses DHCP.
func CheckNetworkConfig(text string) []Finding {
	if found := checkText(text); found != nil {
		return found
	}
	root, found := parseYAML(text)
	if root == nil || root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return found
	}
	at := func(n *yaml.Node, problem, advice string) []Finding {
		return append(found, Finding{Line: n.Line, Column: n.Column, Problem: problem, Advice: advice})
	}
	if root.Kind != yaml.MappingNode {
		return at(root, "it is not a mapping of keys to values, so cloud-init ignores it", "Begin with version: 2 and ethernets:, or with version: 1 and config:")
	}
	config := root
	if inner := lookUp(root, "network"); inner != nil {
		if config = resolve(inner); config.Kind != yaml.MappingNode {
			return at(inner, "what stands below network is not a mapping of keys to values", "Put version: 2 and ethernets: there, or version: 1 and config:")
		}
	}
	if c := lookUp(config, "config"); c != nil && resolve(c).Value == "disabled" {
		return found
	}
	version := lookUp(config, "version")
	if version == nil {
		return at(config, "it has no version, so cloud-init does not accept it", "Add version: 2 (netplan's format) or version: 1")
	}
	switch v := resolve(version); {
	case v.Kind == yaml.ScalarNode && v.Tag == "!!int" && v.Value == "2":
	case v.Kind == yaml.ScalarNode && v.Tag == "!!int" && v.Value == "1":
		if c := lookUp(config, "config"); c == nil || resolve(c).Kind != yaml.SequenceNode {
			return at(config, "version 1 needs a list called config, and there is none", "Add config: with a list of interfaces, or write it in version 2")
		}
	default:
		return at(version, "its version is neither the number 1 nor the number 2", "Write version: 2 (netplan's format) or version: 1, without quotes")
	}
	return found
}

package domain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// extraAspect is XML that the schema has no attribute for, piece by piece, each
// known by its place. What a piece is, nobody here knows; so it belongs to the
// definition, and the guest takes it at its next start.
var extraAspect = &aspect{
	name: "extra_xml",
	owns: []string{extraXML},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "The provider does not know what this XML does. The guest takes it from the definition when it starts."
	},
}

const extraXML = "extra_xml"

func extraType() *tree.Attribute {
	piece := func(name, text string) *tree.Attribute {
		return &tree.Attribute{Name: name, Type: tree.StringType, Optional: true, Computed: true, Description: text}
	}
	return &tree.Attribute{
		Name: extraXML, Optional: true, Computed: true,
		Description: "XML of the domain for which there is no attribute, as a newer libvirt may have it. It is compared, applied, held and withdrawn like everything else; what libvirt does not keep is an error. It is no place for passwords: its text stands in plans, messages and the state.",
		Type: tree.ListOf(tree.ObjectOf(
			piece("path", "Where it stands: the path of an element, as in `/domain/devices/rng[1]/backend/log`, or of an attribute, as in `/domain/devices/disk[target/@dev='vda']/driver/@novel`. The element around it must be there, and the only one: conditions in brackets choose it (a number, `[@name='value']`, `[child='value']`, `[child/@name='value']`)."),
			piece("xml", "The element with all that is in it, or the text of the attribute."),
		)),
	}
}

// extras are the pieces that trees name, by their places.
func extras(trees ...tree.Value) (places []string) {
	seen := map[string]bool{}
	for _, t := range trees {
		for _, e := range t.Attr(extraXML).Elems() {
			if path := e.Attr("path"); path.IsKnown() && !seen[path.Str()] {
				seen[path.Str()] = true
				places = append(places, path.Str())
			}
		}
	}
	return places
}

// withExtras adds to a definition what its document has at the places. A place
// that a document cannot answer for has nothing.
func withExtras(definition tree.Value, xml string, places []string) tree.Value {
	var all []tree.Value
	for _, text := range places {
		place, err := spec.Domain().ParsePlace(text)
		if err != nil {
			continue
		}
		if value, found, err := place.Read(xml); err == nil && found {
			all = append(all, tree.ObjectValue(map[string]tree.Value{"path": tree.StringValue(text), "xml": tree.StringValue(value)}))
		}
	}
	if len(all) == 0 {
		return definition.With(extraXML, tree.NullValue)
	}
	return definition.With(extraXML, tree.ListValue(all))
}

// piecesOf are the pieces of a definition by their places.
func piecesOf(definition tree.Value) map[string]tree.Value {
	out := map[string]tree.Value{}
	for _, e := range definition.Attr(extraXML).Elems() {
		out[e.Attr("path").Str()] = e.Attr("xml")
	}
	return out
}

// writeExtras changes the pieces of a document from those of one definition to
// those of another. edit changes all else of it, in between: what is there is
// found as it was, before other elements move, and what is new goes to its place
// in what has become of them.
func writeExtras(xml string, before, wanted tree.Value, edit func(xml string) (string, error)) (string, error) {
	was, becomes, original := piecesOf(before), piecesOf(wanted), xml
	write := func(text string, value *string) error {
		place, err := spec.Domain().ParsePlace(text)
		if err == nil {
			xml, err = place.Write(xml, value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", extraXML, err)
		}
		return nil
	}
	for _, text := range extras(before) {
		var value *string
		if now, stays := becomes[text]; stays {
			if sameExtra(now, was[text]) || tree.Equal(now, was[text]) {
				continue
			}
			text := now.Str()
			value = &text
		}
		if err := write(text, value); err != nil {
			return "", err
		}
	}
	xml, err := edit(xml)
	if err != nil {
		return "", err
	}
	for _, text := range extras(wanted) {
		if _, known := was[text]; known {
			continue
		}
		value := becomes[text].Str()
		if err := write(text, &value); err != nil {
			return "", err
		}
	}
	return xml, refuseRecount(original, xml, extras(before, wanted))
}

// refuseRecount refuses an update by which a number in a place would come to
// mean another element.
func refuseRecount(original, edited string, places []string) error {
	for _, text := range places {
		place, err := spec.Domain().ParsePlace(text)
		if err != nil {
			return err
		}
		before, err := place.Counts(original)
		if err != nil {
			return err
		}
		after, err := place.Counts(edited)
		if err != nil {
			return err
		}
		if !slices.Equal(before, after) {
			return fmt.Errorf("%s: %s counts elements, and this update changes how many there are. Choose the element by a value (as in disk[target/@dev='vda']), or make the two changes one after the other", extraXML, text)
		}
	}
	return nil
}

// sameExtra compares pieces by what they mean as XML.
func sameExtra(a, b tree.Value) bool { return spec.SameXML(a.Str(), b.Str()) }

// validateExtras checks what can be known without the host.
func validateExtras(config tree.Value) (problems []kind.Problem) {
	refuse := func(i int, attr, summary, detail string) {
		problems = append(problems, kind.Problem{Path: tree.Root.Attr(extraXML).Elem(i, "").Attr(attr), Summary: summary, Detail: detail})
	}
	seen := map[string]bool{}
	for i, e := range config.Attr(extraXML).Elems() {
		path, xml := e.Attr("path"), e.Attr("xml")
		if path.IsNull() || xml.IsNull() {
			refuse(i, "path", "A piece of extra_xml is incomplete", "Each has a path and xml.")
			continue
		}
		if !path.IsKnown() {
			continue
		}
		place, err := spec.Domain().ParsePlace(path.Str())
		if err != nil {
			refuse(i, "path", "Invalid path of extra_xml", fmt.Sprintf("%q: %s. Write it as /domain/devices/rng[1]/backend/log or /domain/os/loader/@novel.", path.Str(), err))
			continue
		}
		attr := spec.Domain().AttributeFor(place)
		if strings.HasPrefix(path.Str(), "/domain/metadata") {
			attr = "metadata.xml" // it holds whatever is in there
		}
		if attr != "" {
			refuse(i, "path", "The schema has an attribute for this", fmt.Sprintf("%s is in the schema: write %s. Two ways to say one thing would contradict each other.", path.Str(), attr))
		}
		if seen[path.Str()] {
			refuse(i, "path", "Two pieces of extra_xml have one path", fmt.Sprintf("%s can have one value only.", path.Str()))
		}
		seen[path.Str()] = true
		if !xml.IsKnown() || place.Tag() == "" {
			continue
		}
		if tag, err := spec.TagOf(xml.Str()); err != nil || tag != place.Tag() {
			refuse(i, "xml", "Invalid XML in extra_xml", fmt.Sprintf("%s stands for one element <%s>, and xml is not that (%s).", path.Str(), place.Tag(), orTag(tag, err)))
		}
	}
	return problems
}

func orTag(tag string, err error) string {
	if err != nil {
		return err.Error()
	}
	return "it is <" + tag + ">"
}

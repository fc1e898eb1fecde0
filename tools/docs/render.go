package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// shared is the number of attributes below an object from which on a second object of the same
// shape is not printed again.
const shared = 5

const howToRead = "An attribute that is not set is not managed, unless it is required; *read only* ones are set by " +
	"the provider. `XML` names the element or the `@attribute` that it stands for, below that of the " +
	"enclosing object. An object with the same attributes as one that is already described refers to it.\n"

// render writes the attributes of a resource as nested lists. One level of headings per
// top-level object keeps the page navigable; equal objects are written once, since the XML of a
// domain repeats a few shapes (addresses, character devices, sources of disks) many times.
func render(block Object) (string, error) {
	r := renderer{times: map[string]int{}, first: map[string]string{}}
	for _, a := range block.Attributes {
		if a.Nested != nil {
			if err := r.count(a); err != nil {
				return "", err
			}
		}
	}
	var b strings.Builder
	b.WriteString(howToRead)
	b.WriteString("\n")
	var objects []string
	for _, name := range order(block) {
		a, label := block.Attributes[name], "`"+name+"`"
		if a.Nested != nil {
			objects = append(objects, name)
			label = "[" + label + "](#" + anchor(name) + ")"
		}
		line, err := head(a, "", label)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		b.WriteString("- " + line + "\n")
	}
	for _, name := range objects {
		a := block.Attributes[name]
		fmt.Fprintf(&b, "\n<a id=%q></a>\n### `%s`\n\n", anchor(name), name)
		if err := r.children(&b, a, name, ""); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

const howToReadLike = "*read only* attributes are told by the host. What is below one that a resource has too is described there; here all of it is *read only*.\n"

// renderLike writes the attributes of a data source that shows what a resource manages. An
// object whose attributes have no descriptions of their own refers to that of the resource.
func renderLike(block, resource Object, name string) (string, error) {
	page := "../resources/" + strings.TrimPrefix(name, short+"_") + ".md"
	var b strings.Builder
	b.WriteString(howToReadLike + "\n")
	own := Object{Attributes: map[string]*Attribute{}}
	for _, name := range order(block) {
		a, of := block.Attributes[name], resource.Attributes[name]
		if a.Nested != nil && of != nil && of.Nested != nil && undescribed(a.Nested) {
			line, err := head(&Attribute{Nested: a.Nested, Computed: true, Description: a.Description}, "", fmt.Sprintf("[`%s`](%s#%s)", name, page, anchor(name)))
			if err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			b.WriteString("- " + line + "\n")
			continue
		}
		own.Attributes[name] = a
	}
	text, err := render(own)
	return b.String() + strings.TrimPrefix(text, howToRead+"\n"), err
}

// undescribed says whether nothing right below an object has a description.
func undescribed(o *Object) bool {
	for _, a := range o.Attributes {
		if a.Description != "" {
			return false
		}
	}
	return true
}

// A renderer knows which objects are alike. A shape is what shapeOf returns.
type renderer struct {
	times map[string]int    // how often a shape occurs in the whole resource
	first map[string]string // shape → path of the first object of it that was written
}

// count fills times for an object and all below it.
func (r *renderer) count(a *Attribute) error {
	shape, size, err := shapeOf(a)
	if err != nil {
		return err
	}
	if size >= shared {
		r.times[shape]++
	}
	for _, child := range a.Nested.Attributes {
		if child.Nested != nil {
			if err := r.count(child); err != nil {
				return err
			}
		}
	}
	return nil
}

// children writes the attributes of a nested object, or a reference to an object with the same.
func (r *renderer) children(b *strings.Builder, a *Attribute, path, indent string) error {
	shape, _, err := shapeOf(a)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if r.times[shape] > 1 {
		if first, again := r.first[shape]; again {
			fmt.Fprintf(b, "%s- as [`%s`](#%s)\n", indent, first, anchor(first))
			return nil
		}
		r.first[shape] = path
	}
	for _, name := range order(*a.Nested) {
		child, below, label := a.Nested.Attributes[name], path+"."+name, "`"+name+"`"
		if child.Nested != nil {
			shape, _, err := shapeOf(child)
			if err != nil {
				return fmt.Errorf("%s: %w", below, err)
			}
			if _, again := r.first[shape]; r.times[shape] > 1 && !again {
				label = fmt.Sprintf("<a id=%q></a>", anchor(below)) + label
			}
		}
		line, err := head(child, xmlOf(a), label)
		if err != nil {
			return fmt.Errorf("%s: %w", below, err)
		}
		b.WriteString(indent + "- " + line + "\n")
		if child.Nested != nil {
			if err := r.children(b, child, below, indent+"  "); err != nil {
				return err
			}
		}
	}
	return nil
}

// shapeOf returns a text that two objects have in common if and only if their attributes are
// written alike, and how many there are at all depths.
func shapeOf(a *Attribute) (string, int, error) {
	var b strings.Builder
	size := 0
	for _, name := range order(*a.Nested) {
		child := a.Nested.Attributes[name]
		line, err := head(child, xmlOf(a), name)
		if err != nil {
			return "", 0, fmt.Errorf("%s: %w", name, err)
		}
		size++
		b.WriteString(line + "\n")
		if child.Nested != nil {
			shape, below, err := shapeOf(child)
			if err != nil {
				return "", 0, fmt.Errorf("%s: %w", name, err)
			}
			size += below
			b.WriteString("{\n" + shape + "}\n")
		}
	}
	return b.String(), size, nil
}

// order lists the attributes: required ones first, then the others, each by name.
func order(o Object) []string {
	return slices.SortedFunc(maps.Keys(o.Attributes), func(a, b string) int {
		if x, y := o.Attributes[a].Required, o.Attributes[b].Required; x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
}

// head is the line of one attribute without its children: label, type, marks, description.
func head(a *Attribute, parentXML, label string) (string, error) {
	kind, err := a.typeName()
	if err != nil {
		return "", err
	}
	marks := []string{kind}
	for _, mark := range []struct {
		set  bool
		text string
	}{
		{a.Required, "**required**"},
		{a.Computed && !a.Optional, "*read only*"},
		{a.Sensitive, "*sensitive*"},
		{a.WriteOnly, "*write only*"},
		{a.Deprecated, "*deprecated*"},
	} {
		if mark.set {
			marks = append(marks, mark.text)
		}
	}
	line := label + " " + strings.Join(marks, ", ")
	if text := shorten(strings.Join(strings.Fields(a.Description), " "), parentXML); text != "" {
		line += ". " + text
	}
	return line, nil
}

var xmlPlace = regexp.MustCompile("XML: `(/[^`]*)`")

// xmlOf is the place in the XML that the description of an attribute names, "" if it names none.
func xmlOf(a *Attribute) string {
	match := xmlPlace.FindStringSubmatch(a.Description)
	if match == nil {
		return ""
	}
	return match[1]
}

// shorten makes the place in the XML relative to that of the enclosing object.
func shorten(text, parentXML string) string {
	if parentXML == "" {
		return text
	}
	return strings.ReplaceAll(text, "XML: `"+strings.TrimSuffix(parentXML, "/")+"/", "XML: `")
}

func anchor(path string) string { return "nested--" + strings.ReplaceAll(path, ".", "--") }

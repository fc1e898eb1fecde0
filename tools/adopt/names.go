package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

// identifier makes a name of the configuration language of a text: lower case,
// words joined by "_". The fallback stands in front of what begins with a digit,
// and for what has no letter that can stay.
func identifier(text, fallback string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	name := strings.TrimRight(b.String(), "_")
	switch {
	case name == "":
		return fallback
	case name[0] >= '0' && name[0] <= '9':
		return fallback + "_" + name
	}
	return name
}

// names gives each text a name of its own.
type names map[string]bool

// take returns the first of the wishes that is free, else the last one with a
// number.
func (n names) take(wishes ...string) string {
	for _, wish := range wishes {
		if !n[wish] {
			n[wish] = true
			return wish
		}
	}
	last := wishes[len(wishes)-1]
	for i := 2; ; i++ {
		if name := fmt.Sprintf("%s_%d", last, i); !n[name] {
			n[name] = true
			return name
		}
	}
}

// imageSuffixes say nothing that a name needs.
var imageSuffixes = []string{".qcow2", ".raw", ".img", ".iso", ".vmdk", ".vdi"}

// label names the objects of one kind. Volumes that differ in their suffixes or
// pools alone are told apart by these.
func label(objects []*object) {
	taken := map[string]names{}
	for _, o := range objects {
		if taken[o.kind] == nil {
			taken[o.kind] = names{}
		}
		if o.kind != kindVolume {
			o.label = taken[o.kind].take(identifier(o.name, o.kind))
			continue
		}
		short := o.name
		if suffix := path.Ext(o.name); slices.Contains(imageSuffixes, suffix) {
			short = strings.TrimSuffix(o.name, suffix)
		}
		o.label = taken[o.kind].take(identifier(short, o.kind), identifier(o.name, o.kind), identifier(o.pool+"_"+o.name, o.kind))
	}
}

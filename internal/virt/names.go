package virt

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// named is the name of a value of one of libvirt's enumerations, which newer
// libvirts extend.
func named[E ~int](names map[E]string, e E) string {
	if name, ok := names[e]; ok {
		return name
	}
	return fmt.Sprintf("state %d", int(e))
}

// object is what this package itself reads from documents.
type object struct {
	Name   string `xml:"name"`
	Target string `xml:"target>path"`
}

func objectIn(document string) (o object) {
	if err := xml.Unmarshal([]byte(document), &o); err != nil {
		return object{}
	}
	return o
}

// nameIn finds the name of the object that a document defines. It is "" for a
// document that libvirt will refuse.
func nameIn(document string) string { return strings.TrimSpace(objectIn(document).Name) }

// targetIn finds the target path of a pool, "" if it has none.
func targetIn(document string) string { return strings.TrimSpace(objectIn(document).Target) }

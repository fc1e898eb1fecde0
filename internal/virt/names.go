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

// nameIn finds the name of the object that a document defines, for messages. It
// is "" for a document that libvirt will refuse.
func nameIn(document string) string {
	var object struct {
		Name string `xml:"name"`
	}
	if err := xml.Unmarshal([]byte(document), &object); err != nil {
		return ""
	}
	return strings.TrimSpace(object.Name)
}

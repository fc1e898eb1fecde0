package network

import (
	"fmt"

	"github.com/beevik/etree"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A section is a list that libvirt changes in the started network and in the
// definition with one call.
type section struct {
	pattern string // of the list
	id      virt.NetworkSection
	xml     string // path of the elements below the network, or below <ip> if inIP
	inIP    bool
	modify  bool // libvirt can change an element in place; else it is deleted and added
}

var sections = []*section{
	{"ips[].dhcp.hosts", virt.SectionDHCPHost, "dhcp/host", true, true},
	{"ips[].dhcp.ranges", virt.SectionDHCPRange, "dhcp/range", true, false},
	{"dns.host", virt.SectionDNSHost, "dns/host", false, false},
	{"dns.tx_ts", virt.SectionDNSTXT, "dns/txt", false, false},
	{"dns.sr_vs", virt.SectionDNSSRV, "dns/srv", false, false},
	{"port_groups", virt.SectionPortGroup, "portgroup", false, true},
}

// sectionOf finds the section of a path, nil if it has none.
func sectionOf(pattern string) *section {
	for _, s := range sections {
		if len(pattern) >= len(s.pattern) && pattern[:len(s.pattern)] == s.pattern &&
			(len(pattern) == len(s.pattern) || pattern[len(s.pattern)] == '[') {
			return s
		}
	}
	return nil
}

// command is one call of virNetworkUpdate.
type command struct {
	do      virt.NetworkCommand
	section *section
	parent  int // index of the <ip> element, -1
	xml     string
	undo    *command
}

// commands lists the calls that turn the sections of one definition into those
// of another. Deletions come first, so that an address or a name is free when
// another element takes it.
func (k *Kind) commands(before, wanted tree.Value) ([]command, error) {
	var sides [2]*etree.Element
	for i, v := range []tree.Value{before, wanted} {
		xml, err := spec.Network().Encode(v)
		if err != nil {
			return nil, err
		}
		doc := etree.NewDocument()
		if err := doc.ReadFromString(xml); err != nil {
			return nil, fmt.Errorf("read the XML of a network: %w", err)
		}
		sides[i] = doc.Root()
	}
	var deletes, others []command
	for _, s := range sections {
		if !s.inIP {
			d, o := s.compare(-1, sides[0].FindElements(s.xml), sides[1].FindElements(s.xml))
			deletes, others = append(deletes, d...), append(others, o...)
			continue
		}
		was, now := sides[0].SelectElements("ip"), sides[1].SelectElements("ip")
		for i := 0; i < min(len(was), len(now)); i++ {
			if was[i].SelectAttrValue("address", "") != now[i].SelectAttrValue("address", "") {
				continue // another subnet: that is the definition's
			}
			d, o := s.compare(i, was[i].FindElements(s.xml), now[i].FindElements(s.xml))
			deletes, others = append(deletes, d...), append(others, o...)
		}
	}
	return append(deletes, others...), nil
}

// compare lists what turns one list of elements into another.
func (s *section) compare(parent int, was, now []*etree.Element) (deletes, others []command) {
	make1 := func(do virt.NetworkCommand, xml string, undo virt.NetworkCommand, undoXML string) command {
		return command{do, s, parent, xml, &command{undo, s, parent, undoXML, nil}}
	}
	old := map[string]string{}
	for _, e := range was {
		old[elementKey(e)] = text(e)
	}
	fresh := map[string]bool{}
	for _, e := range now {
		id, xml := elementKey(e), text(e)
		fresh[id] = true
		before, there := old[id]
		switch {
		case there && before == xml:
		case there && s.modify:
			others = append(others, make1(virt.NetworkModify, xml, virt.NetworkModify, before))
		case there:
			deletes = append(deletes, make1(virt.NetworkDelete, before, virt.NetworkAddLast, before))
			others = append(others, make1(virt.NetworkAddLast, xml, virt.NetworkDelete, xml))
		default:
			others = append(others, make1(virt.NetworkAddLast, xml, virt.NetworkDelete, xml))
		}
	}
	for _, e := range was {
		if xml := text(e); !fresh[elementKey(e)] {
			deletes = append(deletes, make1(virt.NetworkDelete, xml, virt.NetworkAddLast, xml))
		}
	}
	return deletes, others
}

// elementKey is what libvirt knows an element of a section by.
func elementKey(e *etree.Element) string {
	for _, attr := range []string{"mac", "id", "name", "ip", "start"} {
		if v := e.SelectAttrValue(attr, ""); v != "" && !(e.Tag == "range" && attr == "id") {
			return attr + "=" + v
		}
	}
	return text(e)
}

func text(e *etree.Element) string {
	doc := etree.NewDocument()
	doc.SetRoot(e.Copy())
	doc.Unindent()
	s, err := doc.WriteToString()
	if err != nil {
		return ""
	}
	return s
}

package domain

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func TestWhatSomebodyWroteMeanwhile(t *testing.T) {
	ctx := context.Background()
	h := virt.NewHost(virt.Options{URI: "test:///default"})
	if err := h.Connect(ctx); err != nil {
		t.Skip("libvirt library missing: " + err.Error())
	}
	t.Cleanup(func() { _ = h.Close() })
	k := New(func() *virt.Host { return h })
	document := func(uuid, title string) string {
		return "<domain type='test'><name>meanwhile</name>" + uuid + "<title>" + title + "</title><memory>1024</memory><os><type>hvm</type></os></domain>"
	}
	dom, err := h.DefineDomain(ctx, document("", "old"), virt.DefineFlags{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dom.Undefine(ctx, virt.UndefineFlags{}) })
	uuid := "<uuid>" + dom.UUID() + "</uuid>"
	write := func(title string) {
		t.Helper()
		if _, err := h.DefineDomain(ctx, document(uuid, title), virt.DefineFlags{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what          string
		before, after string // titles that somebody writes before the update writes its own, and after it
		refused       bool
		inForce       string
		says          string
	}{
		{"nobody", "", "", false, "old", "The previous definition is in force again"},
		{"somebody before", "theirs", "", true, "theirs", "plan again"},
		{"somebody after", "", "theirs", false, "theirs", "somebody changed the definition of meanwhile"},
		{"somebody who put the old one back", "", "old", false, "old", "The previous definition is in force again"},
	} {
		write("old")
		a := &apply{k: k, before: &sight{dom: dom, name: "meanwhile", persistent: true}, document: document(uuid, "new")}
		if a.before.xml, err = a.definitionNow(ctx); err != nil {
			t.Fatal(err)
		}
		if c.before != "" {
			write(c.before)
		}
		err := a.define(ctx)
		if (err != nil) != c.refused {
			t.Fatalf("%s: got %v", c.what, err)
		}
		if !c.refused {
			if now, _ := a.definitionNow(ctx); !strings.Contains(now, "<title>new</title>") {
				t.Errorf("%s: not written:\n%s", c.what, now)
			}
			err = errors.New("a step failed")
		}
		if c.after != "" {
			write(c.after)
		}
		err = a.RollBack(ctx, err, "virsh dumpxml")
		if now, _ := a.definitionNow(ctx); !strings.Contains(now, "<title>"+c.inForce+"</title>") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v\nand in force is\n%s", c.what, err, now)
		}
	}
}

func TestAlike(t *testing.T) {
	const bare = "<domain type='kvm'><name>d</name><memory>1024</memory><os><type>hvm</type></os></domain>"
	for what, c := range map[string]struct {
		from, to string
		want     bool
	}{
		"the same":                     {"", "", true},
		"another name":                 {"<name>d", "<name>e", true},
		"variables that a start makes": {"<os><type>hvm</type>", "<os><type>hvm</type><loader readonly='yes'>/code</loader><nvram template='/t'>/vars</nvram>", true},
		"another size":                 {"1024", "2048", false},
		"something comes":              {"<os>", "<title>x</title><os>", false},
		"no document":                  {bare, "<", false},
	} {
		if got := alike(bare, strings.Replace(bare, c.from, c.to, 1)); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

package virt

import (
	"strings"
	"testing"

	"libvirt.org/go/libvirt"
)

func TestTooOldAtEitherEnd(t *testing.T) {
	library, err := libvirt.GetVersion()
	if err != nil {
		t.Skip("libvirt library missing: " + err.Error())
	}
	for name, c := range map[string]struct {
		daemon, since Version
		text          string
	}{
		"both have it":          {9000000, 1000000, ""},
		"just":                  {4004000, 4004000, ""},
		"the host has it not":   {4003000, 4004000, "lifting needs libvirt 4.4.0 on the host, which has 4.3.0"},
		"here is too old":       {99000000, 99000000, "lifting needs libvirt 99.0.0 where the provider runs, and the library there is " + Version(library).String()},
		"neither is new enough": {9000000, 99000000, "where the provider runs"},
	} {
		err := (&session{daemon: c.daemon}).needs(c.since, "lifting")
		if c.text == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

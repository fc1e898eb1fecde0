package network

import (
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func sightOf(t *testing.T, xml string) *sight {
	t.Helper()
	raw, err := spec.Network().Decode(xml)
	if err != nil {
		t.Fatal(err)
	}
	return &sight{name: raw.Attr("name").Str(), raw: raw}
}

func TestHasIsByNetworkAndByItsBridge(t *testing.T) {
	const nics = `<domain type='kvm'><name>m</name><devices>
<interface type='network'><mac address='52:54:00:00:00:01'/><source network='lan'/></interface>
<interface type='bridge'><mac address='52:54:00:00:00:02'/><source bridge='virbr7'/></interface>
<interface type='direct'><mac address='52:54:00:00:00:03'/><source dev='virbr7' mode='bridge'/></interface>
<interface type='network'><mac address='52:54:00:00:00:04'/><source network='wan'/></interface>
<interface type='user'><mac address='52:54:00:00:00:05'/></interface></devices></domain>`
	found, err := plugsIn(nics, plug{domain: "m", running: true})
	if err != nil {
		t.Fatal(err)
	}
	for xml, want := range map[string]string{
		`<network><name>lan</name><forward mode='nat'/><bridge name='virbr7'/></network>`: "1 2 3",
		`<network><name>lan</name><bridge name='virbr8'/></network>`:                      "1",
		// The bridge is the host's, and stays.
		`<network><name>lan</name><forward mode='bridge'/><bridge name='virbr7'/></network>`: "1",
		`<network><name>none</name><forward mode='hostdev'/></network>`:                      "",
	} {
		s := sightOf(t, xml)
		var has []string
		for _, p := range found {
			if s.has(p) {
				has = append(has, p.mac[len(p.mac)-1:])
			}
		}
		if got := strings.Join(has, " "); got != want {
			t.Errorf("%s has %q, not %q", xml, got, want)
		}
		if err := refuseAttached(s, found, "stop"); (err == nil) != (want == "") {
			t.Errorf("%s: %v", xml, err)
		}
	}
}

func TestWarnOfDefined(t *testing.T) {
	s := sightOf(t, `<network><name>lan</name><bridge name='virbr7'/></network>`)
	if w := warnOfDefined(s, []plug{{domain: "runs", running: true, network: "lan"}, {domain: "other", network: "wan"}}); w != nil {
		t.Errorf("got %v", w)
	}
	w := warnOfDefined(s, []plug{{domain: "b", network: "lan"}, {domain: "b", device: "virbr7"}, {domain: "a", autostart: true, network: "lan"}})
	if len(w) != 1 || !strings.Contains(w[0].Summary, `"lan"`) || !strings.Contains(w[0].Detail, "defined: a (started with the host), b. ") {
		t.Errorf("got %v", w)
	}
}

func TestLineOfLease(t *testing.T) {
	for want, l := range map[string]virt.Lease{
		"52:54:00:00:00:01 (db) has 10.0.0.5, until 2026-01-02T03:04:05Z": {MAC: "52:54:00:00:00:01", Hostname: "db", IP: "10.0.0.5", Expires: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		"52:54:00:00:00:01 has 10.0.0.5, never expires":                   {MAC: "52:54:00:00:00:01", IP: "10.0.0.5"},
	} {
		if got := lineOf(l); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

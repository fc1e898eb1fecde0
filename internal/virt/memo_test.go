package virt

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemo(t *testing.T) {
	asked := 0
	answer := func(err error) func() (int, error) {
		return func() (int, error) { asked++; return asked, err }
	}
	libvirts := &Error{Op: "list networks", Code: ErrAccessDenied}
	steps := []struct {
		name  string
		epoch uint64
		old   bool // the moment is over
		err   error
		want  int
	}{
		{"asks first", 0, false, nil, 1},
		{"keeps", 0, false, nil, 1},
		{"asks again after a write", 1, false, nil, 2},
		{"keeps that", 1, false, nil, 2},
		{"asks again after a moment", 1, true, libvirts, 3},
		{"keeps an error that is libvirt's answer", 1, false, libvirts, 3},
		{"asks again", 2, false, &LostError{Err: libvirts}, 4},
		{"does not keep a lost connection", 2, false, context.Canceled, 5},
		{"nor that somebody gave up", 2, false, nil, 6},
	}
	var m memo[int]
	for _, s := range steps {
		if s.old {
			m.until = time.Now()
		}
		if n, err := m.get(s.epoch, answer(s.err)); n != s.want || s.err != nil && err == nil {
			t.Errorf("%s: got %d, %v", s.name, n, err)
		}
	}
	lasting := memo[int]{lasting: true}
	if _, err := lasting.get(0, answer(libvirts)); err == nil || lasting.until.After(time.Now().Add(time.Minute)) {
		t.Errorf("an error lasts: %v, until %s", err, lasting.until)
	}
	lasting.until = time.Now()
	if _, err := lasting.get(0, answer(nil)); err != nil || lasting.until.Before(time.Now().Add(time.Hour)) {
		t.Errorf("an answer does not last: %v, until %s", err, lasting.until)
	}
}

func TestMemosAreApart(t *testing.T) {
	var m memos[string, string]
	for range 2 {
		for _, key := range []string{"a", "b"} {
			if got, err := m.get(key, 0, func() (string, error) { return key, nil }); got != key || err != nil {
				t.Errorf("%s: got %q, %v", key, got, err)
			}
		}
	}
}

func TestLocalSocket(t *testing.T) {
	for uri, want := range map[string]bool{
		"qemu:///system": true, "qemu+unix:///system?socket=/a/b": true, "test:///default": true, "qemu:///session": true,
		"qemu://h/system": false, "qemu+ssh://h/system": false, "qemu+tls://h/system": false, "qemu+tcp://localhost/system": false,
		"qemu+ssh:///system": false, "qemu+ext:///system?command=/x": false, "qemu+libssh2://h/system?socket=/a": false, "%zz": false,
	} {
		if got := hasLocalSocket(uri); got != want {
			t.Errorf("%s: %v", uri, got)
		}
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"host", "host", true}, {"Host.example.org", "host", true}, {"host", "host.example.org", true},
		{"host", "hostess", false}, {"host.a", "host.b", false}, {"", "", false}, {"host", "", false},
	} {
		if got := sameHost(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

// image2 is the head of a qcow2 image of that version, with the name of its
// backing file.
func image2(version uint32, backing, format string) []byte {
	head := make([]byte, 512)
	copy(head, "QFI\xfb")
	binary.BigEndian.PutUint32(head[4:], version)
	at := 72
	if version == 3 {
		at = 104
		binary.BigEndian.PutUint32(head[100:], 104)
	}
	extension := func(kind uint32, text string) {
		binary.BigEndian.PutUint32(head[at:], kind)
		binary.BigEndian.PutUint32(head[at+4:], uint32(len(text)))
		at += 8 + copy(head[at+8:], text)
		at = (at + 7) &^ 7
	}
	extension(0x6803f857, "a table of features") // comes first, and is no multiple of 8
	if format != "" {
		extension(0xe2792aca, format)
	}
	at += 8
	if backing != "" {
		binary.BigEndian.PutUint64(head[8:], uint64(at))
		binary.BigEndian.PutUint32(head[16:], uint32(len(backing)))
		copy(head[at:], backing)
	}
	return head
}

func TestOverlay(t *testing.T) {
	far := image2(3, "/base", "raw")
	binary.BigEndian.PutUint64(far[8:], 1<<63)
	huge := image2(3, "/base", "raw")
	binary.BigEndian.PutUint32(huge[16:], 1<<31)
	for name, c := range map[string]struct {
		head []byte
		want layer
		ok   bool
	}{
		"version 3":                {image2(3, "/pool/base.qcow2", "qcow2"), layer{"/pool/base.qcow2", "qcow2"}, true},
		"version 2":                {image2(2, "/pool/base", "raw"), layer{"/pool/base", "raw"}, true},
		"no format":                {image2(3, "/pool/base", ""), layer{"/pool/base", ""}, true},
		"relative":                 {image2(3, "../base", "raw"), layer{"/base", "raw"}, true},
		"a prefix":                 {image2(3, "file:/b", "raw"), layer{"/b", "raw"}, true},
		"a colon in a name":        {image2(3, "/a:b", "raw"), layer{"/a:b", "raw"}, true},
		"whole":                    {image2(3, "", ""), layer{}, true},
		"JSON":                     {image2(3, `json:{"file.filename":"/a"}`, "qcow2"), layer{"/a", "qcow2"}, true},
		"nested JSON":              {image2(3, `json:{"driver":"qcow2","file":{"driver":"file","filename":"/pool/a"}}`, "qcow2"), layer{"/pool/a", "qcow2"}, true},
		"JSON of a server":         {image2(3, `json:{"driver":"nbd","host":"h"}`, "raw"), layer{}, true},
		"no JSON":                  {image2(3, `json:{/a`, "raw"), layer{}, true},
		"a URL":                    {image2(3, "nbd://h/x", "raw"), layer{}, true},
		"raw":                      {make([]byte, 512), layer{}, false},
		"nothing":                  {nil, layer{}, false},
		"too short":                {image2(3, "/b", "")[:71], layer{}, false},
		"a name beyond the head":   {far, layer{}, false},
		"a name longer than it is": {huge, layer{}, false},
	} {
		if got, ok := overlay(c.head, "/pool/over"); got != c.want || ok != c.ok {
			t.Errorf("%s: got %+v, %v", name, got, ok)
		}
	}
}

func FuzzOverlay(f *testing.F) {
	f.Add(image2(2, "/a", "raw"))
	f.Add(image2(3, "b", "qcow2"))
	f.Fuzz(func(t *testing.T, head []byte) {
		if l, ok := overlay(head, "/pool/over"); !ok && l != (layer{}) {
			t.Errorf("an answer that is none: %+v", l)
		}
	})
}

func TestDocumentsOfTheView(t *testing.T) {
	links, err := linksIn(`<network><forward mode='bridge'/><bridge name='br0'/><portgroup name='a'/><portgroup name='b'><vlan/></portgroup></network>`)
	if err != nil || links.Bridge != "br0" || len(links.PortGroups) != 2 || links.PortGroups[1] != "b" {
		t.Errorf("got %+v, %v", links, err)
	}
	for _, own := range []string{
		`<network><forward mode='nat'/><bridge name='virbr0'/></network>`,
		`<network><forward mode='bridge'/><bridge name='ovs'/><virtualport type='openvswitch'/></network>`,
	} {
		if links, err := linksIn(own); err != nil || links.Bridge != "" {
			t.Errorf("%s: %+v, %v", own, links, err)
		}
	}
	for document, want := range map[string][3]bool{ // in a group of Open vSwitch, in another one, in none
		`<network><forward mode='nat'/><bridge name='virbr0'/></network>`:                                                                                                         {false, false, false},
		`<network><forward mode='bridge'/><bridge name='br0'/></network>`:                                                                                                         {false, false, false},
		`<network><forward mode='bridge'><interface dev='eth0'/></forward></network>`:                                                                                             {false, false, false},
		`<network><forward mode='bridge'/><bridge name='b'/><virtualport type='802.1Qbh'/></network>`:                                                                             {false, false, false},
		`<network><forward mode='bridge'/><bridge name='b'/><virtualport type='openvswitch'/></network>`:                                                                          {true, true, true},
		`<network><forward mode='passthrough'><interface dev='eth0'/></forward></network>`:                                                                                        {true, true, true},
		`<network><forward mode='hostdev'><pf dev='eth0'/></forward></network>`:                                                                                                   {true, true, true},
		`<network><forward mode='bridge'/><bridge name='b'/><portgroup name='ovs'><virtualport type='openvswitch'/></portgroup><portgroup name='other'/></network>`:               {true, false, false},
		`<network><forward mode='bridge'/><bridge name='b'/><portgroup name='ovs' default='yes'><virtualport type='openvswitch'/></portgroup><portgroup name='other'/></network>`: {true, false, true},
		`<network><forward mode='bridge'/><bridge name='b'/><portgroup name='ovs'><virtualport type='openvswitch'/></portgroup><portgroup name='other' default='yes'/></network>`: {true, false, false},
	} {
		links, err := linksIn(document)
		if got := [3]bool{links.Tags("ovs"), links.Tags("other"), links.Tags("")}; got != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", document, got, err, want)
		}
	}
	typ, target, err := placeIn("<pool type='netfs'><target>\n<path> /mnt/x/ </path></target></pool>")
	if typ != "netfs" || target != "/mnt/x" || err != nil {
		t.Errorf("got %q, %q, %v", typ, target, err)
	}
	if _, target, err := placeIn("<pool type='rbd'><source/></pool>"); target != "" || err != nil {
		t.Errorf("got %q, %v", target, err)
	}
	usb, err := usbIn(`<device><name>usb_1_2</name><capability type='usb_device'><bus>1</bus><device>4</device><product id='0x0002'>X</product><vendor id='0x1d6b'>L</vendor></capability></device>`)
	if want := (USBDevice{1, 4, "0x1d6b", "0x0002"}); usb != want || err != nil {
		t.Errorf("got %+v, %v", usb, err)
	}
	if l := layerIn(`<volume><backingStore><path>/p//b</path><format type='raw'/></backingStore></volume>`); l != (layer{"/p/b", "raw"}) {
		t.Errorf("got %+v", l)
	}
	for _, document := range []string{`<volume/>`, `<volume><backingStore><path>json:{}</path></backingStore></volume>`, `<volume`} {
		if l := layerIn(document); l != (layer{}) {
			t.Errorf("%s: got %+v", document, l)
		}
	}
	for _, broken := range []func() error{
		func() error { _, err := linksIn("<n"); return err }, func() error { _, err := usbIn("<n"); return err },
		func() error { _, _, err := placeIn("<n"); return err },
	} {
		if broken() == nil {
			t.Error("no error for a broken document")
		}
	}
	if got := nodeName("br-lan.7"); got != "br_lan_7" {
		t.Error(got)
	}
}

func TestPatiently(t *testing.T) {
	synctest.Test(t, testPatiently) // with a clock of its own
}

func testPatiently(t *testing.T) {
	h := NewHost(Options{URI: "test:///default", MaxCalls: 4})
	v := h.View()
	ctx := context.Background()
	hold := make(chan struct{})
	hang := func() int { <-hold; return 1 }
	start := time.Now()
	for range cap(v.asking) {
		if n, err := patiently(ctx, v, hang); n != 0 || !errors.Is(err, errSilent) {
			t.Errorf("got %d, %v", n, err)
		}
	}
	if took := time.Since(start); took != time.Duration(cap(v.asking))*v.patience {
		t.Errorf("%d questions that hang took %s", cap(v.asking), took)
	}
	start = time.Now()
	for range 100 {
		if _, err := patiently(ctx, v, func() int { t.Error("asked"); return 0 }); !errors.Is(err, errSilent) {
			t.Errorf("got %v", err)
		}
	}
	if took := time.Since(start); took != 0 {
		t.Errorf("once the storage is known to hang, questions still take %s", took)
	}
	close(hold)
	for v.stuck.Load() > 0 || len(v.asking) > 0 {
		time.Sleep(time.Millisecond)
	}
	if n, err := patiently(ctx, v, func() int { return 2 }); n != 2 || err != nil {
		t.Errorf("when it answers again: %d, %v", n, err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := patiently(gone, v, func() int { return 2 }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

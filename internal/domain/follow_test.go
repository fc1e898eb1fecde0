package domain

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// decoded is a definition with the content of a domain element.
func decoded(t *testing.T, content string) tree.Value {
	t.Helper()
	v, err := spec.Domain().Decode("<domain>" + content + "</domain>")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFollowBoot(t *testing.T) {
	const ordered, hd, network = `<devices><disk><boot order="1"/></disk></devices>`, `<os><boot dev="hd"/></os>`, `<os><boot dev="network"/></os>`
	for name, c := range map[string]struct {
		planned, wanted string
		goes            bool
	}{
		"what libvirt gave makes room":  {"", hd + ordered, true},
		"without an order it stays":     {"", hd + `<devices><disk/></devices>`, false},
		"a list that state has stays":   {hd, hd + ordered, false},
		"a list of somebody else stays": {"", network + ordered, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := followBoot(decoded(t, c.planned), decoded(t, c.wanted))
			if gone := got.At("os.boot_devices").Len() == 0; gone != c.goes {
				t.Errorf("boot_devices are %s", got.At("os.boot_devices"))
			}
		})
	}
}

func TestFollowListen(t *testing.T) {
	display := func(attrs, listener string) string {
		return `<devices><graphics type="spice"/><graphics type="vnc" ` + attrs + `>` + listener + `</graphics></devices>`
	}
	const a, b = `<listen type="address" address="192.0.2.1"/>`, `<listen type="address" address="192.0.2.2"/>`
	const socket = `<listen type="socket" socket="/s"/>`
	both := display(`listen="192.0.2.1"`, a)
	for name, c := range map[string]struct{ before, wanted, want string }{
		"nothing changes":          {both, both, both},
		"another listener":         {both, display(`listen="192.0.2.1"`, b), display("", b)},
		"the listener goes":        {both, display(`listen="192.0.2.1"`, ""), display("", "")},
		"another address":          {both, display(`listen="192.0.2.2"`, a), display(`listen="192.0.2.2"`, "")},
		"the address goes":         {both, display("", a), display("", "")},
		"both change together":     {both, display(`listen="192.0.2.2"`, b), display(`listen="192.0.2.2"`, b)},
		"a socket goes":            {display(`socket="/s"`, socket), display(`socket="/s"`, ""), display("", "")},
		"a display that is new":    {"", both, both},
		"one that listens nowhere": {display("", ""), display("", a), display("", a)},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := followListen(decoded(t, c.before), decoded(t, c.wanted)), decoded(t, c.want)
			for _, path := range []string{"listen", "socket", "listeners"} {
				x, y := got.At("devices.graphics").Elems()[1].Attr("vnc").Attr(path), want.At("devices.graphics").Elems()[1].Attr("vnc").Attr(path)
				if !tree.Equal(x, y) && x.Len()+y.Len() > 0 || x.Str() != y.Str() {
					t.Errorf("%s is %s, want %s", path, x, y)
				}
			}
		})
	}
}

func TestWithoutRemnants(t *testing.T) {
	const place = `<address type="pci" bus="1" slot="0"/>`
	vsock := func(content string) string {
		return `<devices><vsock model="virtio">` + content + place + `</vsock></devices>`
	}
	whole := vsock(`<cid address="7"/>`)
	for name, c := range map[string]struct {
		before, wanted string
		goes           bool
	}{
		"all that makes it goes":  {whole, vsock(""), true},
		"it has another number":   {whole, vsock(`<cid address="8"/>`), false},
		"libvirt is to choose it": {whole, vsock(`<cid auto="yes"/>`), false},
		"it never had one":        {vsock(""), vsock(""), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := withoutRemnants(decoded(t, c.before), decoded(t, c.wanted))
			if got.At("devices.vsock").IsNull() != c.goes {
				t.Errorf("vsock is %s", got.At("devices.vsock"))
			}
		})
	}
	iommu := decoded(t, `<devices><iommu model="virtio">`+place+`</iommu></devices>`)
	if got := withoutRemnants(iommu, iommu.SetAt("devices.iommu.model", tree.NullValue)); !got.At("devices.iommu").IsNull() {
		t.Errorf("iommu is %s", got.At("devices.iommu"))
	}
	if got := withoutRemnants(iommu, iommu); got.At("devices.iommu").IsNull() {
		t.Error("an iommu went that nobody withdrew")
	}
}

// A list of single CPUs is whole or not there.
func TestFollowCPUs_list(t *testing.T) {
	list := func(ids ...int64) tree.Value {
		elems := make([]tree.Value, len(ids))
		for i, id := range ids {
			elems[i] = tree.NullValue.With("id", tree.IntValue(id))
		}
		return tree.NullValue.With("vcpu", tree.IntValue(2)).With("vcpu_current", tree.IntValue(1)).SetAt("vcpus.vcpu", tree.ListValue(elems))
	}
	if got := followCPUs(tree.NullValue, list(0, 1), list(1)); !got.Attr("vcpus").IsNull() {
		t.Errorf("some were withdrawn: %s", got)
	}
	if got := followCPUs(tree.NullValue, list(0, 1), list(0, 1)); got.At("vcpus.vcpu").Len() != 2 {
		t.Errorf("none was withdrawn: %s", got)
	}
	if got := followCPUs(list(1), list(0, 1), list(1)); got.At("vcpus.vcpu").Len() != 1 {
		t.Errorf("the configuration names one: %s", got)
	}
}

func TestAsDefined(t *testing.T) {
	const (
		variable  = `<clock offset="variable" adjustment="10" basis="localtime"/>`
		moved     = `<clock offset="variable" adjustment="3610" basis="utc"/>`
		chosen    = `<os firmware="efi"><firmware><feature enabled="no" name="secure-boot"/></firmware></os>`
		loader    = `<os><loader readonly="yes" type="pflash">/code.fd</loader></os>`
		disk      = `<devices><disk><source file="/a.qcow2"/><target dev="vda"/><transient/></disk></devices>`
		overlaid  = `<devices><disk><source file="/a.qcow2.TRANSIENT-web"/><target dev="vda"/><transient/></disk></devices>`
		lasting   = `<devices><disk><source file="/a.qcow2.TRANSIENT-web"/><target dev="vda"/></disk></devices>`
		secure    = `<os><loader readonly="yes" secure="yes" type="pflash">/code.fd</loader><nvram template="/vars.fd">/nvram/web.fd</nvram></os><features><smm state="on"/></features>`
		variables = `<os><loader readonly="yes" type="pflash">/code.fd</loader><nvram>/nvram/other.fd</nvram></os>`
		rom       = `<os><loader type="rom">/bios.bin</loader></os>`
		static    = `<seclabel type="static" model="dac" relabel="no"><label>0:0</label></seclabel>`
		another   = `<seclabel type="static" model="dac" relabel="no"><label>7:7</label></seclabel>`
		dynamic   = `<seclabel type="dynamic" model="dac" relabel="yes"><label>+0:+0</label><imagelabel>+0:+0</imagelabel></seclabel>`
		based     = `<seclabel type="dynamic" model="dac" relabel="yes"><baselabel>+5:+5</baselabel></seclabel>`
		confined  = `<seclabel type="dynamic" model="apparmor" relabel="yes"><label>libvirt-1</label></seclabel>`
		machine   = `<resource><partition>/machine</partition></resource>`
		lab       = `<resource><partition>/machine/lab</partition></resource>`
	)
	k := New(nil)
	for name, c := range map[string]struct {
		definition, guest string
		started           int64 // the generation of the guest; that of the definition is 3
		waits             bool
	}{
		"a clock that was started":        {variable, moved, 3, false},
		"a clock of an older definition":  {variable, moved, 2, true},
		"firmware chosen by kind":         {chosen, loader, 3, false},
		"a loader that was never defined": {`<os><loader readonly="no">/code.fd</loader></os>`, loader, 3, true},
		"a transient disk":                {disk, overlaid, 2, false},
		"a disk that is another one":      {disk, lasting, 3, true},

		"firmware chosen by kind, of an older definition": {`<os firmware="efi"/>`, secure, 2, false},
		"another kind of firmware":                        {`<os firmware="efi"/>`, rom, 2, true},
		"firmware that was none":                          {`<os firmware="efi"/>`, ``, 2, true},
		"a loader that was taken out":                     {``, rom, 2, true},
		"another loader":                                  {rom, `<os><loader type="rom">/old.bin</loader></os>`, 2, true},
		"what goes with a loader":                         {`<os><loader type="pflash">/code.fd</loader></os>`, `<os><loader readonly="yes" type="pflash">/code.fd</loader><nvram template="/vars.fd">/nvram/web.fd</nvram></os>`, 2, false},
		"another file of variables":                       {variables, secure, 2, true},
		"the template of a file of variables":             {variables, strings.Replace(variables, "<nvram>", `<nvram template="/vars.fd">`, 1), 2, false},
		"system management mode by hand":                  {``, `<features><smm state="on"/></features>`, 3, true},

		"labels of the host's drivers":  {``, dynamic + confined, 2, false},
		"a label that names one driver": {static, static + confined, 2, false},
		"another label":                 {static, another, 2, true},
		"a label that was static":       {`<seclabel type="dynamic" model="dac" relabel="yes"/>`, static, 2, true},
		"a label that is to be static":  {static, dynamic, 2, true},
		"a label that was taken out":    {``, static, 2, true},
		"a base that was taken out":     {``, based, 2, true},
		"a label that the start fills":  {`<seclabel type="dynamic" model="dac" relabel="yes"/>`, dynamic, 2, false},
		"a label without a driver":      {`<seclabel type="dynamic"/>`, confined, 2, false},
		"another one without a driver":  {`<seclabel type="static"><label>x</label></seclabel>`, confined, 2, true},

		"the standard partition":      {``, machine, 2, false},
		"a partition of its own":      {lab, machine, 2, true},
		"a partition that it lost":    {``, lab, 2, true},
		"the partition that it names": {lab, lab, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sight{marker: marker{Generation: 3}, guestMarker: marker{Generation: c.started}}
			definition := decoded(t, c.definition)
			waiting := k.rules.Waiting(k.typ, definition, s.asDefined(decoded(t, c.guest), definition), definition)
			if len(waiting) > 0 != c.waits {
				t.Errorf("%v wait", waiting)
			}
		})
	}
}

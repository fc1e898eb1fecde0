package protocol

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
)

// domainXML is a plain machine as libvirt gives it back.
const domainXML = `<domain type="kvm"><name>web</name><uuid>5d4c1d5e-1b1c-4b57-9e0f-0f3a4b5c6d7e</uuid>
<memory unit="KiB">2097152</memory><currentMemory unit="KiB">2097152</currentMemory><vcpu placement="static">2</vcpu>
<os><type arch="x86_64" machine="pc-q35-7.2">hvm</type><boot dev="hd"/></os><features><acpi/><apic/></features>
<cpu mode="host-passthrough" check="none" migratable="on"/><clock offset="utc"><timer name="rtc" tickpolicy="catchup"/></clock>
<on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<disk type="volume" device="disk"><driver name="qemu" type="qcow2"/><source pool="default" volume="web.qcow2"/><target dev="vda" bus="virtio"/><address type="pci" domain="0x0000" bus="0x04" slot="0x00" function="0x0"/></disk>
<disk type="file" device="cdrom"><driver name="qemu" type="raw"/><source file="/var/lib/seed.iso"/><target dev="sda" bus="sata"/><readonly/></disk>
<controller type="usb" index="0" model="qemu-xhci" ports="15"/><controller type="pci" index="0" model="pcie-root"/>
<interface type="network"><mac address="52:54:00:6b:3c:58"/><source network="default"/><model type="virtio"/></interface>
<serial type="pty"><target type="isa-serial" port="0"><model name="isa-serial"/></target></serial><console type="pty"><target type="serial" port="0"/></console>
<channel type="unix"><target type="virtio" name="org.qemu.guest_agent.0"/></channel>
<graphics type="vnc" port="-1" autoport="yes" listen="127.0.0.1"><listen type="address" address="127.0.0.1"/></graphics>
<video><model type="virtio" heads="1" primary="yes"/></video><memballoon model="virtio"/><rng model="virtio"><backend model="random">/dev/urandom</backend></rng>
</devices></domain>`

// BenchmarkCodec compares the codec with the way over plugin-go's own values,
// for a whole definition in the domain's schema.
func BenchmarkCodec(b *testing.B) {
	typ := spec.Domain().Type()
	v, err := spec.Domain().Decode(domainXML)
	if err != nil {
		b.Fatal(err)
	}
	c, rt := newCodec(typ), refType(typ)
	d, err := c.encode(v)
	if err != nil {
		b.Fatal(err)
	}
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("decode/direct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := c.decode(d)
			must(err)
		}
	})
	b.Run("decode/tftypes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ref, err := d.Unmarshal(rt)
			must(err)
			fromRef(ref)
		}
	})
	b.Run("encode/direct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := c.encode(v)
			must(err)
		}
	})
	b.Run("encode/tftypes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := tfprotov6.NewDynamicValue(rt, toRef(v, typ, rt))
			must(err)
		}
	})
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			newCodec(typ)
		}
	})
	b.Run("schema", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := wireSchema(Schema{TypeName: "libvirt_domain", Type: typ})
			must(err)
		}
	})
}

// domains is a resource with the domain's schema that changes nothing.
type domains struct{ machines }

func (*domains) Schema() Schema { return Schema{TypeName: "test_machine", Type: spec.Domain().Type()} }

// BenchmarkNoOpPlan measures what one object costs the provider in a plan that
// changes nothing, without the host: upgrade, refresh and plan.
func BenchmarkNoOpPlan(b *testing.B) {
	v, err := spec.Domain().Decode(domainXML)
	if err != nil {
		b.Fatal(err)
	}
	stored, err := v.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	m := &domains{}
	m.OnRead = func(r ReadRequest) ReadResponse { return ReadResponse{State: r.State} }
	m.OnPlan = func(r PlanRequest) PlanResponse { return PlanResponse{Planned: r.Prior} }
	server := NewServer(newFallback(), []Resource{m}, nil)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		up, err := server.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{TypeName: "test_machine", RawState: &tfprotov6.RawState{JSON: stored}})
		if err != nil || len(up.Diagnostics) > 0 {
			b.Fatal(err, messages(up.Diagnostics))
		}
		read, err := server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: "test_machine", CurrentState: up.UpgradedState})
		if err != nil || len(read.Diagnostics) > 0 {
			b.Fatal(err, messages(read.Diagnostics))
		}
		s := read.NewState
		plan, err := server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{TypeName: "test_machine", Config: s, PriorState: s, ProposedNewState: s})
		if err != nil || len(plan.Diagnostics) > 0 {
			b.Fatal(err, messages(plan.Diagnostics))
		}
	}
}

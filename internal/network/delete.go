package network

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Delete stops and undefines the network. It refuses another network than the
// state's, one that running guests are attached to, and one whose DHCP server
// has given an address to a machine that this libvirt does not know. Of
// definitions that name it it warns: their next start will fail.
func (k *Kind) Delete(ctx context.Context, state tree.Value) (warnings []kind.Problem, err error) {
	s, err := k.look(ctx, k.Identity(state))
	if err == nil {
		err = kind.RefuseStranger(k.Noun(), state, s.name, s.net.UUID())
	}
	if err != nil {
		return nil, kind.UnlessGone(err)
	}
	nics, err := k.plugs(ctx)
	if err != nil {
		return nil, err
	}
	if s.active {
		if err := refuseAttached(s, nics, "destroy"); err != nil {
			return nil, err
		}
		if err := k.refuseLeased(ctx, s, nics); err != nil {
			return nil, err
		}
	}
	warnings = warnOfDefined(s, nics)
	if err := s.remove(ctx); err != nil {
		return nil, err
	}
	return warnings, nil
}

// remove stops and undefines the network.
func (s *sight) remove(ctx context.Context) error {
	if s.active {
		if err := s.net.Stop(ctx); err != nil {
			return err
		}
	}
	if err := s.net.Undefine(ctx); err != nil && !virt.IsNotFound(err) { // a transient network is gone when it stops
		return s.restart(ctx, err)
	}
	return nil
}

// restart starts a network again that was stopped and could not be undefined:
// the machines on it are to be no worse off than before.
func (s *sight) restart(ctx context.Context, failed error) error {
	if !s.active {
		return failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartTime)
	defer cancel()
	if err := s.net.Start(ctx); err != nil {
		return fmt.Errorf("%w. The network was stopped, and could not be started again (%w): virsh net-start %s", failed, err, s.name)
	}
	return fmt.Errorf("%w. The network was started again", failed)
}

// restartTime is how long that may take, also after the user has interrupted
// what failed.
const restartTime = 2 * time.Minute

// plug is an interface of a domain: where it is plugged in, of the running guest
// or of a definition.
type plug struct {
	domain    string
	running   bool
	autostart bool // of a definition
	mac       string
	network   string
	device    string // a bridge, or what a macvtap lies over
}

// plugs lists the interfaces of all domains, of guests and of definitions.
func (k *Kind) plugs(ctx context.Context) ([]plug, error) {
	domains, err := k.host().Domains(ctx)
	if err != nil {
		return nil, err
	}
	var out []plug
	for _, d := range domains {
		found, err := plugsOf(ctx, d)
		if virt.IsNotFound(err) {
			continue // it went since the list was made
		}
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func plugsOf(ctx context.Context, d *virt.Domain) (out []plug, err error) {
	power, _, err := d.State(ctx)
	if err != nil {
		return nil, err
	}
	persistent, err := d.IsPersistent(ctx)
	if err != nil {
		return nil, err
	}
	autostart := false
	if persistent {
		if autostart, err = d.Autostart(ctx); err != nil {
			return nil, err
		}
	}
	for _, running := range []bool{true, false} {
		flags := virt.XMLFlags(0)
		if !running {
			flags = virt.XMLInactive
		}
		if running && !power.Active() || !running && !persistent {
			continue
		}
		document, err := d.XML(ctx, flags)
		if err != nil {
			return nil, err
		}
		found, err := plugsIn(document, plug{domain: d.Name(), running: running, autostart: autostart && !running})
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// plugsIn lists those of a document; like is what they have in common.
func plugsIn(document string, like plug) (out []plug, err error) {
	domain, err := spec.Domain().Decode(document)
	if err != nil {
		return nil, err
	}
	for _, nic := range domain.At("devices.interfaces").Elems() {
		p := like
		p.mac = nic.At("mac.address").Str()
		p.network = nic.At("source.network.network").Str()
		p.device = nic.At("source.bridge.bridge").Str() + nic.At("source.direct.dev").Str()
		out = append(out, p)
	}
	return out, nil
}

// bridge is that of the network, if libvirt made it and takes it away again; ""
// for one that the host has anyway, or that the network has none.
func (s *sight) bridge() string {
	if s.raw.At("forward.mode").Str() == "bridge" {
		return ""
	}
	return s.raw.At("bridge.name").Str()
}

// has says whether an interface is plugged into the network, by its name or past
// libvirt's back into its bridge.
func (s *sight) has(p plug) bool {
	return p.network == s.name || p.device != "" && p.device == s.bridge()
}

// refuseAttached refuses to cut off running guests, and lists them.
func refuseAttached(s *sight, nics []plug, verb string) error {
	var attached []string
	for _, p := range nics {
		if p.running && s.has(p) {
			attached = append(attached, fmt.Sprintf("%s (%s)", p.domain, p.mac))
		}
	}
	if len(attached) == 0 {
		return nil
	}
	slices.Sort(attached)
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to %s network %q: running guests are attached to it", verb, s.name),
		Detail:  fmt.Sprintf("They would be cut off: %s. Nothing was changed. Shut them down or move them to another network first.", strings.Join(attached, ", ")),
	})
}

// refuseLeased refuses to cut off machines that are none of this libvirt's
// (containers, guests within guests, what is wired to the bridge) and have an
// address from the network. libvirt keeps a lease until it expires, also if the
// machine is long gone; so those of known domains do not count, which are off or
// were refused already, nor those of domains that this process has just
// destroyed, nor any if nothing is plugged into the bridge.
func (k *Kind) refuseLeased(ctx context.Context, s *sight, nics []plug) error {
	leases, err := s.net.Leases(ctx)
	if virt.HasCode(err, virt.ErrNoSupport) {
		return nil
	}
	if err != nil {
		return err
	}
	var strange []virt.Lease
	for _, l := range leases {
		known := slices.ContainsFunc(nics, func(p plug) bool { return strings.EqualFold(p.mac, l.MAC) })
		if !known && !k.departed(l.MAC) {
			strange = append(strange, l)
		}
	}
	if len(strange) == 0 {
		return nil
	}
	if bridge := s.bridge(); bridge != "" {
		ports, known, err := k.host().BridgePorts(ctx, bridge)
		if err != nil {
			return err
		}
		if known && !slices.ContainsFunc(ports, func(p string) bool { return p != bridge+"-nic" }) { // libvirt's own, to give the bridge its MAC
			return nil
		}
	}
	lines := make([]string, len(strange))
	for i, l := range strange {
		lines[i] = "- " + lineOf(l)
	}
	slices.Sort(lines)
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to destroy network %q: other machines have addresses from it", s.name),
		Detail: fmt.Sprintf("No domain of this libvirt has these MACs, and they would be cut off:\n%s\nNothing was changed. Take the machines off the network, or wait until their leases expire. If they are gone already: virsh net-destroy %s, then repeat.",
			strings.Join(lines, "\n"), s.name),
	})
}

// lineOf is a lease for a message.
func lineOf(l virt.Lease) string {
	name, until := "", "never expires"
	if l.Hostname != "" {
		name = " (" + l.Hostname + ")"
	}
	if !l.Expires.IsZero() {
		until = "until " + l.Expires.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s%s has %s, %s", l.MAC, name, l.IP, until)
}

// warnOfDefined names the domains that will miss the network at their next start.
func warnOfDefined(s *sight, nics []plug) []kind.Problem {
	var names []string
	for _, p := range nics {
		if p.running || !s.has(p) {
			continue
		}
		name := p.domain
		if p.autostart {
			name += " (started with the host)"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []kind.Problem{{
		Summary: fmt.Sprintf("Network %q is gone, and domains are defined with it", s.name),
		Detail:  fmt.Sprintf("They cannot start any more as they are defined: %s. Give them another network, or make one of this name again.", strings.Join(names, ", ")),
	}}
}

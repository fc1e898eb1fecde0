package domain

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A definition goes on looking well while what it names disappears. The guest
// that runs has all its files open, libvirt reads the definition only when it
// starts the next one, and at the host's boot nobody looks. So every refresh
// looks, and says in status.boot_problems what would go wrong at the next start,
// or, of a domain that is set to autostart, at the next boot of the host.
//
// A false alarm is worse than none: it teaches people not to read. Only what
// libvirt itself says is missing is a problem (virt.View); a question that fails,
// for whatever other reason, is no answer.

// hostView is what is asked of the host, virt.View.
type hostView interface {
	Networks(ctx context.Context) (map[string]virt.NetworkStanding, error)
	NetworkLinks(ctx context.Context, network string) (virt.NetworkLinks, error)
	Daemon(ctx context.Context) (virt.Version, error)
	Pools(ctx context.Context) (map[string]virt.PoolStanding, error)
	Volume(ctx context.Context, pool, name string) virt.Presence
	File(ctx context.Context, name string) virt.Presence
	Suspect(ctx context.Context, name string) virt.Presence
	MissingBelow(ctx context.Context, name, format string) string
	Filters(ctx context.Context) (map[string]bool, error)
	LacksLink(ctx context.Context, name string) (bool, error)
	NodeDevices(ctx context.Context) (map[string]bool, error)
	USBDevices(ctx context.Context) ([]virt.USBDevice, error)
	Offers(ctx context.Context, o virt.Offer) error

	Forget()

	// For an apply: what libvirt and QEMU can build, and what could be named instead.
	Capabilities(ctx context.Context, o virt.Offer) (virt.Capabilities, error)
	Builds(ctx context.Context, document string) error
	Volumes(ctx context.Context, pool string) ([]string, error)
	Links(ctx context.Context) (map[string]string, error)
	Machines(ctx context.Context, o virt.Offer) ([]string, error)
}

// bootProblems lists, sorted, what would go wrong silently at the next start of
// the guest or the next boot of the host. Each is a sentence that names the
// object and the way out.
func (k *Kind) bootProblems(ctx context.Context, s *sight) []string {
	if !s.persistent {
		return nil // nothing will start it again; that is told elsewhere
	}
	needs, err := needsOf(s.xml)
	if err != nil {
		return nil
	}
	c := &bootCheck{host: k.host().View(), domain: s.name, autostart: s.definition.Attr("autostart").Bool()}
	c.check(ctx, needs)
	if s.managedSave && !s.active() {
		k.checkSave(ctx, c, s)
	}
	return c.problems()
}

// bootCheck is one look at what a domain needs.
type bootCheck struct {
	host      hostView
	domain    string
	autostart bool
	found     []finding
}

// say notes what is wrong, in the words of status.boot_problems.
func (c *bootCheck) say(f finding, format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	c.found = append(c.found, f)
}

// problems returns each once: two interfaces may need one network.
func (c *bootCheck) problems() []string {
	out := make([]string, len(c.found))
	for i, f := range c.found {
		out[i] = f.text
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *bootCheck) check(ctx context.Context, n needs) {
	for _, d := range n.disks {
		c.checkDisk(ctx, d)
	}
	for _, f := range n.files {
		if c.host.File(ctx, f.path) == virt.Gone {
			c.gone(ctx, f.ref, f.place, f.noun, f.path, f.wayOut)
		}
	}
	c.checkTemplate(ctx, n)
	for _, nic := range n.interfaces {
		c.checkInterface(ctx, nic)
	}
	for _, d := range n.devices {
		c.checkDevice(ctx, d)
	}
	c.checkOffer(ctx, n.offer)
}

func (c *bootCheck) checkDisk(ctx context.Context, d diskNeed) {
	const alone = "put it back: the image above it is of no use alone"
	place := "disk " + d.target
	name, ref := d.file, d.at(d.source, d.file)
	if d.pool != "" {
		ref = d.at("source.volume.volume", d.volume)
		if name = c.checkVolume(ctx, place, d); name == "" {
			return
		}
	} else {
		c.checkMount(ctx, ref, name)
		if c.host.File(ctx, name) == virt.Gone {
			noun, wayOut := "file", "put it back, or change the disk"
			if d.removable {
				noun, wayOut = "medium", fmt.Sprintf("put it back, or virsh change-media %s %s --eject --config", word(c.domain), word(d.target))
			}
			c.gone(ctx, ref, place, noun, name, wayOut)
			return
		}
	}
	for _, f := range d.below {
		if c.host.File(ctx, f.file) == virt.Gone {
			c.gone(ctx, ref, place, "backing file", f.file, alone)
			return
		}
		name, d.format = f.file, f.format
	}
	if d.complete || d.format == "" || d.format == "raw" || name == "" {
		return // libvirt follows the chain only so far
	}
	if missing := c.host.MissingBelow(ctx, name, d.format); missing != "" {
		c.gone(ctx, ref, place, "backing file", missing, alone)
	}
}

// checkVolume looks at a disk that names its volume by pool and name, and
// returns the path if all is well and it is known.
func (c *bootCheck) checkVolume(ctx context.Context, place string, d diskNeed) string {
	pools, err := c.host.Pools(ctx)
	if err != nil {
		return ""
	}
	inPool := d.at("source.volume.pool", d.pool)
	pool, ok := pools[d.pool]
	if !ok {
		c.say(finding{ref: inPool, grade: missing, what: fmt.Sprintf("pool %q does not exist", d.pool), choice: somePool, wayOut: createFirst("pool", "libvirt_pool")},
			"pool %q does not exist, %s needs it (define it, or change the disk)", d.pool, place)
		return ""
	}
	c.checkStanding(inPool, "pool", "pool", d.pool, pool.Standing)
	if !pool.Active {
		return ""
	}
	if c.host.Volume(ctx, d.pool, d.volume) == virt.Gone {
		c.say(finding{
			ref: d.at("source.volume.volume", d.volume), grade: missing, what: fmt.Sprintf("volume %q of pool %q does not exist", d.volume, d.pool),
			choice: volumesOf(d.pool), wayOut: createFirst("volume", "libvirt_volume") + fmt.Sprintf("; if it is a file that is there, virsh pool-refresh %s", word(d.pool)),
		}, "%s: volume %q of pool %q is gone (put it back, with virsh pool-refresh %s if it is a file that is there, or change the disk)", place, d.volume, d.pool, word(d.pool))
		return ""
	}
	if pool.Target == "" {
		return ""
	}
	return path.Join(pool.Target, d.volume)
}

// mounts are the kinds of pools whose files are there only while they are active.
var mounts = map[string]bool{"fs": true, "netfs": true}

// checkMount looks at the pool that has to be mounted at boot for a file to be there.
func (c *bootCheck) checkMount(ctx context.Context, ref reference, file string) {
	if name, pool := c.poolOver(ctx, file, func(p virt.PoolStanding) bool { return p.Active && mounts[p.Type] }); name != "" {
		c.checkStanding(ref, "pool", "pool", name, pool.Standing)
	}
}

func (c *bootCheck) poolOver(ctx context.Context, file string, fits func(virt.PoolStanding) bool) (string, virt.PoolStanding) {
	pools, err := c.host.Pools(ctx)
	if err != nil {
		return "", virt.PoolStanding{}
	}
	best := ""
	for name, p := range pools {
		if p.Target != "" && fits(p) && strings.HasPrefix(file, strings.TrimSuffix(p.Target, "/")+"/") {
			if best == "" || len(p.Target) > len(pools[best].Target) || len(p.Target) == len(pools[best].Target) && name < best {
				best = name
			}
		}
	}
	return best, pools[best]
}

// gone tells of a file, and of the pool that would have to be active for it to
// be there; a directory is there without.
func (c *bootCheck) gone(ctx context.Context, ref reference, place, noun, file, wayOut string) {
	f := finding{ref: ref, grade: missing, what: fmt.Sprintf("%s %s does not exist", noun, file), wayOut: "put it there, or change the attribute"}
	if noun == "backing file" {
		f.wayOut = fmt.Sprintf("put it there: %s lies over it and is of no use alone; or change the attribute", ref.value)
	}
	if pool, _ := c.poolOver(ctx, file, func(p virt.PoolStanding) bool { return !p.Active && p.Type != "dir" }); pool != "" {
		wayOut = fmt.Sprintf("its pool %q is not active: virsh pool-start %s", pool, word(pool))
		f.grade, f.wayOut = inactive, wayOut
	}
	c.say(f, "%s: %s %s is gone (%s)", place, noun, file, wayOut)
}

// checkTemplate looks at the file that the NVRAM would be made from: only where
// there is no NVRAM yet.
func (c *bootCheck) checkTemplate(ctx context.Context, n needs) {
	if n.template == "" || c.host.File(ctx, n.template) != virt.Gone {
		return
	}
	if n.nvram == "" || c.host.Suspect(ctx, n.nvram) == virt.Gone {
		ref := reference{leaf: "os.nv_ram.template", value: n.template}
		c.gone(ctx, ref, "os.nv_ram", "template", n.template, "put it back, or change os.nv_ram.template: there is no NVRAM yet")
	}
}

// checkStanding tells what a network or pool is not, and in which of virsh's
// commands it is called what.
func (c *bootCheck) checkStanding(ref reference, noun, command, name string, s virt.Standing) {
	w := word(name)
	if !s.Active {
		c.say(finding{
			ref: ref, grade: inactive, what: fmt.Sprintf("%s %q is not active", noun, name),
			wayOut: fmt.Sprintf("start it (virsh %s-start %s), or choose another one", command, w),
		}, "%s %q is not active, nothing that needs it can start (virsh %s-start %s)", noun, name, command, w)
	}
	switch {
	case !c.autostart:
	case !s.Persistent:
		c.say(finding{ref: ref}, "%s %q has no definition and ends with the host's next boot, this domain is set to autostart (virsh %s-dumpxml %s > FILE; virsh %s-define FILE; virsh %s-autostart %s)", noun, name, command, w, command, command, w)
	case !s.Autostart:
		c.say(finding{ref: ref}, "%s %q is not set to autostart, this domain is (virsh %s-autostart %s)", noun, name, command, w)
	}
}

func (c *bootCheck) checkInterface(ctx context.Context, n interfaceNeed) {
	place := "interface " + n.mac
	if n.network != "" {
		c.checkNetwork(ctx, place, n)
	}
	if lacks, err := c.lacksLink(ctx, n.link); err == nil && lacks {
		f := finding{ref: n.at("source.direct.dev", n.link), grade: missing, what: fmt.Sprintf("%s %q does not exist on the host", n.linkNoun, n.link), choice: someLink, wayOut: "create it on the host first, or name another one"}
		if n.linkNoun == "bridge" {
			f.ref, f.choice = n.at("source.bridge.bridge", n.link), someBridge
		}
		c.say(f, "%s %q does not exist on the host, %s needs it (create it, or change the interface)", n.linkNoun, n.link, place)
	}
	c.checkVLAN(ctx, place, n)
	if n.filter == "" {
		return
	}
	if filters, err := c.host.Filters(ctx); err == nil && !filters[n.filter] {
		c.say(finding{
			ref: n.at("filter_ref.filter", n.filter), grade: missing, what: fmt.Sprintf("network filter %q does not exist", n.filter),
			choice: someFilter, wayOut: "define it first (virsh nwfilter-define FILE), or name another one",
		}, "network filter %q does not exist, %s needs it (virsh nwfilter-define FILE, or change the interface)", n.filter, place)
	}
}

func (c *bootCheck) lacksLink(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	return c.host.LacksLink(ctx, name)
}

func (c *bootCheck) checkNetwork(ctx context.Context, place string, n interfaceNeed) {
	networks, err := c.host.Networks(ctx)
	if err != nil {
		return
	}
	ref := n.at("source.network.network", n.network)
	network, ok := networks[n.network]
	if !ok {
		c.say(finding{ref: ref, grade: missing, what: fmt.Sprintf("network %q does not exist", n.network), choice: someNetwork, wayOut: createFirst("network", "libvirt_network")},
			"network %q does not exist, %s needs it (define it, or change the interface)", n.network, place)
		return
	}
	c.checkStanding(ref, "network", "net", n.network, network.Standing)
	links, err := c.host.NetworkLinks(ctx, n.network)
	if err != nil {
		return
	}
	// libvirt starts the guest all the same, on the open network.
	if n.portGroup != "" && !slices.Contains(links.PortGroups, n.portGroup) {
		c.say(finding{ref: n.at("source.network.port_group", n.portGroup)},
			"network %q has no portgroup %q, %s would start without its VLAN and limits (virsh net-edit %s, or change the interface)", n.network, n.portGroup, place, word(n.network))
	}
	if lacks, err := c.lacksLink(ctx, links.Bridge); err == nil && lacks {
		wayOut := fmt.Sprintf("create it, or virsh net-edit %s", word(n.network))
		c.say(finding{ref: ref, grade: inactive, what: fmt.Sprintf("bridge %q of network %q does not exist on the host", links.Bridge, n.network), wayOut: wayOut},
			"bridge %q of network %q does not exist on the host, %s needs it (%s)", links.Bridge, n.network, place, wayOut)
	}
}

// checkOffer asks whether the host still has such machines.
func (c *bootCheck) checkOffer(ctx context.Context, o virt.Offer) {
	if l, found := lacking(ctx, c.host, o); found {
		c.say(finding{ref: reference{leaf: l.attribute, value: l.value}, grade: missing, what: l.what, choice: l.choice, wayOut: l.wayOut}, "%s (%s)", l.what, l.wayOut)
	}
}

// word is a name as an argument of a shell's command.
func word(name string) string {
	if plainWord.MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

var plainWord = regexp.MustCompile(`^[\w.,:/@+-]+$`)

package virt

import (
	"context"
	"encoding/xml"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"libvirt.org/go/libvirt"
)

// View is what a host has beside its domains, for questions that are the same
// for many of them: which networks and pools are there, active, started at
// boot; is a file there; does QEMU know a machine type.
//
// A refresh of hundreds of domains would ask all that hundreds of times. A View
// asks once, when the first domain needs it, and keeps the answer for a moment
// (memo.go); the moment ends at once when this process changes a network, a pool
// or a volume. So within a plan the host is asked about once, and what is read
// back after an apply is what the apply has made of it. Changes of domains do
// not end it: nothing here depends on them.
//
// An answer says only what libvirt said. What could not be asked (no right, no
// such driver in this libvirt, no connection) is an error, or Unknown, and never
// an absence.
type View struct {
	host   *Host
	writes atomic.Uint64 // how many of our changes may have made answers old

	networks memo[map[string]NetworkStanding]
	bridging memos[string, NetworkLinks]
	pools    memo[map[string]PoolStanding]
	listings memos[string, map[string]*Volume]
	filters  memo[map[string]bool]
	devices  memo[map[string]bool]
	usb      memo[[]USBDevice]
	links    memos[string, bool]
	offers   memos[Offer, Capabilities]

	here   memo[bool]
	absent memo[string]
	files  memos[place, file]
	below  memos[string, reading]

	patience time.Duration // for a question about a file
	asking   chan struct{} // questions about files under way
	stuck    atomic.Int32  // of these, those that nobody waits for any more
}

// View returns the host's view.
func (h *Host) View() *View { return &h.view }

func (v *View) open(h *Host) {
	v.host = h
	v.here.lasting, v.absent.lasting = true, true
	v.patience = filePatience
	v.asking = make(chan struct{}, max(1, h.options.MaxCalls/2))
}

// wrote is told of every call that may have changed something.
func (v *View) wrote(c Call) {
	if c.Write && !strings.Contains(c.Op, "domain") {
		v.writes.Add(1)
	}
}

// Forget makes the View ask for everything again. An answer may be a moment old,
// in which somebody else has mended what is about to be refused.
func (v *View) Forget() { v.writes.Add(1) }

// Daemon returns the version of the libvirt that answers, which each session remembers.
func (v *View) Daemon(ctx context.Context) (daemon Version, err error) {
	err = v.host.call(ctx, Call{"ask for the version of", v.host.Display(), false}, func(s *session) (err error) {
		daemon, err = s.version()
		return err
	})
	return daemon, err
}

// Standing is what a start, now or at the host's next boot, will find of an object.
type Standing struct {
	Active     bool
	Autostart  bool
	Persistent bool // it has a definition, and so outlives the host's next boot
}

// NetworkStanding is that of a network.
type NetworkStanding struct {
	Standing
	network *Network
}

// Networks returns all networks by name.
func (v *View) Networks(ctx context.Context) (map[string]NetworkStanding, error) {
	return v.networks.get(v.writes.Load(), func() (out map[string]NetworkStanding, err error) {
		h := v.host
		err = h.call(ctx, Call{"list networks", "", false}, func(s *session) error {
			out = map[string]NetworkStanding{}
			// Filters of the list, as asking each network would take as many calls
			// as there are networks.
			var sides [3]map[string]*Network
			for i, flags := range []libvirt.ConnectListAllNetworksFlags{
				libvirt.CONNECT_LIST_NETWORKS_ACTIVE, libvirt.CONNECT_LIST_NETWORKS_AUTOSTART, libvirt.CONNECT_LIST_NETWORKS_PERSISTENT,
			} {
				if sides[i], err = h.networksOf(s, flags); err != nil {
					return err
				}
			}
			all, err := h.networksOf(s, 0)
			for name, n := range all {
				out[name] = NetworkStanding{Standing{sides[0][name] != nil, sides[1][name] != nil, sides[2][name] != nil}, n}
			}
			return err
		})
		return out, err
	})
}

func (h *Host) networksOf(s *session, flags libvirt.ConnectListAllNetworksFlags) (map[string]*Network, error) {
	all, err := s.conn.ListAllNetworks(flags)
	out := map[string]*Network{}
	for i := range all {
		net := all[i]
		n, err := h.newNetwork(s, &net)
		if err != nil {
			return nil, err
		}
		out[n.name] = n
	}
	return out, err
}

// NetworkLinks is what a network itself leans on, and what interfaces may name in it.
type NetworkLinks struct {
	Bridge     string // of the host, which somebody else makes; "" if libvirt makes the network's bridge itself
	PortGroups []string

	Tagging   bool     // all its ports can have VLANs of their own
	TagGroups []string // portgroups whose ports can; "" is the one that interfaces get that name none
}

// Tags says whether libvirt, of whatever version, can give an interface in that
// portgroup ("" for none) a VLAN of its own.
func (l NetworkLinks) Tags(portGroup string) bool {
	return l.Tagging || slices.Contains(l.TagGroups, portGroup)
}

// OpenVSwitch is the type of a virtual port on a switch that tags.
const OpenVSwitch = "openvswitch"

// NetworkLinks reads them of a network as it is now.
func (v *View) NetworkLinks(ctx context.Context, name string) (NetworkLinks, error) {
	networks, err := v.Networks(ctx)
	if err != nil {
		return NetworkLinks{}, err
	}
	standing, ok := networks[name]
	if !ok {
		return NetworkLinks{}, fmt.Errorf("there is no network %q", name)
	}
	return v.bridging.get(name, v.writes.Load(), func() (NetworkLinks, error) {
		document, err := standing.network.XML(ctx, false)
		if err != nil {
			return NetworkLinks{}, err
		}
		return linksIn(document)
	})
}

func linksIn(document string) (NetworkLinks, error) {
	var net struct {
		Forward struct {
			Mode string `xml:"mode,attr"`
		} `xml:"forward"`
		Bridge struct {
			Name string `xml:"name,attr"`
		} `xml:"bridge"`
		VirtualPort struct {
			Type string `xml:"type,attr"`
		} `xml:"virtualport"`
		PortGroups []struct {
			Name        string `xml:"name,attr"`
			Default     string `xml:"default,attr"`
			VirtualPort struct {
				Type string `xml:"type,attr"`
			} `xml:"virtualport"`
		} `xml:"portgroup"`
	}
	if err := xml.Unmarshal([]byte(document), &net); err != nil {
		return NetworkLinks{}, fmt.Errorf("read a network's XML: %w", err)
	}
	links := NetworkLinks{Tagging: net.Forward.Mode == "hostdev" || net.Forward.Mode == "passthrough" || net.VirtualPort.Type == OpenVSwitch}
	if net.Forward.Mode == "bridge" && net.VirtualPort.Type == "" {
		links.Bridge = net.Bridge.Name
	}
	for _, g := range net.PortGroups {
		links.PortGroups = append(links.PortGroups, g.Name)
		if g.VirtualPort.Type == OpenVSwitch {
			links.TagGroups = append(links.TagGroups, g.Name)
			if g.Default == "yes" {
				links.TagGroups = append(links.TagGroups, "")
			}
		}
	}
	return links, nil
}

// PoolStanding is that of a pool.
type PoolStanding struct {
	Standing
	Type   string // dir, netfs, logical, …
	Target string // the path below which its volumes appear, "" if it has none
	pool   *Pool
}

// Pools returns all pools by name.
func (v *View) Pools(ctx context.Context) (map[string]PoolStanding, error) {
	return v.pools.get(v.writes.Load(), func() (out map[string]PoolStanding, err error) {
		h := v.host
		err = h.call(ctx, Call{"list pools", "", false}, func(s *session) error {
			out = map[string]PoolStanding{}
			var sides [3]map[string]*Pool
			for i, flags := range []libvirt.ConnectListAllStoragePoolsFlags{
				libvirt.CONNECT_LIST_STORAGE_POOLS_ACTIVE, libvirt.CONNECT_LIST_STORAGE_POOLS_AUTOSTART, libvirt.CONNECT_LIST_STORAGE_POOLS_PERSISTENT,
			} {
				if sides[i], err = h.poolsOf(s, flags); err != nil {
					return err
				}
			}
			all, err := h.poolsOf(s, 0)
			for name, p := range all {
				out[name] = PoolStanding{Standing: Standing{sides[0][name] != nil, sides[1][name] != nil, sides[2][name] != nil}, pool: p}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for name, p := range out {
			document, err := p.pool.XML(ctx, false)
			if IsNotFound(err) {
				delete(out, name) // undefined since the list was made
				continue
			}
			if err != nil {
				return nil, err
			}
			if p.Type, p.Target, err = placeIn(document); err != nil {
				return nil, err
			}
			out[name] = p
		}
		return out, nil
	})
}

func (h *Host) poolsOf(s *session, flags libvirt.ConnectListAllStoragePoolsFlags) (map[string]*Pool, error) {
	all, err := s.conn.ListAllStoragePools(flags)
	out := map[string]*Pool{}
	for i := range all {
		pool := all[i]
		p, err := h.newPool(s, &pool)
		if err != nil {
			return nil, err
		}
		out[p.name] = p
	}
	return out, err
}

func placeIn(document string) (typ, target string, err error) {
	var pool struct {
		Type   string `xml:"type,attr"`
		Target string `xml:"target>path"`
	}
	if err := xml.Unmarshal([]byte(document), &pool); err != nil {
		return "", "", fmt.Errorf("read a pool's XML: %w", err)
	}
	if target = strings.TrimSpace(pool.Target); target != "" {
		target = path.Clean(target)
	}
	return pool.Type, target, nil
}

// volumes lists an active pool by name, as of its last refresh, with one call:
// unlike those of Pool.Volumes these handles do not know their paths, which
// libvirt tells one by one.
func (v *View) volumes(ctx context.Context, p *Pool) (map[string]*Volume, error) {
	return v.listings.get(p.name, v.writes.Load(), func() (out map[string]*Volume, err error) {
		err = p.host.call(ctx, Call{"list the volumes of pool", p.name, false}, func(s *session) error {
			return p.on(func(pool *libvirt.StoragePool) error {
				out = map[string]*Volume{}
				all, err := pool.ListAllStorageVolumes(0)
				for i := range all {
					vol := all[i]
					one := &Volume{host: p.host, pool: p.name}
					one.handle.keep(s, &vol, freeVolume)
					if one.name, err = vol.GetName(); err != nil {
						return err
					}
					out[one.name] = one
				}
				return err
			})(s)
		})
		return out, err
	})
}

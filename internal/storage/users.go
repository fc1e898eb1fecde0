package storage

import (
	"context"
	"encoding/xml"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A user is a place in a domain that names files or a volume: a disk with its
// backing files, a kernel, a firmware, a log.
type user struct {
	domain  *virt.Domain
	name    string // of the domain
	place   string // "disk vda", "os.kernel"
	target  string // of a disk that the guest writes to, "" for all else
	medium  bool   // it lies in a CD drive, and can be taken out
	once    bool   // QEMU reads it whole when it starts, and never again: a file for fw_cfg
	reads   bool   // the guest reads it, and cannot write to it
	running bool   // the running guest has it, not only the definition
	source  string // the file that the guest reads and writes
	format  string // of it, if it is a disk's
	below   []string
	loose   string // text that may have paths somewhere in it
	pool    string // by pool and name, if the disk names a volume so
	volume  string
	remotes []string // protocol:name of what is reached by a network, the disk itself and below
	told    bool     // libvirt has told all that is below
	adrift  bool     // where pool and volume are cannot be told: that pool is not defined, or not started
	lacks   string   // for messages: what that volume is, and why nobody can tell
	unread  string   // the image, of source and below, that may lie over more, which could not be read
	closed  string   // the pool that has to be started for that to be read
}

func (u user) String() string {
	where := "defined"
	if u.running {
		where = "running"
	}
	return fmt.Sprintf("domain %s (%s), %s%s", u.name, where, u.place, u.lacks)
}

// has says whether the guest reads and writes this very volume.
func (u user) has(pool, name, file string) bool {
	return pool != "" && u.pool == pool && u.volume == name || file != "" && u.source == path.Clean(file)
}

// liesOver says whether the volume is below what the guest writes to.
func (u user) liesOver(file string) bool {
	return file != "" && slices.Contains(u.below, path.Clean(file))
}

// needs says whether the user can do without the volume.
func (u user) needs(pool, name, file string) bool {
	return u.has(pool, name, file) || u.liesOver(file) || file != "" && strings.Contains(u.loose, path.Clean(file))
}

// users lists what all domains name, live and inactive, with the backing files
// as far as libvirt tells them: of a guest that is off it does not, and then
// the volumes of the pools do (backedBy).
func users(ctx context.Context, h *virt.Host) ([]user, error) { return usersBy(ctx, h, usersIn) }

// usersBy lists what read finds in the documents of all domains.
func usersBy(ctx context.Context, h *virt.Host, read func(document string, like user) ([]user, error)) ([]user, error) {
	domains, err := h.Domains(ctx)
	if err != nil {
		return nil, err
	}
	var out []user
	for _, d := range domains {
		power, _, err := d.State(ctx)
		if virt.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, running := range []bool{true, false} {
			if running && !power.Active() {
				continue
			}
			flags := virt.XMLInactive
			if running {
				flags = 0
			}
			document, err := d.XML(ctx, flags)
			if virt.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			found, err := read(document, user{domain: d, name: d.Name(), running: running})
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// layer is a disk, or a backing store below one. The schema ends after two
// levels of these; a chain of snapshots is longer.
type layer struct {
	Source struct {
		File string `xml:"file,attr"`
		Dev  string `xml:"dev,attr"`
		Dir  string `xml:"dir,attr"`

		Protocol string `xml:"protocol,attr"`
		Name     string `xml:"name,attr"`
	} `xml:"source"`
	Below *layer `xml:"backingStore"`
}

func (l *layer) file() string {
	for _, f := range []string{l.Source.File, l.Source.Dev, l.Source.Dir} {
		if f != "" {
			return path.Clean(f)
		}
	}
	return ""
}

// remote is protocol:name of a layer that is reached by a network, else "".
func (l *layer) remote() string {
	if l.Source.Protocol == "" || l.Source.Name == "" {
		return ""
	}
	return l.Source.Protocol + ":" + l.Source.Name
}

// usersIn lists what one definition names; like is what they have in common.
func usersIn(document string, like user) ([]user, error) {
	def, err := spec.Domain().Decode(document)
	if err != nil {
		return nil, err
	}
	var chains struct {
		Disks []layer `xml:"devices>disk"`
	}
	if err := xml.Unmarshal([]byte(document), &chains); err != nil {
		return nil, fmt.Errorf("read the disks of domain %s: %w", like.name, err)
	}
	var out []user
	for i, disk := range def.At("devices.disks").Elems() {
		u := like
		u.place = "disk " + disk.At("target.dev").Str()
		device := disk.Attr("device").Str()
		u.medium = device == "cdrom"
		u.reads = u.medium || disk.Attr("read_only").Bool()
		if (device == "" || device == "disk" || device == "lun") && !disk.Attr("read_only").Bool() {
			u.target = disk.At("target.dev").Str()
		}
		u.pool, u.volume = disk.At("source.volume.pool").Str(), disk.At("source.volume.volume").Str()
		u.format = disk.At("driver.type").Str()
		if i < len(chains.Disks) {
			u.source = chains.Disks[i].file()
			u.told = u.running && chains.Disks[i].Below != nil
			for at := &chains.Disks[i]; at != nil; at = at.Below {
				if f := at.file(); f != "" && at != &chains.Disks[i] {
					u.below = append(u.below, f)
				}
				if r := at.remote(); r != "" {
					u.remotes = append(u.remotes, r)
				}
			}
		}
		out = append(out, u)
	}
	devices := def.Attr("devices").With("disks", tree.NullValue)
	def.With("devices", devices).Walk(func(at tree.Path, v tree.Value) bool {
		u := like
		switch text := v.Str(); {
		case path.IsAbs(text):
			u.source = path.Clean(text)
		case strings.Contains(text, "/") && at[0].Attr == "qemu_commandline":
			u.loose = text
		default:
			return true
		}
		u.place = at.String()
		u.once = at[0].Attr == "sys_info" || fwCfgArgument.MatchString(u.loose)
		out = append(out, u)
		return true
	})
	return out, nil
}

// fwCfgArgument is what follows -fw_cfg on a command line of QEMU.
var fwCfgArgument = regexp.MustCompile(`^name=[^,]+,file=`)

// census remembers who uses what for a moment, so that a refresh of many
// volumes asks for every domain once. Whoever is about to take something away
// asks afresh, with users.
type census struct {
	mu    sync.Mutex
	until time.Time
	last  []user
	known *places // what stands at the paths that they name
}

// momentary is how long an answer may be used: shorter than a person needs to
// look at a plan, longer than a refresh needs for some hundred volumes. Where
// asking takes long, the answer lasts longer too.
const momentary = 2 * time.Second

func (c *census) users(ctx context.Context, h *virt.Host) ([]user, *places, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Before(c.until) {
		return c.last, c.known, nil
	}
	all, err := users(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	c.last, c.known, c.until = all, newPlaces(h), time.Now().Add(max(momentary, 5*time.Since(now)))
	return all, c.known, nil
}

// list names users for a message, each once.
func list(all []user) []string {
	var names []string
	for _, u := range all {
		if s := u.String(); !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names
}

// Package storage knows libvirt's storage pools and volumes: what a change to
// one means and how it is made.
//
// libvirt has no lock on a volume: it deletes and overwrites what a running
// guest uses, and truncates what it is asked to shrink. So every such check is
// made here, from the XML of all domains: who uses this file, now or at its
// next start? What a volume was made from acts once; a volume that exists is
// never made again because of it. A pool's storage is never deleted unless the
// configuration says so in as many words.
package storage

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A user is a disk of a domain that names a file or a volume.
type user struct {
	domain  *virt.Domain
	target  string // of the disk: vda
	running bool   // the running guest has it, not only the definition
	paths   []string
	pool    string // by pool and name, if the disk names a volume so
	volume  string
}

func (u user) String() string {
	where := "defined"
	if u.running {
		where = "running"
	}
	return fmt.Sprintf("domain %s (%s), disk %s", u.domain.Name(), where, u.target)
}

// users lists all disks of all domains, live and inactive, with their backing
// files as far as libvirt names them.
func users(ctx context.Context, h *virt.Host) ([]user, error) {
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
			flags := virt.XMLInactive
			if running {
				flags = 0
			}
			if running && !power.Active() {
				continue
			}
			xml, err := d.XML(ctx, flags)
			if virt.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			def, err := spec.Domain().Decode(xml)
			if err != nil {
				return nil, err
			}
			for _, disk := range def.At("devices.disks").Elems() {
				out = append(out, user{
					domain: d, target: disk.At("target.dev").Str(), running: running, paths: chain(disk),
					pool: disk.At("source.volume.pool").Str(), volume: disk.At("source.volume.volume").Str(),
				})
			}
		}
	}
	return out, nil
}

// census remembers who uses what for a moment, so that a refresh of many
// volumes asks for every domain once. Whoever is about to take something away
// asks afresh, with users.
type census struct {
	mu   sync.Mutex
	at   time.Time
	last []user
}

// momentary is how long an answer may be used: shorter than a person needs to
// look at a plan, longer than a refresh needs for some hundred volumes.
const momentary = 2 * time.Second

func (c *census) users(ctx context.Context, h *virt.Host) ([]user, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < momentary {
		return c.last, nil
	}
	all, err := users(ctx, h)
	if err != nil {
		return nil, err
	}
	c.at, c.last = time.Now(), all
	return all, nil
}

// chain lists the files of a disk: its source and the backing files below.
func chain(disk tree.Value) []string {
	var out []string
	for at := disk; !at.IsNull(); at = at.Attr("backing_store") {
		for _, p := range []string{"source.file.file", "source.block.dev", "source.dir.dir"} {
			if s := at.At(p).Str(); s != "" {
				out = append(out, path.Clean(s))
			}
		}
	}
	return out
}

// uses says whether the disk names the volume.
func (u user) uses(pool, name, file string) bool {
	if u.pool == pool && u.volume == name && pool != "" {
		return true
	}
	for _, p := range u.paths {
		if file != "" && p == path.Clean(file) {
			return true
		}
	}
	return false
}

// list joins users for a message, each once.
func list(all []user) string {
	seen := map[string]bool{}
	var names []string
	for _, u := range all {
		if s := u.String(); !seen[s] {
			seen[s] = true
			names = append(names, s)
		}
	}
	return strings.Join(names, "; ")
}

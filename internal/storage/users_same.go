package storage

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// One file may have several names: the target of a pool is a link, a device has
// many nodes, a pool was given another name while a guest runs with the old one.
// So whoever writes to a volume, or takes it away, compares files and not texts.

// places remembers for a while what stands at the paths of the host.
type places struct {
	host    *virt.Host
	mu      sync.Mutex
	files   map[string]virt.FileID // the zero value: nothing is known of it
	keys    map[string]string      // of the volumes at paths below /dev, "" if there is none
	volumes map[string]string      // their paths, by pool/name, "" if none is known
}

func newPlaces(h *virt.Host) *places {
	return &places{host: h, files: map[string]virt.FileID{}, keys: map[string]string{}, volumes: map[string]string{}}
}

// remember returns what is in a map, or asks and puts it there.
func remember[T any](p *places, all map[string]T, key string, ask func() T) T {
	p.mu.Lock()
	v, ok := all[key]
	p.mu.Unlock()
	if ok {
		return v
	}
	v = ask()
	p.mu.Lock()
	defer p.mu.Unlock()
	all[key] = v
	return v
}

func (p *places) file(ctx context.Context, name string) (id virt.FileID, ok bool) {
	id = remember(p, p.files, name, func() virt.FileID { id, _ := p.host.View().FileID(ctx, name); return id })
	return id, id != virt.FileID{}
}

// device returns the key of the volume that a path below /dev leads to: libvirt
// knows the names of its pools' devices.
func (p *places) device(ctx context.Context, name string) string {
	return remember(p, p.keys, name, func() string {
		vol, err := p.host.LookupVolumeByPath(ctx, name)
		if err != nil {
			return ""
		}
		return vol.Key()
	})
}

// volume returns where a volume of a pool is, or would be. It is "" if there is no
// such pool any more.
func (p *places) volume(ctx context.Context, pool, name string) string {
	return remember(p, p.volumes, pool+"/"+name, func() string {
		found, err := p.host.LookupPoolByName(ctx, pool)
		if err != nil {
			return ""
		}
		if vol, err := found.LookupVolume(ctx, name); err == nil {
			return vol.Path()
		}
		document, err := found.XML(ctx, false)
		if err != nil {
			return ""
		}
		def, err := spec.Pool().Decode(document)
		target := def.At("target.path").Str()
		if err != nil || target == "" {
			return ""
		}
		return path.Join(target, name)
	})
}

// identity compares what others name with one volume.
type identity struct {
	file, pool, name string
	key              string
	places           *places
	unread           []string // images that may lie over it, of which nobody could say (backedBy)
}

func identityOf(h *virt.Host, vol *virt.Volume) *identity { return newPlaces(h).identityOf(vol) }

func (p *places) identityOf(vol *virt.Volume) *identity {
	return &identity{file: vol.Path(), pool: vol.PoolName(), name: vol.Name(), key: vol.Key(), places: p}
}

// is says whether a path leads to the volume.
func (i *identity) is(ctx context.Context, file string) bool {
	switch {
	case file == "" || i.file == "":
		return false
	case path.Clean(file) == path.Clean(i.file):
		return true
	}
	if x, ok := i.places.file(ctx, file); ok {
		if y, ok := i.places.file(ctx, i.file); ok && x == y {
			return true
		}
	}
	isDevice := func(f string) bool { return strings.HasPrefix(f, "/dev/") }
	return isDevice(file) && isDevice(i.file) && i.places.device(ctx, file) == i.key
}

// has says whether the guest reads and writes this very volume.
func (i *identity) has(ctx context.Context, u user) bool {
	return u.has(i.pool, i.name, i.file) || i.is(ctx, u.source) || i.named(ctx, u)
}

// named says whether a disk that names pool and volume means this one by another
// name. Where a pool is gone nobody can say which file a guest has, so a volume of
// the same name is taken for this one.
func (i *identity) named(ctx context.Context, u user) bool {
	switch {
	case u.pool == "":
		return false
	case u.pool == i.pool: // another name in the same directory
		return i.is(ctx, path.Join(path.Dir(i.file), u.volume))
	}
	if file := i.places.volume(ctx, u.pool, u.volume); file != "" {
		return i.is(ctx, file)
	}
	return u.volume == i.name
}

// isRemote says whether protocol:name, as a domain names storage of a network, is
// the volume.
func (i *identity) isRemote(remote string) bool {
	protocol, name, _ := strings.Cut(remote, ":")
	switch protocol {
	case "rbd":
		name, _, _ = strings.Cut(name, "@") // a snapshot of the image
	case "iscsi":
		target, unit, _ := strings.Cut(name, "/")
		if unit == "" {
			unit = "0"
		}
		return strings.HasSuffix(i.file, "-iscsi-"+target+"-lun-"+unit)
	case "gluster":
		if strings.HasPrefix(i.key, "gluster") && strings.HasSuffix(i.key, "/"+strings.TrimPrefix(name, "/")) {
			return true
		}
	}
	name = strings.TrimPrefix(path.Clean(name), "/")
	return name == strings.TrimPrefix(path.Clean(i.file), "/") || name == strings.TrimPrefix(path.Clean(i.key), "/")
}

// liesUnder says whether the volume is below what the guest writes to.
func (i *identity) liesUnder(ctx context.Context, u user) bool {
	return u.liesOver(i.file) || slices.ContainsFunc(u.below, func(f string) bool { return i.is(ctx, f) })
}

// neededBy says whether the user can not do without the volume.
func (i *identity) neededBy(ctx context.Context, u user) bool {
	return u.needs(i.pool, i.name, i.file) || u.adrift && u.volume == i.name || slices.ContainsFunc(u.remotes, i.isRemote) ||
		i.has(ctx, u) || i.liesUnder(ctx, u)
}

// among picks those who use the volume.
func (i *identity) among(ctx context.Context, all []user) []user {
	var found []user
	for _, u := range all {
		if i.neededBy(ctx, u) {
			found = append(found, u)
		}
	}
	return found
}

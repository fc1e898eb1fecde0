package virt

import (
	"context"
	"fmt"
	"path"
	"strings"

	"libvirt.org/go/libvirt"
)

// Volume is a handle on one volume, by pool and name.
type Volume struct {
	host   *Host
	pool   string
	name   string
	key    string
	path   string
	handle handle[libvirt.StorageVol]
}

// Name returns the name within the pool.
func (v *Volume) Name() string { return v.name }

// Key returns libvirt's identity of the volume: for files their path.
func (v *Volume) Key() string { return v.key }

// Path returns where the volume is on the host.
func (v *Volume) Path() string { return v.path }

// PoolName returns the name of the pool.
func (v *Volume) PoolName() string { return v.pool }

func freeVolume(v libvirt.StorageVol) { _ = v.Free() }

// newVolume reads what identifies a volume; pool is "" if it has to be asked for.
func (h *Host) newVolume(s *session, pool string, vol *libvirt.StorageVol) (*Volume, error) {
	v := &Volume{host: h, pool: pool}
	v.handle.keep(s, vol, freeVolume)
	var err error
	if v.name, err = vol.GetName(); err != nil {
		return nil, err
	}
	if v.key, err = vol.GetKey(); err != nil {
		return nil, err
	}
	if v.path, err = vol.GetPath(); err != nil || pool != "" {
		return v, err
	}
	p, err := vol.LookupPoolByVolume()
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Free() }()
	v.pool, err = p.GetName()
	return v, err
}

func (h *Host) volume(ctx context.Context, c Call, pool string, f func(*session) (*libvirt.StorageVol, error)) (v *Volume, err error) {
	err = h.call(ctx, c, func(s *session) error {
		vol, err := f(s)
		if err != nil {
			return err
		}
		v, err = h.newVolume(s, pool, vol)
		return err
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// LookupVolume finds a volume by its key, for files their path, in the pools
// that are active. A file in the directory of a pool that is not active is
// ErrOperationInvalid, as in Pool.LookupVolume; of other keys libvirt cannot tell
// which pool they belong to, and says that there is no such volume.
func (h *Host) LookupVolume(ctx context.Context, key string) (*Volume, error) {
	return h.lookupVolume(ctx, key, (*libvirt.Connect).LookupStorageVolByKey)
}

// LookupVolumeByPath finds a volume by its path, like LookupVolume.
func (h *Host) LookupVolumeByPath(ctx context.Context, path string) (*Volume, error) {
	return h.lookupVolume(ctx, path, (*libvirt.Connect).LookupStorageVolByPath)
}

func (h *Host) lookupVolume(ctx context.Context, id string, look func(*libvirt.Connect, string) (*libvirt.StorageVol, error)) (*Volume, error) {
	return h.volume(ctx, Call{"look up volume", id, false}, "", func(s *session) (*libvirt.StorageVol, error) {
		vol, err := look(s.conn, id)
		if answered(err, libvirt.ERR_NO_STORAGE_VOL) && path.IsAbs(id) {
			return nil, unlessStopped(s.conn, path.Clean(id), err)
		}
		return vol, err
	})
}

// unlessStopped returns absent, the answer that there is no volume of that path,
// unless the path is in a pool that is not active and so says nothing.
func unlessStopped(conn *libvirt.Connect, volume string, absent error) error {
	pools, err := conn.ListAllStoragePools(libvirt.CONNECT_LIST_STORAGE_POOLS_INACTIVE)
	if err != nil {
		return err
	}
	defer func() {
		for i := range pools {
			_ = pools[i].Free()
		}
	}()
	for i := range pools {
		document, err := pools[i].GetXMLDesc(0)
		if answered(err, libvirt.ERR_NO_STORAGE_POOL) {
			continue // undefined since the list was made
		}
		if err != nil {
			return err
		}
		if target := path.Clean(targetIn(document)); path.IsAbs(target) && strings.HasPrefix(volume, strings.TrimSuffix(target, "/")+"/") {
			return libvirt.Error{
				Code: libvirt.ERR_OPERATION_INVALID, Domain: libvirt.FROM_STORAGE, Level: libvirt.ERR_ERROR,
				Message: fmt.Sprintf("storage pool '%s', whose target %s it is in, is not active", nameIn(document), target),
			}
		}
	}
	return absent
}

// LookupVolume finds a volume of the pool by its name. In a pool that is not
// active it fails with ErrOperationInvalid.
func (p *Pool) LookupVolume(ctx context.Context, name string) (*Volume, error) {
	var v *Volume
	err := p.host.call(ctx, Call{"look up volume", name, false}, func(s *session) error {
		return p.on(func(pool *libvirt.StoragePool) error {
			vol, err := pool.LookupStorageVolByName(name)
			if err != nil {
				return err
			}
			v, err = p.host.newVolume(s, p.name, vol)
			return err
		})(s)
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Volumes lists the volumes of the pool, which must be active, as of its last
// refresh.
func (p *Pool) Volumes(ctx context.Context) (out []*Volume, err error) {
	err = p.host.call(ctx, Call{"list the volumes of pool", p.name, false}, func(s *session) error {
		out = nil
		return p.on(func(pool *libvirt.StoragePool) error {
			all, err := pool.ListAllStorageVolumes(0)
			for i := range all {
				vol := all[i]
				v, err := p.host.newVolume(s, p.name, &vol)
				if IsNotFound(p.host.wrap(Call{}, err)) {
					continue // somebody deleted it since the list was made
				}
				if err != nil {
					return err
				}
				out = append(out, v)
			}
			return err
		})(s)
	})
	return out, err
}

// CreateFlags are those of CreateVolume.
type CreateFlags struct{ PreallocMetadata, Reflink bool }

func (f CreateFlags) bits() (bits libvirt.StorageVolCreateFlags) {
	if f.PreallocMetadata {
		bits |= libvirt.STORAGE_VOL_CREATE_PREALLOC_METADATA
	}
	if f.Reflink {
		bits |= libvirt.STORAGE_VOL_CREATE_REFLINK
	}
	return bits
}

// CreateVolume makes a volume. One of the same name is an error, and never
// overwritten. It lasts as long as the host takes to allocate.
func (p *Pool) CreateVolume(ctx context.Context, xml string, flags CreateFlags) (*Volume, error) {
	return p.create(ctx, "create volume", xml, func(_ *session, pool *libvirt.StoragePool) (*libvirt.StorageVol, error) {
		return pool.StorageVolCreateXML(xml, flags.bits())
	})
}

// CloneVolume makes a volume with the content of another, which may be in
// another pool. The host copies; it lasts as long as that takes.
func (p *Pool) CloneVolume(ctx context.Context, xml string, from *Volume, flags CreateFlags) (*Volume, error) {
	return p.create(ctx, "clone to volume", xml, func(s *session, pool *libvirt.StoragePool) (vol *libvirt.StorageVol, err error) {
		err = from.on(func(source *libvirt.StorageVol) error {
			vol, err = pool.StorageVolCreateXMLFrom(xml, source, flags.bits())
			return err
		})(s)
		return vol, err
	})
}

func (p *Pool) create(ctx context.Context, op, xml string, f func(*session, *libvirt.StoragePool) (*libvirt.StorageVol, error)) (v *Volume, err error) {
	err = p.host.exclusively(ctx, p.name, func() error {
		return p.host.call(ctx, Call{op, nameIn(xml), true}, func(s *session) error {
			return p.on(func(pool *libvirt.StoragePool) error {
				vol, err := f(s, pool)
				if err != nil {
					return err
				}
				v, err = p.host.newVolume(s, p.name, vol)
				return err
			})(s)
		})
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (v *Volume) on(f func(*libvirt.StorageVol) error) func(*session) error {
	return func(s *session) error {
		return v.handle.use(s, f, func() (*libvirt.StorageVol, error) {
			pool, err := s.conn.LookupStoragePoolByName(v.pool)
			if err != nil {
				return nil, err
			}
			defer func() { _ = pool.Free() }()
			return pool.LookupStorageVolByName(v.name)
		}, freeVolume)
	}
}

func (v *Volume) read(ctx context.Context, op string, f func(*libvirt.StorageVol) error) error {
	return v.host.call(ctx, Call{op, v.name, false}, v.on(f))
}

func (v *Volume) write(ctx context.Context, op string, f func(*libvirt.StorageVol) error) error {
	return v.host.exclusively(ctx, v.pool, func() error {
		return v.host.call(ctx, Call{op, v.name, true}, v.on(f))
	})
}

// XML returns the document.
func (v *Volume) XML(ctx context.Context) (xml string, err error) {
	err = v.read(ctx, "read the XML of volume", func(vol *libvirt.StorageVol) (err error) { xml, err = vol.GetXMLDesc(0); return err })
	return xml, err
}

// VolumeInfo is a volume's kind and sizes in bytes.
type VolumeInfo struct {
	Type                 string // file, block, dir, network, netdir, ploop
	Capacity, Allocation uint64
}

var volumeTypes = map[libvirt.StorageVolType]string{
	libvirt.STORAGE_VOL_FILE: "file", libvirt.STORAGE_VOL_BLOCK: "block", libvirt.STORAGE_VOL_DIR: "dir",
	libvirt.STORAGE_VOL_NETWORK: "network", libvirt.STORAGE_VOL_NETDIR: "netdir", libvirt.STORAGE_VOL_PLOOP: "ploop",
}

// Info returns kind and sizes, looked up on the storage by the call itself.
func (v *Volume) Info(ctx context.Context) (out VolumeInfo, err error) {
	err = v.read(ctx, "read the sizes of volume", func(vol *libvirt.StorageVol) error {
		i, err := vol.GetInfo()
		if err == nil {
			out = VolumeInfo{named(volumeTypes, i.Type), i.Capacity, i.Allocation}
		}
		return err
	})
	return out, err
}

// DeleteFlags are those of Delete. Most kinds of pools, a directory among them,
// refuse them.
type DeleteFlags struct {
	Zeroed    bool // overwrite with zeros before
	Snapshots bool // delete the storage's snapshots of the volume too
}

// Delete removes the volume and its content. libvirt has no lock: it also
// deletes what a running guest uses.
func (v *Volume) Delete(ctx context.Context, flags DeleteFlags) error {
	f := libvirt.STORAGE_VOL_DELETE_NORMAL
	if flags.Zeroed {
		f |= libvirt.STORAGE_VOL_DELETE_ZEROED
	}
	if flags.Snapshots {
		f |= libvirt.STORAGE_VOL_DELETE_WITH_SNAPSHOTS
	}
	return v.write(ctx, "delete volume", func(vol *libvirt.StorageVol) error { return vol.Delete(f) })
}

// ResizeFlags are those of Resize.
type ResizeFlags struct {
	Allocate bool // allocate the new space at once
	Shrink   bool // allow less than now, which cuts off content
}

// Resize sets the capacity in bytes. A guest that uses the volume is not told:
// that is the domain's block resize.
func (v *Volume) Resize(ctx context.Context, bytes uint64, flags ResizeFlags) error {
	var f libvirt.StorageVolResizeFlags
	if flags.Allocate {
		f |= libvirt.STORAGE_VOL_RESIZE_ALLOCATE
	}
	if flags.Shrink {
		f |= libvirt.STORAGE_VOL_RESIZE_SHRINK
	}
	return v.write(ctx, "resize volume", func(vol *libvirt.StorageVol) error { return vol.Resize(bytes, f) })
}

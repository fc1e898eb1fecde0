package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// PoolState is libvirt's state of a pool.
type PoolState int

// The states. Only a running or degraded pool answers for its volumes.
const (
	PoolInactive     = PoolState(libvirt.STORAGE_POOL_INACTIVE)
	PoolBuilding     = PoolState(libvirt.STORAGE_POOL_BUILDING)
	PoolRunning      = PoolState(libvirt.STORAGE_POOL_RUNNING)
	PoolDegraded     = PoolState(libvirt.STORAGE_POOL_DEGRADED)
	PoolInaccessible = PoolState(libvirt.STORAGE_POOL_INACCESSIBLE)
)

var poolStateNames = map[PoolState]string{
	PoolInactive: "inactive", PoolBuilding: "building", PoolRunning: "running", PoolDegraded: "degraded", PoolInaccessible: "inaccessible",
}

func (s PoolState) String() string { return named(poolStateNames, s) }

// PoolInfo is the state of a pool and its sizes in bytes.
type PoolInfo struct {
	State                           PoolState
	Capacity, Allocation, Available uint64
}

// Pool is a handle on one storage pool, by UUID. Everything that changes a pool
// or one of its volumes is done one at a time within this process, and waits
// while the daemon says that the pool has jobs of other clients under way.
type Pool struct {
	host   *Host
	uuid   string
	name   string
	handle handle[libvirt.StoragePool]
}

// UUID returns the identity.
func (p *Pool) UUID() string { return p.uuid }

// Name returns the name. Pools cannot be renamed.
func (p *Pool) Name() string { return p.name }

func (h *Host) newPool(s *session, pool *libvirt.StoragePool) (*Pool, error) {
	p := &Pool{host: h}
	p.handle.keep(s, pool, freePool)
	var err error
	if p.uuid, err = pool.GetUUIDString(); err != nil {
		return nil, err
	}
	p.name, err = pool.GetName()
	return p, err
}

func freePool(p libvirt.StoragePool) { _ = p.Free() }

func (h *Host) pool(ctx context.Context, c Call, f func(*libvirt.Connect) (*libvirt.StoragePool, error)) (p *Pool, err error) {
	err = h.call(ctx, c, func(s *session) error {
		pool, err := f(s.conn)
		if err != nil {
			return err
		}
		p, err = h.newPool(s, pool)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// LookupPool finds a pool by UUID, active or not.
func (h *Host) LookupPool(ctx context.Context, uuid string) (*Pool, error) {
	return h.pool(ctx, Call{"look up pool", uuid, false}, func(c *libvirt.Connect) (*libvirt.StoragePool, error) {
		return c.LookupStoragePoolByUUIDString(uuid)
	})
}

// LookupPoolByName finds a pool by name, active or not.
func (h *Host) LookupPoolByName(ctx context.Context, name string) (*Pool, error) {
	return h.pool(ctx, Call{"look up pool", name, false}, func(c *libvirt.Connect) (*libvirt.StoragePool, error) {
		return c.LookupStoragePoolByName(name)
	})
}

// DefinePool writes a definition, also over that of an active pool of the same
// UUID and name. The storage itself is not touched.
func (h *Host) DefinePool(ctx context.Context, xml string) (p *Pool, err error) {
	name := nameIn(xml)
	err = h.exclusively(ctx, name, func() error {
		p, err = h.pool(ctx, Call{"define pool", name, true}, func(c *libvirt.Connect) (*libvirt.StoragePool, error) {
			return c.StoragePoolDefineXML(xml, 0)
		})
		return err
	})
	return p, err
}

// Pools lists all pools, active or not.
func (h *Host) Pools(ctx context.Context) (out []*Pool, err error) {
	err = h.call(ctx, Call{"list pools", "", false}, func(s *session) error {
		out = nil
		all, err := s.conn.ListAllStoragePools(0)
		for i := range all {
			pool := all[i]
			p, err := h.newPool(s, &pool)
			if err != nil {
				return err
			}
			out = append(out, p)
		}
		return err
	})
	return out, err
}

func (p *Pool) read(ctx context.Context, op string, f func(*libvirt.StoragePool) error) error {
	return p.host.call(ctx, Call{op, p.name, false}, p.on(f))
}

func (p *Pool) write(ctx context.Context, op string, f func(*libvirt.StoragePool) error) error {
	return p.host.exclusively(ctx, p.name, func() error {
		return p.host.call(ctx, Call{op, p.name, true}, p.on(f))
	})
}

func (p *Pool) on(f func(*libvirt.StoragePool) error) func(*session) error {
	return func(s *session) error {
		return p.handle.use(s, f, func() (*libvirt.StoragePool, error) { return s.conn.LookupStoragePoolByUUIDString(p.uuid) }, freePool)
	}
}

// XML returns the document: of the definition if inactive, else of the pool as
// it is now. They are the same unless the pool was redefined while it is active.
func (p *Pool) XML(ctx context.Context, inactive bool) (xml string, err error) {
	var flags libvirt.StorageXMLFlags
	if inactive {
		flags = libvirt.STORAGE_XML_INACTIVE
	}
	err = p.read(ctx, "read the XML of pool", func(pool *libvirt.StoragePool) (err error) { xml, err = pool.GetXMLDesc(flags); return err })
	return xml, err
}

// Info returns the state and the sizes in bytes; those of an inactive pool are
// not to be relied on.
func (p *Pool) Info(ctx context.Context) (out PoolInfo, err error) {
	err = p.read(ctx, "read the state of pool", func(pool *libvirt.StoragePool) error {
		i, err := pool.GetInfo()
		if err == nil {
			out = PoolInfo{PoolState(i.State), i.Capacity, i.Allocation, i.Available}
		}
		return err
	})
	return out, err
}

// Autostart says whether the host starts it at boot.
func (p *Pool) Autostart(ctx context.Context) (on bool, err error) {
	err = p.read(ctx, "read autostart of pool", func(pool *libvirt.StoragePool) (err error) { on, err = pool.GetAutostart(); return err })
	return on, err
}

// SetAutostart sets that.
func (p *Pool) SetAutostart(ctx context.Context, on bool) error {
	return p.write(ctx, "set autostart of pool", func(pool *libvirt.StoragePool) error { return pool.SetAutostart(on) })
}

// IsActive says whether it is started.
func (p *Pool) IsActive(ctx context.Context) (yes bool, err error) {
	err = p.read(ctx, "read the state of pool", func(pool *libvirt.StoragePool) (err error) { yes, err = pool.IsActive(); return err })
	return yes, err
}

// IsPersistent says whether there is a definition.
func (p *Pool) IsPersistent(ctx context.Context) (yes bool, err error) {
	err = p.read(ctx, "read persistence of pool", func(pool *libvirt.StoragePool) (err error) { yes, err = pool.IsPersistent(); return err })
	return yes, err
}

// BuildFlags say what Build does where there is something already. A directory
// pool keeps what the directory holds with either; for the kinds that make a
// file system or a volume group Overwrite destroys the old one. Without a flag
// libvirt takes what is there for granted.
type BuildFlags struct{ NoOverwrite, Overwrite bool }

// Build makes the storage behind the pool: a directory, a file system, a
// volume group. The pool must not be active.
func (p *Pool) Build(ctx context.Context, flags BuildFlags) error {
	f := libvirt.STORAGE_POOL_BUILD_NEW
	if flags.NoOverwrite {
		f |= libvirt.STORAGE_POOL_BUILD_NO_OVERWRITE
	}
	if flags.Overwrite {
		f |= libvirt.STORAGE_POOL_BUILD_OVERWRITE
	}
	return p.write(ctx, "build pool", func(pool *libvirt.StoragePool) error { return pool.Build(f) })
}

// Start starts the pool; its volumes can be used from then on.
func (p *Pool) Start(ctx context.Context) error {
	return p.write(ctx, "start pool", func(pool *libvirt.StoragePool) error { return pool.Create(libvirt.STORAGE_POOL_CREATE_NORMAL) })
}

// Stop stops the pool. The storage and running guests that use it stay as they
// are, but libvirt no longer knows the volumes.
func (p *Pool) Stop(ctx context.Context) error {
	return p.write(ctx, "stop pool", func(pool *libvirt.StoragePool) error { return pool.Destroy() })
}

// Delete removes the storage behind the pool: for a directory pool the
// directory, which must be empty. The pool must not be active.
func (p *Pool) Delete(ctx context.Context) error {
	return p.write(ctx, "delete the storage of pool", func(pool *libvirt.StoragePool) error {
		return pool.Delete(libvirt.STORAGE_POOL_DELETE_NORMAL)
	})
}

// Undefine removes the definition. The pool must not be active.
func (p *Pool) Undefine(ctx context.Context) error {
	return p.write(ctx, "undefine pool", func(pool *libvirt.StoragePool) error { return pool.Undefine() })
}

// Refresh lets libvirt look again what volumes there are. It counts as a write:
// a pool whose refresh fails is stopped by libvirt.
func (p *Pool) Refresh(ctx context.Context) error {
	return p.write(ctx, "refresh pool", func(pool *libvirt.StoragePool) error { return pool.Refresh(0) })
}

package provider

import (
	"os"
	"strconv"
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Data is what every resource and data source shares: the connection and the
// provider's configuration. Resources hold it from the start; Configure fills
// it before the first of them asks the host.
type Data struct {
	mu        sync.RWMutex
	host      *virt.Host
	protect   *bool
	seedStore string
	approved  []string
	owner     string
	seedFiles seedFiles
	seedPools seedPools
}

// configure takes over the provider's configuration; an empty uri is one that
// is not known yet. An earlier connection is closed: a core may configure one
// process twice.
func (d *Data) configure(uri string, protect *bool, seedStore string, approved []string, owner string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.host != nil {
		_ = d.host.Close()
	}
	d.host = nil
	if uri != "" {
		d.host = virt.NewHost(virt.Options{URI: uri})
	}
	d.protect, d.seedStore, d.approved, d.owner = protect, seedStore, approved, owner
	d.seedFiles.forget()
	d.pools().of(d).ForgetSeeds()
}

// Host returns the connection, nil before Configure and while the URI is not
// known.
func (d *Data) Host() *virt.Host {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.host
}

// SeedStore returns the configured directory for seeds, "" if none is.
func (d *Data) SeedStore() string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.seedStore
}

// Approved returns the digests of drift that the provider's configuration or
// the environment approves.
func (d *Data) Approved() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.approved
}

// Owner returns the name that marks what this configuration manages, "" if
// nothing is marked or checked.
func (d *Data) Owner() string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.owner
}

// Protect returns what protects an object that says nothing itself, and where
// that comes from, for messages: the environment before the provider's
// configuration before the standard of the type.
func (d *Data) Protect(standard bool) (protect bool, origin string) {
	if v, err := strconv.ParseBool(os.Getenv("LIBVIRT_PROTECT")); err == nil {
		return v, "LIBVIRT_PROTECT in the environment"
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.protect != nil {
		return *d.protect, "protect in the provider's configuration"
	}
	return standard, "the standard of this resource type"
}

// ProtectSeeds is Protect for seeds, which can be made again from state.
func (d *Data) ProtectSeeds() (protect bool, origin string) { return d.Protect(false) }

// files returns what the seeds of this run know of each other's images.
func (d *Data) files() *seedFiles { return &d.seedFiles }

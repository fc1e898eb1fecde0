package storage

import (
	"context"
	"fmt"
	"path"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// placed are the types of pools whose volumes lie right below the pool's target,
// under their names.
var placed = map[string]bool{"dir": true, "fs": true, "netfs": true, "vstorage": true, "logical": true, "zfs": true}

// locate completes what domains name: where the volumes are that they name by
// pool and name, and what lies below the images that libvirt does not tell of.
// What cannot be told is left as such: adrift, or unread. It is for those who are
// about to take something away, and asks the host afresh.
func locate(ctx context.Context, h *virt.Host, all []user) error {
	h.View().Forget()
	pools, err := h.View().Pools(ctx)
	if err != nil {
		return err
	}
	l := &locator{host: h, pools: pools, files: map[[2]string]string{}}
	told := map[string]bool{}
	for i := range all {
		if all[i].pool != "" {
			if err := l.find(ctx, &all[i]); err != nil {
				return err
			}
		}
		if all[i].told {
			told[all[i].source] = true
		}
	}
	for i := range all {
		u := &all[i]
		// What a running guest has open libvirt tells; the rest is read. What is no
		// image of a disk has no format.
		if u.source == "" || u.format == "raw" || u.format == "" && u.pool == "" || len(u.below) > 0 || told[u.source] {
			continue
		}
		l.follow(ctx, u)
	}
	return nil
}

type locator struct {
	host  *virt.Host
	pools map[string]virt.PoolStanding
	files map[[2]string]string // by pool and volume
}

// find sets the source of a user that names pool and volume.
func (l *locator) find(ctx context.Context, u *user) error {
	standing, defined := l.pools[u.pool]
	at := [2]string{u.pool, u.volume}
	file, asked := l.files[at]
	if !asked && standing.Active {
		var err error
		if file, err = l.listed(ctx, u.pool, u.volume); err != nil {
			return err
		}
	}
	if file == "" && placed[standing.Type] && standing.Target != "" {
		file = path.Join(standing.Target, u.volume)
	}
	l.files[at] = file
	switch {
	case file != "":
		u.source = path.Clean(file)
	case !defined:
		u.adrift = true
		u.lacks = fmt.Sprintf(" (volume %s of pool %s, which is not defined any more)", u.volume, u.pool)
	case !standing.Active:
		u.adrift = true
		u.lacks = fmt.Sprintf(" (volume %s of pool %s, which is not started)", u.volume, u.pool)
	}
	return nil
}

// listed is the path of a volume of a started pool, "" if it has none.
func (l *locator) listed(ctx context.Context, pool, volume string) (string, error) {
	p, err := l.host.LookupPoolByName(ctx, pool)
	var vol *virt.Volume
	if err == nil {
		vol, err = p.LookupVolume(ctx, volume)
	}
	if virt.IsNotFound(err) || virt.HasCode(err, virt.ErrOperationInvalid) { // stopped in the meantime
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return vol.Path(), nil
}

// follow sets what lies below the source of a user.
func (l *locator) follow(ctx context.Context, u *user) {
	view := l.host.View()
	u.below, u.unread = view.Below(ctx, u.source, u.format)
	for _, file := range append([]string{u.source}, u.below...) {
		pool := l.closedOver(file)
		if pool == "" || view.File(ctx, file) == virt.Present && file != u.unread {
			continue
		}
		// It may be there once the pool is started, which mounts file systems.
		u.unread, u.closed = file, pool
		return
	}
}

// closedOver names the pool that is not started and has a file in its directory;
// "" if one that is started has the same.
func (l *locator) closedOver(file string) (closed string) {
	for name, p := range l.pools {
		if !placed[p.Type] || p.Target == "" || path.Dir(file) != p.Target {
			continue
		}
		if p.Active {
			return ""
		}
		closed = name
	}
	return closed
}

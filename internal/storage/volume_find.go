package storage

import (
	"context"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Find resolves POOL/NAME, a key or a path for an import.
func (k *Volume) Find(ctx context.Context, id string) (tree.Value, error) {
	var vol *virt.Volume
	var err error
	if pool, name, isPair := strings.Cut(id, "/"); isPair && pool != "" {
		vol, err = k.named(ctx, pool, name)
	}
	if vol == nil && (err == nil || virt.IsNotFound(err)) {
		vol, err = k.placed(ctx, id)
	}
	if virt.IsNotFound(err) {
		return tree.NullValue, kind.NotFound(kind.Problem{
			Summary: fmt.Sprintf("There is no volume %q", id),
			Detail:  fmt.Sprintf("The host %s has no volume of that key or path in a started pool. An import takes the key or path (virsh vol-key NAME POOL), or POOL/NAME as `virsh vol-list POOL` shows it. A file that appeared later is seen after `virsh pool-refresh POOL`.", k.host().Display()),
		}, err)
	}
	if err != nil {
		return tree.NullValue, err
	}
	return tree.ObjectValue(map[string]tree.Value{
		"id": tree.StringValue(vol.Key()), "key": tree.StringValue(vol.Key()), "name": tree.StringValue(vol.Name()),
		"pool": tree.StringValue(vol.PoolName()), "path": tree.StringValue(vol.Path()),
	}), nil
}

// named finds a volume by its pool and name. They go before the key, which need not be of
// one volume only: for an image of Ceph it is SOURCE/IMAGE, whatever cluster that
// is in, and the source can have the name of another pool.
func (k *Volume) named(ctx context.Context, pool, name string) (*virt.Volume, error) {
	p, err := k.host().LookupPoolByName(ctx, pool)
	if err != nil {
		return nil, err
	}
	return p.LookupVolume(ctx, name)
}

// placed finds a volume by its key or its path. Below the target of a pool that is
// off, as /dev can be, the host does not know whether there is one of that key;
// one of a started pool can still have that path.
func (k *Volume) placed(ctx context.Context, id string) (*virt.Volume, error) {
	vol, err := k.host().LookupVolume(ctx, id)
	if !virt.IsNotFound(err) && !virt.HasCode(err, virt.ErrOperationInvalid) {
		return vol, err
	}
	if vol, pathErr := k.host().LookupVolumeByPath(ctx, id); !virt.IsNotFound(pathErr) && !virt.HasCode(pathErr, virt.ErrOperationInvalid) {
		return vol, pathErr
	}
	return nil, err
}

package domain

import (
	"context"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Find resolves a UUID or a name for an import.
func (k *Kind) Find(ctx context.Context, id string) (tree.Value, error) {
	dom, err := k.find(ctx, id)
	if virt.IsNotFound(err) && kind.IsUUID(id) {
		dom, err = k.host().LookupDomainByName(ctx, id) // a name can look like a UUID
	}
	if virt.IsNotFound(err) {
		return tree.NullValue, kind.NotFound(kind.Problem{
			Summary: fmt.Sprintf("There is no domain %q", id),
			Detail:  fmt.Sprintf("The host %s has no domain of that UUID or name. An import takes the UUID (virsh domuuid NAME) or the name, as `virsh list --all` shows it; the number before the name is that of one run, and identifies nothing.", k.host().Display()),
		}, err)
	}
	if err != nil {
		return tree.NullValue, err
	}
	return tree.ObjectValue(map[string]tree.Value{
		"uuid": tree.StringValue(dom.UUID()), "name": tree.StringValue(dom.Name()),
	}), nil
}

package storage

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// volumeDocument is what of a tree is in the XML of a new volume.
func volumeDocument(v tree.Value) tree.Value {
	for _, name := range []string{"id", "key", "path", "pool", "allocation", "allocation_unit", "physical", "physical_unit"} {
		v = v.With(name, tree.NullValue)
	}
	return v.SetAt("target.path", tree.NullValue)
}

// Create makes the volume, fills it and grows it. A volume that could not be
// filled is deleted again. An existing one is never taken over.
func (k *Volume) Create(ctx context.Context, planned, _ tree.Value) (done kind.Done, err error) {
	name, poolName := planned.Attr("name").Str(), planned.Attr("pool").Str()
	pool, err := k.host().LookupPoolByName(ctx, poolName)
	if virt.IsNotFound(err) {
		return done, kind.Refuse(kind.Problem{
			Path: tree.Root.Attr("pool"), Summary: fmt.Sprintf("There is no pool %q for volume %q", poolName, name),
			Detail: "Nothing was made. Create the pool first; as a reference (pool = libvirt_pool.x.name) the core knows the order.",
		})
	}
	if err != nil {
		return done, err
	}
	if err := k.refuseStopped(ctx, pool, name); err != nil {
		return done, err
	}
	if err := k.refuseExisting(ctx, pool, name); err != nil {
		return done, err
	}
	vol, steps, err := k.make(ctx, pool, planned)
	if err != nil {
		return done, err
	}
	done.Exists, done.Steps = true, steps
	s, err := see(ctx, vol)
	if err != nil {
		done.Facts = kind.Facts{Name: name, Definition: planned.Known().With("key", tree.StringValue(vol.Key())).
			With("id", tree.StringValue(vol.Key())).With("path", tree.StringValue(vol.Path()))}
		return done, fmt.Errorf("read volume %s back: %w", name, err)
	}
	if done.Facts, err = k.facts(ctx, s, tree.NullValue); err != nil {
		return done, err
	}
	return done, kind.Unmet(k, name, tree.NullValue, planned, s.definition)
}

func (k *Volume) refuseExisting(ctx context.Context, pool *virt.Pool, name string) error {
	// libvirt's list may be older than the disk.
	if err := pool.Refresh(ctx); err != nil {
		return err
	}
	vol, err := pool.LookupVolume(ctx, name)
	if virt.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return kind.Refuse(kind.Problem{
		Path: tree.Root.Attr("name"), Summary: fmt.Sprintf("Volume %q exists already in pool %q", name, pool.Name()),
		Detail: fmt.Sprintf("It is %s on the host %s. It was not touched: its content may matter to somebody. To manage it, import it: `import ADDRESS %s/%s`. To have another one, choose another name.", vol.Path(), k.host().Display(), pool.Name(), name),
	})
}

// make creates the volume with its content.
func (k *Volume) make(ctx context.Context, pool *virt.Pool, planned tree.Value) (*virt.Volume, []kind.Step, error) {
	steps := []kind.Step{{Name: "volume", Outcome: kind.Updated}}
	capacity := change.Bytes(planned.Attr("capacity"), planned.Attr("capacity_unit"), "bytes")
	document := volumeDocument(planned.Known())
	url := planned.At("create.content.url").Str()
	if url == "" {
		if capacity.IsNull() && planned.Attr("backing_store").IsNull() {
			return nil, nil, kind.Refuse(kind.Problem{
				Path: tree.Root.Attr("capacity"), Summary: fmt.Sprintf("Volume %q has no size", planned.Attr("name").Str()),
				Detail: "Set capacity, or create.content, or backing_store, which have one.",
			})
		}
		document, err := k.withBackingFormat(ctx, planned, document)
		if err != nil {
			return nil, nil, err
		}
		vol, err := k.empty(ctx, pool, document, capacity)
		return vol, steps, err
	}
	content, err := open(ctx, url, planned.At("create.content.checksum").Str())
	if err != nil {
		return nil, nil, fmt.Errorf("read the content of volume %s: %w", planned.Attr("name").Str(), err)
	}
	defer content.close()
	if err := refuseFormat(planned, content); err != nil {
		return nil, nil, err
	}
	// The volume is made as a raw file of the content's size: filled, it is what
	// its content says, which libvirt sees when it looks again.
	document = document.With("capacity", tree.UintValue(content.size)).With("capacity_unit", tree.StringValue("bytes")).
		With("allocation", tree.UintValue(0)).SetAt("target.format.type", tree.StringValue("raw"))
	xml, err := spec.Volume().Encode(document)
	if err != nil {
		return nil, nil, err
	}
	vol, err := pool.CreateVolume(ctx, xml, virt.CreateFlags{})
	if err != nil {
		return nil, nil, err
	}
	err = func() error {
		if err := content.upload(ctx, vol); err != nil {
			return err
		}
		steps = append(steps, kind.Step{Name: "content", Outcome: kind.Updated})
		if err := pool.Refresh(ctx); err != nil {
			return err
		}
		if grows(capacity, content.virtualSize) {
			steps = append(steps, kind.Step{Name: "capacity", Outcome: kind.Updated})
			return resize(ctx, vol, capacity)
		}
		return refuseSmaller(planned, capacity, content)
	}()
	if err != nil {
		return nil, nil, errors.Join(err, vol.Delete(ctx, virt.DeleteFlags{}))
	}
	return vol, steps, nil
}

// withBackingFormat gives an overlay the format of what it lies over, where
// the configuration gives none, and refuses one that is not that: QEMU would
// take the container for the disk. An overlay itself is qcow2 unless said
// otherwise.
func (k *Volume) withBackingFormat(ctx context.Context, planned, document tree.Value) (tree.Value, error) {
	file := document.At("backing_store.path").Str()
	if file == "" {
		return document, nil
	}
	if document.At("target.format.type").IsNull() {
		document = document.SetAt("target.format.type", tree.StringValue("qcow2"))
	}
	given, found := document.At("backing_store.format.type"), tree.NullValue
	backing, err := k.host().LookupVolumeByPath(ctx, file)
	if err == nil {
		s, err := see(ctx, backing)
		if err != nil {
			return document, err
		}
		found = s.definition.At("target.format.type")
	} else if !virt.IsNotFound(err) && !virt.HasCode(err, virt.ErrOperationInvalid) {
		return document, err
	}
	refuse := func(detail string) (tree.Value, error) {
		return document, kind.Refuse(kind.Problem{
			Path: tree.ParsePath("backing_store.format.type"), Summary: fmt.Sprintf("The format below volume %q is not clear", planned.Attr("name").Str()), Detail: detail,
		})
	}
	switch {
	case given.IsNull() && found.IsNull():
		return refuse(fmt.Sprintf("%s is in no started pool, so its format is not known, and a wrong one would show the guest the container instead of the disk. No volume was made. Set backing_store.format.type.", file))
	case given.IsNull():
		return document.SetAt("backing_store.format.type", found), nil
	case !found.IsNull() && given.Str() != found.Str() && !equalVolume("target.format.type", given, found):
		return refuse(fmt.Sprintf("%s is %s, not %s: the guest would see the container instead of the disk. No volume was made. Set backing_store.format.type to %s, or leave it out.", file, found.Str(), given.Str(), found))
	}
	return document, nil
}

// empty makes a volume without content of its own.
func (k *Volume) empty(ctx context.Context, pool *virt.Pool, document, capacity tree.Value) (*virt.Volume, error) {
	if capacity.IsNull() {
		// An overlay is as large as what it lies over.
		backing, err := k.host().LookupVolumeByPath(ctx, document.At("backing_store.path").Str())
		if err != nil {
			return nil, fmt.Errorf("find the size of the backing store (set capacity if it is in no pool): %w", err)
		}
		info, err := backing.Info(ctx)
		if err != nil {
			return nil, err
		}
		capacity = tree.UintValue(info.Capacity)
	}
	// Without an allocation libvirt writes a raw volume full of zeros.
	document = document.With("capacity", capacity).With("capacity_unit", tree.StringValue("bytes")).With("allocation", tree.UintValue(0))
	xml, err := spec.Volume().Encode(document)
	if err != nil {
		return nil, err
	}
	return pool.CreateVolume(ctx, xml, virt.CreateFlags{})
}

func grows(capacity tree.Value, size uint64) bool {
	n, ok := capacity.Uint()
	return ok && n > size
}

func refuseSmaller(planned, capacity tree.Value, content *content) error {
	n, ok := capacity.Uint()
	if !ok || n == content.virtualSize || equalVolume("capacity", capacity, tree.UintValue(content.virtualSize)) {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Path: tree.Root.Attr("capacity"), Summary: fmt.Sprintf("The content of volume %q is larger than its capacity", planned.Attr("name").Str()),
		Detail: fmt.Sprintf("capacity is %d bytes, the content takes %d. No volume was left behind. Raise capacity, or leave it out.", n, content.virtualSize),
	})
}

func resize(ctx context.Context, vol *virt.Volume, capacity tree.Value) error {
	n, ok := capacity.Uint()
	if !ok || n > math.MaxInt64 {
		return fmt.Errorf("grow volume %s: %s is not a number of bytes", vol.Name(), capacity)
	}
	return vol.Resize(ctx, n, virt.ResizeFlags{})
}

// Update grows the volume: through the running guest that uses it, so that the
// guest sees it, else by itself.
func (k *Volume) Update(ctx context.Context, u kind.Update) (done kind.Done, err error) {
	s, err := k.look(ctx, u.Prior)
	if err != nil {
		return done, err
	}
	status := u.Prior.Attr("status")
	done.Exists = true
	if done.Facts, err = k.facts(ctx, s, status); err != nil {
		return done, err
	}
	size := func(v tree.Value) tree.Value {
		return change.Bytes(v.Attr("capacity"), v.Attr("capacity_unit"), "bytes")
	}
	want, have := size(u.Planned), size(s.definition)
	if want.IsNull() || want.Num().Cmp(have.Num()) == 0 || equalVolume("capacity", want, have) {
		return done, nil
	}
	if want.Num().Cmp(have.Num()) < 0 {
		return done, kind.Refuse(kind.Problem{
			Path: tree.Root.Attr("capacity"), Summary: fmt.Sprintf("Refusing to shrink volume %q", s.name),
			Detail: fmt.Sprintf("It has %s bytes now, the plan asks for %s. Nothing was changed.", have, want),
		})
	}
	if err = k.grow(ctx, s, want); err != nil {
		return done, err
	}
	done.Steps = []kind.Step{{Name: "capacity", Outcome: kind.Updated}}
	if s, err = k.look(ctx, u.Prior); err != nil {
		return done, err
	}
	if done.Facts, err = k.facts(ctx, s, status); err != nil {
		return done, err
	}
	return done, kind.Unmet(k, s.name, u.Prior, u.Planned, s.definition)
}

func (k *Volume) grow(ctx context.Context, s *volumeSight, want tree.Value) error {
	found, err := k.usersOf(ctx, s)
	if err != nil {
		return err
	}
	bytes, ok := want.Uint()
	if !ok {
		return fmt.Errorf("grow volume %s: %s is not a number of bytes", s.name, want)
	}
	for _, u := range found {
		if !u.running {
			continue
		}
		if err := u.domain.BlockResize(ctx, u.target, bytes); err != nil {
			return err
		}
		pool, err := k.host().LookupPoolByName(ctx, s.vol.PoolName())
		if err != nil {
			return err
		}
		return pool.Refresh(ctx)
	}
	return resize(ctx, s.vol, want)
}

// Delete deletes the volume if nobody needs it.
func (k *Volume) Delete(ctx context.Context, state tree.Value) error {
	s, err := k.look(ctx, state)
	var gone *kind.GoneError
	if errors.As(err, &gone) {
		return nil
	}
	if err != nil {
		return err
	}
	if key := state.Attr("key").Str(); key != "" && key != s.vol.Key() {
		return kind.Refuse(kind.Problem{
			Summary: fmt.Sprintf("Refusing to destroy volume %q: it is not the one in the state", s.name),
			Detail:  fmt.Sprintf("The state has the key %s, the host %s. Nothing was changed. Refresh the state (apply -refresh-only) and repeat.", key, s.vol.Key()),
		})
	}
	if err := k.refuseInUse(ctx, s); err != nil {
		return err
	}
	return s.vol.Delete(ctx, virt.DeleteFlags{})
}

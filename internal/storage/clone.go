package storage

import (
	"context"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A clone is made by the host, which reads one volume and writes the other. It
// takes no lock on what it reads, so a raw volume that a guest writes to would
// come out torn, without a word. Who writes is asked before the copy, and again
// after it, as a guest may have been started meanwhile; and the file has to be as
// it was, as somebody may have written who is gone again.

const cloneAt = "create.clone"

// clone makes the volume as a copy of another one.
func (m *making) clone(ctx context.Context, from tree.Value) (*virt.Volume, error) {
	source, err := m.findOrigin(ctx, from)
	if err != nil {
		return nil, err
	}
	if err := m.fitOrigin(source); err != nil {
		return nil, err
	}
	if err := m.refuseTorn(ctx, source, "Shut the guest down and apply again"); err != nil {
		return nil, also(err, "No volume was made.")
	}
	vol, err := m.copyOf(ctx, source)
	if err != nil {
		return nil, err
	}
	if err := m.refuseTorn(ctx, source, "It was started while the copy was made. Shut the guest down and apply again"); err != nil {
		return nil, m.discard(ctx, vol, err)
	}
	if err := m.refuseWritten(ctx, source); err != nil {
		return nil, m.discard(ctx, vol, err)
	}
	m.step("clone")
	size, _ := source.size().Uint()
	if n, ok := m.capacity.Uint(); ok && n > size && m.files {
		if err := vol.Resize(ctx, n, virt.ResizeFlags{}); err != nil {
			return nil, m.discard(ctx, vol, err)
		}
		m.step("capacity")
	}
	return vol, nil
}

// findOrigin finds the volume that is copied.
func (m *making) findOrigin(ctx context.Context, from tree.Value) (*volumeSight, error) {
	pool, name, file := from.Attr("pool").Str(), from.Attr("volume").Str(), from.Attr("path").Str()
	if file != "" {
		return m.originAt(ctx, file)
	}
	p, err := m.host.LookupPoolByName(ctx, pool)
	if virt.IsNotFound(err) {
		return nil, m.refuseOrigin(cloneAt+".pool", fmt.Sprintf("There is no pool %q to clone volume %q from", pool, m.name), "Create the pool first, or name another one.")
	}
	if err != nil {
		return nil, err
	}
	active, err := p.IsActive(ctx)
	if err != nil {
		return nil, err
	}
	if !active {
		return nil, m.refuseOrigin(cloneAt+".pool", fmt.Sprintf("Pool %q, from which volume %q is cloned, is not started", pool, m.name), fmt.Sprintf("It says nothing about its volumes. Start it: virsh pool-start %s.", pool))
	}
	s, err := seeIn(ctx, p, name)
	if virt.IsNotFound(err) { // a file that came after the pool's last refresh
		if err := refresh(ctx, p); err != nil {
			return nil, err
		}
		s, err = seeIn(ctx, p, name)
	}
	if virt.IsNotFound(err) {
		return nil, m.refuseOrigin(cloneAt+".volume", fmt.Sprintf("There is no volume %q to clone volume %q from", name, m.name), fmt.Sprintf("Pool %q has none of that name; virsh vol-list %s shows what it has.", pool, pool))
	}
	return s, err
}

// originAt finds the volume by its key or path.
func (m *making) originAt(ctx context.Context, file string) (*volumeSight, error) {
	vol, err := m.host.LookupVolume(ctx, file)
	if virt.IsNotFound(err) {
		vol, err = m.host.LookupVolumeByPath(ctx, file)
	}
	if virt.IsNotFound(err) {
		return nil, m.refuseOrigin(cloneAt+".path", fmt.Sprintf("There is no volume %s to clone volume %q from", file, m.name),
			"The host has no volume of that path or key in a started pool. A file that came after its pool's last refresh is found by pool and volume, or after virsh pool-refresh POOL; for one in no pool, make a pool of its directory.")
	}
	if err != nil {
		return nil, err
	}
	return see(ctx, vol)
}

// fitOrigin refuses what cannot be copied into what is asked for, and completes
// the document of the new volume.
func (m *making) fitOrigin(source *volumeSight) error {
	shown := fmt.Sprintf("Volume %q of pool %q", source.name, source.vol.PoolName())
	switch sort := source.definition.Attr("type").Str(); {
	case sort == "dir", sort == "netdir", sort == "ploop":
		return m.refuseOrigin(cloneAt, fmt.Sprintf("Volume %q cannot be a clone of a directory", m.name), fmt.Sprintf("%s is of the type %s, which the host does not copy.", shown, sort))
	case !source.definition.At("target.encryption").IsNull():
		// libvirt forgets the key when it looks at its files again.
		return m.refuseOrigin(cloneAt, fmt.Sprintf("Volume %q cannot be a clone of an encrypted volume", m.name), shown+" is encrypted, and libvirt does not keep the key to read it. Copy it on the host (qemu-img convert, with the secret), and import the copy.")
	}
	size := source.size()
	if size.Num() == nil {
		return fmt.Errorf("clone volume %s: %s has no size", m.name, shown)
	}
	if m.capacity.IsNull() {
		m.capacity = size
	}
	if m.capacity.Num().Cmp(size.Num()) < 0 {
		return m.refuseOrigin("capacity", fmt.Sprintf("Volume %q is smaller than what it is cloned from", m.name),
			fmt.Sprintf("capacity is %s bytes, %s has %s. Raise capacity (capacity_unit is bytes if it is not set), or leave it out.", m.capacity, shown, size))
	}
	const format = "target.format.type"
	switch want := m.document.At(format); {
	case want.Str() == "iso":
		m.document = m.document.SetAt(format, tree.StringValue("raw"))
	case want.IsNull() && m.files:
		found := plainFormat(source.definition.At(format).Str())
		if found == "" {
			found = "raw"
		}
		m.document = m.document.SetAt(format, tree.StringValue(found))
	}
	return nil
}

// refuseTorn refuses to copy what a running guest writes to.
func (m *making) refuseTorn(ctx context.Context, source *volumeSight, way string) error {
	all, err := closeUsers(ctx, m.host)
	if err != nil {
		return err
	}
	writers := identityOf(m.host, source.vol).writers(ctx, all)
	if len(writers) == 0 {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Path: tree.ParsePath(cloneAt), Summary: fmt.Sprintf("Refusing to clone volume %q: a running guest writes to what it is cloned from", m.name),
		Detail: fmt.Sprintf("Volume %q of pool %q is written to by %s. The host copies it piece by piece while it changes, so the file systems in the copy would be torn. "+
			"%s; or make an external snapshot of that disk (virsh snapshot-create-as --disk-only), and clone what is below it then; or clone a volume that nobody writes to.",
			source.name, source.vol.PoolName(), strings.Join(list(writers), "; "), way),
	})
}

// refuseWritten refuses a copy of what was written to meanwhile, whoever did it: a
// guest that was started and is off again, a block job that merges an overlay into
// it, a program beside libvirt.
func (m *making) refuseWritten(ctx context.Context, source *volumeSight) error {
	now, err := see(ctx, source.vol)
	if err != nil {
		return err
	}
	what := written(source.definition, now.definition)
	if what == "" {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Path: tree.ParsePath(cloneAt), Summary: fmt.Sprintf("Volume %q was cloned from what was written to meanwhile", m.name),
		Detail: fmt.Sprintf("While the host copied it, volume %q of pool %q was written to: %s. The file systems in such a copy may be torn. Apply again once nobody writes to it: no guest is started with it, no block job merges into it (virsh blockjob DOMAIN DISK), and no program writes its file.",
			source.name, source.vol.PoolName(), what),
	})
}

// written says by what one can see that a volume was written to between two looks,
// "" if it was not, as far as its storage tells. What libvirt does to a file when a
// guest is started over it, which changes its owner and its ctime, is no such thing;
// the times of a device's node say nothing of its content.
func written(before, after tree.Value) string {
	for _, size := range []string{"capacity", "physical"} {
		if was, is := before.At(size), after.At(size); !tree.Equal(was, is) {
			return fmt.Sprintf("its %s was %s, and is %s", size, told(was), told(is))
		}
	}
	const mtime = "target.timestamps.mtime"
	was, is := before.At(mtime), after.At(mtime)
	if before.Attr("type").Str() == "block" || tree.Equal(was, is) {
		return ""
	}
	return fmt.Sprintf("the time of its last change was %s, and is %s (seconds since 1970)", was.Str(), is.Str())
}

// writers picks the running guests that may write to the volume.
func (i *identity) writers(ctx context.Context, all []user) (found []user) {
	for _, u := range i.among(ctx, all) {
		if u.running && !u.reads && !u.once && (i.has(ctx, u) || !i.liesUnder(ctx, u)) {
			found = append(found, u)
		}
	}
	return found
}

// copyOf has the host copy the volume.
func (m *making) copyOf(ctx context.Context, source *volumeSight) (*virt.Volume, error) {
	capacity := source.size()
	if !m.files {
		capacity = m.capacity
	}
	xml, err := m.encode(capacity)
	if err != nil {
		return nil, err
	}
	defer telling(ctx, "the host is copying a volume", func() map[string]any {
		return map[string]any{"volume": m.name, "from": source.vol.Path()}
	})()
	vol, err := m.pool.CloneVolume(ctx, xml, source.vol, virt.CreateFlags{})
	if err != nil {
		return nil, m.notMade(ctx, err)
	}
	m.step("volume")
	return vol, nil
}

// encode renders the document of the new volume.
func (m *making) encode(capacity tree.Value) (string, error) {
	document := m.document
	if !capacity.IsNull() {
		document = document.With("capacity", capacity).With("capacity_unit", tree.StringValue("bytes"))
	}
	if m.files {
		// Without an allocation libvirt writes a raw file full of zeros. For other
		// storage none means another thing: a thin volume, which may break.
		document = document.With("allocation", tree.UintValue(0))
	}
	return spec.Volume().Encode(document)
}

// notMade says what is true after libvirt has refused to make the volume, or has
// not answered.
func (m *making) notMade(ctx context.Context, err error) error {
	if virt.IsLost(err) {
		return also(err, fmt.Sprintf("If the volume was made, it is empty or not complete, and the next apply refuses to take it over: look with virsh vol-list %s, and delete it with virsh vol-delete %s %s.", m.pool.Name(), m.name, m.pool.Name()))
	}
	// There may be a file of that name which libvirt has not seen: its list is
	// as old as the pool's last refresh.
	if refreshErr := refresh(ctx, m.pool); refreshErr == nil {
		if exists := m.refuseExisting(ctx); exists != nil {
			return exists
		}
	}
	return err
}

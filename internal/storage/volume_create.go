package storage

import (
	"context"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// making is a volume under way.
type making struct {
	host     *virt.Host
	pool     *virt.Pool
	files    bool // volumes of the pool are files, which grow as they are written
	name     string
	planned  tree.Value
	document tree.Value // of the new volume
	capacity tree.Value // bytes, null if none is asked for
	isSeed   bool       // its content is the seed that the URL names
	steps    []kind.Step
	warnings []kind.Problem
}

// filePools are the types whose volumes are files.
var filePools = map[string]bool{"dir": true, "fs": true, "netfs": true, "gluster": true, "vstorage": true}

// Create makes the volume, fills it and grows it. A volume that is not what was
// planned is deleted again. An existing one is never taken over.
func (k *Volume) Create(ctx context.Context, planned, _ tree.Value) (done kind.Done, err error) {
	m := &making{host: k.host(), planned: planned, name: planned.Attr("name").Str(), capacity: sizeIn(planned), document: volumeDocument(planned.Known())}
	if err := k.findPool(ctx, m); err != nil {
		return done, err
	}
	if err := m.refuseExisting(ctx); err != nil {
		return done, err
	}
	vol, err := m.make(ctx)
	if err != nil {
		return done, err
	}
	s, err := see(ctx, vol)
	if err == nil {
		s.pool = m.pool
		err = s.lookForSeed(ctx, planned, tree.NullValue)
	}
	if err == nil && m.isSeed {
		err = s.compareSeed(planned)
	}
	if err == nil {
		done.Facts, err = k.facts(ctx, s, planned, s.size(), tree.NullValue)
	}
	if err == nil {
		err = kind.Unmet(k, m.name, tree.NullValue, planned, done.Facts.Definition)
	}
	if err != nil {
		return kind.Done{}, m.discard(ctx, vol, err)
	}
	done.Exists, done.Steps, done.Warnings = true, m.steps, m.warnings
	return done, nil
}

// findPool finds the pool, which has to be started, and what it is.
func (k *Volume) findPool(ctx context.Context, m *making) (err error) {
	name := m.planned.Attr("pool").Str()
	m.pool, err = m.host.LookupPoolByName(ctx, name)
	if virt.IsNotFound(err) {
		return kind.Refuse(kind.Problem{
			Path: tree.Root.Attr("pool"), Summary: fmt.Sprintf("There is no pool %q for volume %q", name, m.name),
			Detail: "Nothing was made. Create the pool first; as a reference (pool = libvirt_pool.x.name) the core knows the order.",
		})
	}
	if err != nil {
		return err
	}
	if err := k.refuseStopped(ctx, m.pool, m.name); err != nil {
		return err
	}
	xml, err := m.pool.XML(ctx, false)
	if err != nil {
		return err
	}
	def, err := spec.Pool().Decode(xml)
	m.files = filePools[def.Attr("type").Str()]
	return err
}

// volumeDocument is what of a tree is in the XML of a new volume.
func volumeDocument(v tree.Value) tree.Value {
	for _, name := range []string{"id", "key", "path", "pool", "allocation", "allocation_unit", "physical", "physical_unit"} {
		v = v.With(name, tree.NullValue)
	}
	return v.SetAt("target.path", tree.NullValue)
}

func (m *making) refuseExisting(ctx context.Context) error {
	vol, err := m.pool.LookupVolume(ctx, m.name)
	if virt.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := vol.XML(ctx); virt.HasCode(err, virt.ErrNoVolume) {
		// libvirt lists a file that somebody removed, and would make no other.
		if err := refresh(ctx, m.pool); err != nil {
			return err
		}
		if _, err := m.pool.LookupVolume(ctx, m.name); virt.IsNotFound(err) {
			return nil
		}
	}
	return kind.Refuse(kind.Problem{
		Path: tree.Root.Attr("name"), Summary: fmt.Sprintf("Volume %q exists already in pool %q", m.name, m.pool.Name()),
		Detail: fmt.Sprintf("It is %s on the host %s. It was not touched: its content may matter to somebody. To manage it, import it: `import ADDRESS %s/%s`. To have another one, choose another name. If an apply was killed while it filled this one, it is not complete: virsh vol-delete %s %s.", vol.Path(), m.host.Display(), m.pool.Name(), m.name, m.name, m.pool.Name()),
	})
}

// make creates the volume, with its content if it has some.
func (m *making) make(ctx context.Context) (*virt.Volume, error) {
	if from := m.planned.At(cloneAt); !from.IsNull() {
		return m.clone(ctx, from)
	}
	source := m.planned.At("create.content")
	if source.IsNull() {
		if err := m.layOver(ctx); err != nil {
			return nil, err
		}
		if m.capacity.IsNull() && m.document.At("target.format.type").Str() != "dir" {
			return nil, kind.Refuse(kind.Problem{
				Path: tree.Root.Attr("capacity"), Summary: fmt.Sprintf("Volume %q has no size", m.name),
				Detail: "Set capacity, or create.content, or backing_store, which have one.",
			})
		}
		return m.create(ctx, m.capacity)
	}
	url := source.Attr("url").Str()
	c, err := open(ctx, url, source.Attr("checksum").Str(), 0)
	if err != nil {
		return nil, fmt.Errorf("read the content of volume %s: %w", m.name, err)
	}
	defer c.close()
	if m.isSeed, err = c.isSeedNamed(url); err == nil && m.isSeed {
		err = c.holdsSeed(url)
	}
	if err != nil {
		return nil, also(fmt.Errorf("read the content of volume %s: %w", m.name, err), "No volume was made.")
	}
	if err := m.refuseContent(c); err != nil {
		return nil, err
	}
	if c.weakened && source.Attr("checksum").IsNull() {
		m.warnings = append(m.warnings, kind.Problem{
			Path: tree.ParsePath("create.content.url"), Summary: fmt.Sprintf("The content of volume %q came without encryption", m.name),
			Detail: fmt.Sprintf("%s redirects to http, so whoever is on the way could have put another image in its place, and there is no create.content.checksum to tell. The volume was made. Compare its checksum with the publisher's; write it into create.content.checksum, or take a mirror that has https.", c.shown),
		})
	}
	return m.fill(ctx, c)
}

// layOver finds out what the configuration leaves out about a backing store:
// its format, which libvirt would take for raw, and the size of the overlay,
// which is qcow2 unless said otherwise. It refuses what does not fit.
func (m *making) layOver(ctx context.Context) error {
	file := m.document.At("backing_store.path").Str()
	if file == "" {
		return nil
	}
	if m.document.At("target.format.type").IsNull() {
		m.document = m.document.SetAt("target.format.type", tree.StringValue("qcow2"))
	}
	const format = "backing_store.format.type"
	given := m.document.At(format)
	refuse := func(at, summary, detail string) error {
		return kind.Refuse(kind.Problem{Path: tree.ParsePath(at), Summary: summary, Detail: detail})
	}
	unclear := fmt.Sprintf("The format below volume %q is not clear", m.name)
	vol, err := m.host.LookupVolumeByPath(ctx, file)
	switch {
	case virt.IsNotFound(err) && given.IsNull():
		return refuse(format, unclear, fmt.Sprintf("%s is in no pool, so its format is not known, and a wrong one would show the guest the container instead of the disk. No volume was made. Set %s.", file, format))
	case virt.IsNotFound(err) && m.capacity.IsNull():
		return refuse("capacity", fmt.Sprintf("Volume %q has no size", m.name), fmt.Sprintf("%s is in no pool, so its size is not known. No volume was made. Set capacity.", file))
	case virt.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	below, err := see(ctx, vol)
	if err != nil {
		return err
	}
	found := plainFormat(below.definition.At("target.format.type").Str())
	switch {
	case given.IsNull():
		m.document = m.document.SetAt(format, tree.StringValue(found))
	case plainFormat(given.Str()) != found:
		return refuse(format, unclear, fmt.Sprintf("%s is %s, not %s: the guest would see the container instead of the disk. No volume was made. Set %s to %q, or leave it out.", file, found, given.Str(), format, found))
	}
	if m.capacity.IsNull() {
		m.capacity = below.size()
	}
	if m.capacity.Num().Cmp(below.size().Num()) < 0 {
		return refuse("capacity", fmt.Sprintf("Volume %q is smaller than what it lies over", m.name),
			fmt.Sprintf("capacity is %s bytes, %s has %s: the guest would see a disk that is cut off. No volume was made. Raise capacity (capacity_unit is bytes if it is not set), or leave it out.", m.capacity, file, below.size()))
	}
	return nil
}

// create makes the volume without content of its own.
func (m *making) create(ctx context.Context, capacity tree.Value) (*virt.Volume, error) {
	xml, err := m.encode(capacity)
	if err != nil {
		return nil, err
	}
	vol, err := m.pool.CreateVolume(ctx, xml, virt.CreateFlags{})
	if err != nil {
		return nil, m.notMade(ctx, err)
	}
	m.step("volume")
	return vol, nil
}

func (m *making) step(name string) {
	m.steps = append(m.steps, kind.Step{Name: name, Outcome: kind.Updated})
}

// fill makes the volume with its content.
func (m *making) fill(ctx context.Context, c *content) (*virt.Volume, error) {
	// A file is made raw and of the content's size: filled, it is what its content
	// says, which libvirt sees when it looks again, and then it can grow.
	size := tree.UintValue(c.size)
	if !m.files && m.capacity.Num() != nil && m.capacity.Num().Cmp(size.Num()) > 0 {
		size = m.capacity
	}
	m.document = m.document.SetAt("target.format.type", tree.StringValue("raw"))
	vol, err := m.create(ctx, size)
	if err != nil {
		return nil, err
	}
	if err := c.upload(ctx, vol); err != nil {
		return nil, m.discard(ctx, vol, err)
	}
	m.step("content")
	if !m.files {
		return vol, nil
	}
	if err := refresh(ctx, m.pool); err != nil {
		return nil, m.discard(ctx, vol, err)
	}
	if n, ok := m.capacity.Uint(); ok && n > c.virtualSize {
		if err := vol.Resize(ctx, n, virt.ResizeFlags{}); err != nil {
			return nil, m.discard(ctx, vol, err)
		}
		m.step("capacity")
	}
	return vol, nil
}

// discard deletes a volume that is not what it should be, and says so.
func (m *making) discard(ctx context.Context, vol *virt.Volume, failed error) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if err := vol.Delete(ctx, virt.DeleteFlags{}); err != nil && !virt.IsNotFound(err) {
		return also(failed, fmt.Sprintf("What was made of the volume could not be deleted (%v). It is %s, and is not complete. Delete it before the next apply: virsh vol-delete %s %s.", err, vol.Path(), m.name, m.pool.Name()))
	}
	return also(failed, "No volume was left behind.")
}

// refuseContent refuses content that does not fit what is asked for: of another
// format, of which a guest would see the container and not the disk in it, or
// larger than the capacity.
func (m *making) refuseContent(c *content) error {
	want := m.planned.At("target.format.type")
	looked := want.Str() == "raw" || want.Str() == "iso" || want.Str() == "qcow2" // others are not looked for
	if want.IsKnown() && plainFormat(want.Str()) != c.format && (looked || c.format == "qcow2") {
		what := c.format
		if c.packed != "" {
			what = "packed with " + c.packed
		}
		return kind.Refuse(kind.Problem{
			Path: tree.ParsePath("target.format.type"), Summary: fmt.Sprintf("The content of volume %q is not %s", m.name, want.Str()),
			Detail: fmt.Sprintf("%s is %s. No volume was made. Give content of that format, or set target.format.type to %q, or leave it out.", c.shown, what, c.format),
		})
	}
	if c.packed != "" && want.IsNull() {
		return kind.Refuse(kind.Problem{
			Path: tree.ParsePath("create.content.url"), Summary: fmt.Sprintf("The content of volume %q is packed", m.name),
			Detail: fmt.Sprintf("%s is packed with %s, and would be written as it is: no guest can read it. No volume was made. Unpack it first; or, if this is meant, set target.format.type = \"raw\".", c.shown, c.packed),
		})
	}
	n, ok := m.capacity.Uint()
	if !ok || n >= c.virtualSize {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Path: tree.Root.Attr("capacity"), Summary: fmt.Sprintf("The content of volume %q is larger than its capacity", m.name),
		Detail: fmt.Sprintf("capacity is %d bytes, the content takes %d. No volume was made. Raise capacity (capacity_unit is bytes if it is not set), or leave it out.", n, c.virtualSize),
	})
}

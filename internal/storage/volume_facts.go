package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// volumeSight is what one look at a volume shows.
type volumeSight struct {
	vol        *virt.Volume
	pool       *virt.Pool // nil if the volume was found by its key
	name       string
	definition tree.Value // as the host tells it
	seed       seedSight  // what it holds, once lookForSeed has looked
}

// size is the real capacity in bytes.
func (s *volumeSight) size() tree.Value { return sizeIn(s.definition) }

func sizeIn(v tree.Value) tree.Value {
	return change.Bytes(v.Attr("capacity"), v.Attr("capacity_unit"), "bytes")
}

// Read asks the host about the volume of a state. A pool that is not started,
// or not there, is an error: it says nothing about its volumes.
func (k *Volume) Read(ctx context.Context, state tree.Value) (kind.Facts, error) {
	return k.Reread(ctx, state, tree.NullValue)
}

// Reread is Read for a volume of which the last definition is known: a seed that
// was not touched since is not read again.
func (k *Volume) Reread(ctx context.Context, state, last tree.Value) (kind.Facts, error) {
	s, err := k.look(ctx, state)
	var unlisted *unlistedError
	if errors.As(err, &unlisted) {
		return unlisted.facts(state, last), nil
	}
	if err != nil {
		return kind.Facts{}, err
	}
	if err := s.lookForSeed(ctx, state, last); err != nil {
		return kind.Facts{}, err
	}
	f, err := k.facts(ctx, s, state, state.At("status.capacity"), state.Attr("status"))
	if other := s.other(state); err == nil && other != "" {
		// The state does not follow: what finds the volume is what Delete goes by.
		for _, place := range []string{"id", "key", "path", "target.path"} {
			f.Definition = f.Definition.SetAt(place, state.At(place))
		}
		f.Warnings = append(f.Warnings, kind.Problem{
			Summary: fmt.Sprintf("Volume %q may be another one now", s.name),
			Detail: fmt.Sprintf("The state has it as %s; pool %q has one of that name as %s: the pool was moved, or defined anew somewhere else. No apply changes or deletes that one. "+
				"Put the pool back where it was; or, if this is the volume: `state rm ADDRESS`, then `import ADDRESS %s/%s`.", other, s.vol.PoolName(), s.vol.Key(), s.vol.PoolName(), s.name),
		})
	}
	return f, err
}

// other returns the key that the state has for the volume, if it is not that of
// this one.
func (s *volumeSight) other(state tree.Value) string {
	if key := state.Attr("key").Str(); key != s.vol.Key() {
		return key
	}
	return ""
}

// refuseOther refuses to touch a volume that is not the one in the state.
func (s *volumeSight) refuseOther(verb string, state tree.Value) error {
	key := s.other(state)
	if key == "" {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to %s volume %q: it is not the one in the state", verb, s.name),
		Detail:  fmt.Sprintf("The state has the key %s, the host %s. Nothing was changed. Put the pool back where it was; or, if this is the volume: `state rm ADDRESS`, then `import ADDRESS %s/%s`.", key, s.vol.Key(), s.vol.PoolName(), s.name),
	})
}

// look finds the volume by pool and name, which says whether it is the pool or
// the volume that is missing, else by key.
func (k *Volume) look(ctx context.Context, state tree.Value) (*volumeSight, error) {
	identity := k.Identity(state)
	pool, name := state.Attr("pool").Str(), state.Attr("name").Str()
	if pool == "" || name == "" {
		return k.byKey(ctx, identity)
	}
	p, err := k.host().LookupPoolByName(ctx, pool)
	if virt.IsNotFound(err) {
		s, keyErr := k.byKey(ctx, identity) // the pool may have another name now
		var gone *kind.GoneError
		if !errors.As(keyErr, &gone) {
			return s, keyErr
		}
		return nil, kind.Refuse(kind.Problem{
			Summary: fmt.Sprintf("Pool %q of volume %q is gone", pool, name),
			Detail: fmt.Sprintf("That says nothing about its volumes, so nothing was concluded and nothing was changed: %s may well be there. "+
				"Define the pool again, or apply it by itself first: apply -target=ADDRESS-OF-THE-POOL; its volumes are found again then. If the files are gone too: `state rm ADDRESS` for the volume.", identity),
		})
	}
	if err != nil {
		return nil, err
	}
	if err := k.refuseStopped(ctx, p, name); err != nil {
		return nil, err
	}
	s, err := seeIn(ctx, p, name)
	if virt.IsNotFound(err) {
		return k.lookElsewhere(ctx, p, state, err)
	}
	if err != nil {
		return nil, err
	}
	s.pool = p
	return s, nil
}

func (k *Volume) byKey(ctx context.Context, key string) (*volumeSight, error) {
	vol, err := k.host().LookupVolume(ctx, key)
	var s *volumeSight
	if err == nil {
		s, err = see(ctx, vol)
	}
	if virt.IsNotFound(err) {
		return nil, &kind.GoneError{Noun: k.Noun(), Name: key, Err: err}
	}
	return s, err
}

func (k *Volume) refuseStopped(ctx context.Context, p *virt.Pool, volume string) error {
	active, err := p.IsActive(ctx)
	if err != nil || active {
		return err
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Pool %q of volume %q is not started", p.Name(), volume),
		Detail:  fmt.Sprintf("A pool that is not started says nothing about its volumes, so nothing was concluded and nothing was changed. Start it: virsh pool-start %s; or apply the pool by itself first: apply -target=ADDRESS-OF-THE-POOL.", p.Name()),
	})
}

func seeIn(ctx context.Context, p *virt.Pool, name string) (*volumeSight, error) {
	vol, err := p.LookupVolume(ctx, name)
	if err != nil {
		return nil, err
	}
	return see(ctx, vol)
}

func see(ctx context.Context, vol *virt.Volume) (*volumeSight, error) {
	xml, err := vol.XML(ctx)
	if err != nil {
		return nil, err
	}
	def, err := spec.Volume().Decode(xml)
	if err != nil {
		return nil, err
	}
	s := &volumeSight{vol: vol, name: vol.Name()}
	s.definition = def.With("pool", tree.StringValue(vol.PoolName())).With("id", tree.StringValue(vol.Key())).
		With("path", tree.StringValue(vol.Path())).With("allocation_unit", tree.NullValue).With("physical_unit", tree.NullValue)
	return s, nil
}

// facts says what is true of the volume. agreed is the state, or what an apply
// planned, and seen the real capacity when it was agreed.
func (k *Volume) facts(ctx context.Context, s *volumeSight, agreed, seen, status tree.Value) (kind.Facts, error) {
	f := kind.Facts{Name: s.name, Definition: s.definition}
	all, known, err := k.census.users(ctx, k.host())
	if err != nil {
		return f, err
	}
	if s.pool == nil {
		if s.pool, err = k.host().LookupPoolByName(ctx, s.vol.PoolName()); err != nil {
			return f, err
		}
	}
	f.Within = s.pool.UUID()
	this := known.identityOf(s.vol)
	found := this.among(ctx, all)
	beneath, medium, copied := false, len(found) > 0, true
	for _, u := range found {
		copied = copied && (u.once || !u.running)
		medium = medium && (u.once || u.medium && this.has(ctx, u))
		f.Active = f.Active || u.running
		beneath = beneath || u.running && this.liesUnder(ctx, u)
	}
	f.Definition = s.withSeed(asAgreed(s.definition, agreed, seen, f.Active))
	f.Status = tree.ObjectValue(map[string]tree.Value{
		"users": texts(list(found)), "running": tree.BoolValue(f.Active), "beneath": tree.BoolValue(beneath),
		"medium": tree.BoolValue(medium), "fw_cfg": tree.BoolValue(copied && f.Active), "content_digest": s.seed.tagged(),
		"capacity": s.size(), "last_steps": status.Attr("last_steps"),
	})
	return f, nil
}

// forgotten is what libvirt knows of a volume until it looks at the file again
// the next time, and never after.
var forgotten = []string{"target.no_cow", "target.encryption.secret", "target.encryption.cipher", "target.encryption.ivgen"}

// untold is what libvirt says of files alone. A logical volume or a device has a
// format all the same, and what it has of it in a definition is not kept; storage
// of a network has no permissions.
var untold = []string{"target.format.type", "target.permissions.owner", "target.permissions.group", "target.permissions.mode"}

// isUnsaid says whether a path is one of which the host may say nothing though it
// is as it was agreed, or below one.
func isUnsaid(pattern string) bool {
	return slices.ContainsFunc(slices.Concat(forgotten, untold), func(p string) bool { return pattern == p || strings.HasPrefix(pattern, p+".") })
}

// lent is what libvirt changes of a file while a guest runs with it, and puts
// back afterwards.
var lent = []string{"target.permissions.owner", "target.permissions.group", "target.permissions.label"}

// nodes is what the host's device manager gives to the node of a device, at each
// of its starts, whatever it was made with.
var nodes = append([]string{"target.permissions.mode"}, lent...)

// asAgreed returns what the host says of a volume, except where it cannot know
// better than what was agreed: storage that rounds a size up still has the size
// that was asked for, as long as nobody changed it since; and what libvirt
// forgets is taken for granted.
func asAgreed(host, agreed, seen tree.Value, running bool) tree.Value {
	asked, given := sizeIn(agreed), sizeIn(host)
	if asked.Num() != nil && given.Num() != nil && asked.Num().Cmp(given.Num()) < 0 &&
		(tree.Equal(seen, given) || seen.IsNull() && isRounding(asked, given, host.Attr("type").Str() == "block")) {
		host = host.With("capacity", asked).With("capacity_unit", tree.StringValue("bytes"))
	}
	keep := func(places []string, onlyMissing bool) {
		for _, p := range places {
			if was := agreed.At(p); was.IsKnown() && (!onlyMissing || host.At(p).IsNull()) {
				host = host.SetAt(p, was)
			}
		}
	}
	if !host.At("target.encryption").IsNull() {
		keep(forgotten[1:], true)
	}
	keep(forgotten[:1], true)
	keep(untold, true)
	switch {
	case host.Attr("type").Str() == "block":
		keep(nodes, false)
	case running:
		keep(lent, false)
	}
	return host
}

// isRounding says whether a size is another one rounded up: to a sector, or a
// device to an extent of a volume group (4 MiB). It is a guess, for states that
// do not hold the real size.
func isRounding(asked, given tree.Value, device bool) bool {
	x, okX := asked.Uint()
	y, okY := given.Uint()
	const sector, extent = 512, 4 << 20
	return okX && okY && x <= y && (y-x < sector && y%sector == 0 || device && y-x < extent && y%extent == 0)
}

// usersOf lists who uses the volume, by whatever name, as of now.
func (k *Volume) usersOf(ctx context.Context, s *volumeSight) ([]user, *identity, error) {
	all, err := closeUsers(ctx, k.host())
	this := identityOf(k.host(), s.vol)
	return this.among(ctx, all), this, err
}

package storage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A seed can lie in a pool by itself, without a volume resource. Its volume has
// the beginning of the content's digest in its name, so other content is another
// volume: none is written to while a guest reads it, and a drive gets the new one
// by its name. What a drive had before is deleted once nobody needs it.

// SeedVolume is where a seed lies.
type SeedVolume struct {
	Pool, Name string
	Path       string // on the host, "" if it is not known
}

func (v SeedVolume) String() string { return v.Pool + "/" + v.Name }

// ParseSeedVolume reads what String wrote. The name of a volume of a seed has no
// slash.
func ParseSeedVolume(text string) (SeedVolume, bool) {
	i := strings.LastIndexByte(text, '/')
	if i <= 0 || i == len(text)-1 {
		return SeedVolume{}, false
	}
	return SeedVolume{Pool: text[:i], Name: text[i+1:]}, true
}

// state is the place as the state of a volume that holds a seed.
func (v SeedVolume) state() tree.Value {
	s := tree.NullValue.With("pool", tree.StringValue(v.Pool)).With("name", tree.StringValue(v.Name)).
		SetAt(seedURL, tree.StringValue(digestTag+strings.Repeat("0", 64)))
	if v.Path != "" {
		s = s.With("path", tree.StringValue(v.Path))
	}
	return s
}

// SeedImage is the content that a seed's volume is to have.
type SeedImage struct {
	Bytes  []byte
	Digest seed.Digest
}

// SeedSight is what the host says of the volume of a seed.
type SeedSight struct {
	Found    bool   // it is there
	Path     string // on the host
	Digest   string // of the seed that it holds, "sha256:…"; "" if it holds none
	Warnings []kind.Problem
	// Record is what LookSeed wants to be told the next time: an image that nobody
	// has written to since is not read again.
	Record json.RawMessage
}

// recorded are the parts of a definition by which a file is known again.
var recorded = []string{"type", "key", "pool", "physical", "target.timestamps.mtime", "target.timestamps.ctime", seedURL}

func (s *volumeSight) seedSight() (SeedSight, error) {
	known, is := tree.NullValue, s.withSeed(s.definition)
	for _, at := range recorded {
		known = known.SetAt(at, is.At(at))
	}
	record, err := json.Marshal(known)
	return SeedSight{Found: true, Path: s.vol.Path(), Digest: s.seed.tagged().Str(), Record: record}, err
}

// LookSeed asks the host what the volume holds. last is the record of the last
// look, nil if there is none. A pool that is not started, or that is another one
// now, is an error: it does not say that the volume is gone.
func (k *Volume) LookSeed(ctx context.Context, at SeedVolume, last json.RawMessage) (SeedSight, error) {
	var before tree.Value
	if len(last) > 0 && json.Unmarshal(last, &before) != nil {
		before = tree.NullValue // of another version: it is read again
	}
	s, err := k.look(ctx, at.state())
	var gone *kind.GoneError
	var unlisted *unlistedError
	switch {
	case errors.As(err, &gone):
		return SeedSight{}, nil
	case errors.As(err, &unlisted):
		return SeedSight{Found: true, Path: at.Path, Digest: before.At(seedURL).Str(), Record: last, Warnings: unlisted.facts(at.state(), tree.NullValue).Warnings}, nil
	case err != nil:
		return SeedSight{}, err
	}
	if err := s.lookForSeed(ctx, at.state(), before); err != nil {
		return SeedSight{}, err
	}
	return s.seedSight()
}

// PutSeed makes the volume with its content, and reads it back. One that is there
// with this very content is taken over; one with another content is left alone.
func (k *Volume) PutSeed(ctx context.Context, at SeedVolume, image SeedImage) (SeedSight, error) {
	m := &making{host: k.host(), name: at.Name, planned: at.state(), document: tree.NullValue.With("name", tree.StringValue(at.Name)).
		SetAt("target.format.type", tree.StringValue("raw"))}
	if err := k.findPool(ctx, m); err != nil {
		return SeedSight{}, err
	}
	if found, err := k.adoptSeed(ctx, m, image); found != nil || err != nil {
		return seen(found, err)
	}
	vol, err := m.create(ctx, tree.UintValue(uint64(len(image.Bytes))))
	if err != nil {
		// There may be a file of that name which libvirt had not seen: create has let
		// it look.
		if found, again := k.adoptSeed(ctx, m, image); found != nil && again == nil {
			return found.seedSight()
		}
		return SeedSight{}, err
	}
	if err := vol.Upload(ctx, bytes.NewReader(image.Bytes), 0, uint64(len(image.Bytes))); err != nil {
		return SeedSight{}, m.discard(ctx, vol, err)
	}
	s, err := see(ctx, vol)
	if err == nil {
		err = s.readSeed(ctx, true)
	}
	if err == nil {
		err = s.compareSeed(wanting(image.Digest))
	}
	if err != nil {
		return SeedSight{}, m.discard(ctx, vol, err)
	}
	return s.seedSight()
}

func wanting(d seed.Digest) tree.Value {
	return tree.NullValue.SetAt(seedURL, tree.StringValue(d.Tagged()))
}

func seen(s *volumeSight, err error) (SeedSight, error) {
	if err != nil {
		return SeedSight{}, err
	}
	return s.seedSight()
}

// adoptSeed finds a volume of the name that holds the seed already: that of an
// object that has the same name and content, or what a lost connection left. nil:
// there is no such volume.
func (k *Volume) adoptSeed(ctx context.Context, m *making, image SeedImage) (*volumeSight, error) {
	vol, err := m.pool.LookupVolume(ctx, m.name)
	if virt.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := see(ctx, vol)
	if virt.HasCode(err, virt.ErrNoVolume) {
		// libvirt lists a file that somebody removed, and would make no other.
		return nil, refresh(ctx, m.pool)
	}
	if err != nil {
		return nil, err
	}
	s.pool = m.pool
	if s.maySeed(true) {
		if err := s.readSeed(ctx, true); err != nil {
			return nil, err
		}
	}
	if s.seed.found && s.seed.digest == image.Digest {
		return s, nil
	}
	return nil, kind.Refuse(kind.Problem{
		Path: tree.Root.Attr("name"), Summary: fmt.Sprintf("Volume %q exists already in pool %q, and holds something else", m.name, m.pool.Name()),
		Detail: fmt.Sprintf("It is %s on the host %s, and holds %s, not %s. It was not touched: its content may matter to somebody. If it is what an interrupted apply left, delete it: virsh vol-delete %s %s. Or give the seed another name.",
			s.vol.Path(), m.host.Display(), heldText(s.seed.tagged()), image.Digest.Tagged(), m.name, m.pool.Name()),
	})
}

// RenewSeed puts the content back into a volume that somebody has written to: out
// of the drives of the guests that have it, written, read back, and in again.
func (k *Volume) RenewSeed(ctx context.Context, at SeedVolume, image SeedImage) (SeedSight, error) {
	s, err := k.find(ctx, at.state())
	if err == nil {
		err = s.readSeed(ctx, true)
	}
	if err != nil {
		return SeedSight{}, err
	}
	if !s.seed.found || s.seed.digest != image.Digest {
		r := &renewal{
			k: k, s: s, done: &kind.Done{}, digest: image.Digest, image: bytes.NewReader(image.Bytes), size: uint64(len(image.Bytes)),
			effect: change.EffectLive, insist: insistByHand, undo: kind.Undo{Lost: virt.IsUnreachable},
		}
		if err := r.carryOut(ctx, tree.NullValue); err != nil {
			return SeedSight{}, err
		}
	}
	if s, err = k.find(ctx, at.state()); err == nil {
		err = s.readSeed(ctx, true)
	}
	return seen(s, err)
}

// insistByHand says how to insist where no resource has a setting for it.
const insistByHand = "or take it out by force, by which the guest loses what it has open on the CD: virsh change-media DOMAIN TARGET --eject --force --live."

// SeedNeed is what the host says of who needs a volume of a seed.
type SeedNeed struct {
	Found  bool     // it is there
	Path   string   // on the host
	By     []string // what of which domain: running, defined, saved or in a snapshot
	Shared string   // the type of its pool, if other hosts use such pools, too; else ""
	Other  error    // why it is not what the seed had there, asked if nobody needs it
}

// SeedNeeds finds out who needs the volume. Only this host is asked.
func (k *Volume) SeedNeeds(ctx context.Context, at SeedVolume) (SeedNeed, error) {
	s, err := k.look(ctx, at.state())
	var gone *kind.GoneError
	if errors.As(err, &gone) {
		return SeedNeed{}, nil
	}
	if err != nil {
		return SeedNeed{Found: true}, k.orPoolGone(ctx, at, err)
	}
	need := SeedNeed{Found: true, Path: s.vol.Path()}
	if need.Shared, err = k.SharedPool(ctx, s.vol.PoolName()); err != nil {
		return need, err
	}
	if need.By, err = k.needsOf(ctx, s); err == nil && len(need.By) == 0 {
		need.Other = k.refuseForeign(ctx, s, at, false)
	}
	return need, err
}

// orPoolGone is the error, or, if it is that the pool is gone, how to go on if that
// is for good.
func (k *Volume) orPoolGone(ctx context.Context, at SeedVolume, err error) error {
	if _, missing := k.host().LookupPoolByName(ctx, at.Pool); !virt.IsNotFound(missing) {
		return err
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Pool %q is gone", at.Pool),
		Detail: "That says nothing about its volumes, so nothing was concluded. Define the pool again, and the volume is found. " +
			"If it is gone for good: `state rm ADDRESS` of the seed; the next apply takes over what the seed has now, as it is, and knows no older volume.",
	})
}

// needsOf lists who needs a volume, asked afresh.
func (k *Volume) needsOf(ctx context.Context, s *volumeSight) ([]string, error) {
	all, err := everyUser(ctx, k.host())
	if err != nil {
		return nil, err
	}
	this := identityOf(k.host(), s.vol)
	backed, err := k.backedBy(ctx, this)
	return append(list(this.among(ctx, all)), backed...), err
}

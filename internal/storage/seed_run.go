package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
)

// Which volume is current and which is superseded is known by the seeds alone. A
// name and a content say neither: somebody may have pinned a machine to an older
// volume, or call a volume of his own so. So the seeds of a run say what they have
// and what they had, and nothing else of a pool is ever deleted beside a change.

// seedRun is what the seeds of one run have said of their volumes, by POOL/VOLUME.
type seedRun struct {
	mu         sync.Mutex
	current    map[string]SeedVolume
	superseded map[string]bool
}

// KeepSeed says that an object of this run has its volume there: no other object
// of the run deletes it. Two share one, for a moment, when a block gets another
// label, and when a replacement is created before its predecessor is destroyed.
// It is called before the volume is put: what is removed in between is then put
// again; and once more when its path is known.
func (k *Volume) KeepSeed(at SeedVolume) {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	if k.run.current == nil {
		k.run.current = map[string]SeedVolume{}
	}
	k.run.current[at.String()] = at
}

// KeepsSeed says whether an object of this run has its volume there.
func (k *Volume) KeepsSeed(at SeedVolume) bool {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	_, kept := k.run.current[at.String()]
	return kept
}

// SupersedeSeed says that an object of this run has another volume now, and that
// somebody needs this one still: the domain's update that takes it out of a drive
// may delete it.
func (k *Volume) SupersedeSeed(at SeedVolume) {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	if k.run.superseded == nil {
		k.run.superseded = map[string]bool{}
	}
	k.run.superseded[at.String()] = true
}

// ForgetSeeds begins another run.
func (k *Volume) ForgetSeeds() {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	k.run.current, k.run.superseded = nil, nil
}

// RemoveSeed deletes the volume unless an object of this run has it, or somebody
// needs it: then it says who. One that is gone already is success. beside is a
// volume that has to stay: a pool that was renamed shows the same one under two
// names. drifted says that the volume is known to hold something else than its
// name says, and may go all the same.
func (k *Volume) RemoveSeed(ctx context.Context, at, beside SeedVolume, drifted bool) (needs []string, err error) {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	if _, kept := k.run.current[at.String()]; kept {
		return nil, nil
	}
	s, err := k.find(ctx, at.state())
	var gone *kind.GoneError
	if errors.As(err, &gone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if beside.Path != "" && identityOf(k.host(), s.vol).is(ctx, beside.Path) {
		return nil, nil
	}
	if err := k.refuseForeign(ctx, s, at, drifted); err != nil {
		return nil, err
	}
	_, needs, err = k.deleteUnneeded(ctx, s)
	return needs, err
}

// refuseForeign refuses to take a volume for the one that a seed had, if it is
// another file, or holds something else than its name says. Where a pool cannot be
// read, its place is all there is to go by.
func (k *Volume) refuseForeign(ctx context.Context, s *volumeSight, at SeedVolume, drifted bool) error {
	if at.Path != "" && !identityOf(k.host(), s.vol).is(ctx, at.Path) {
		return kind.Refuse(kind.Problem{
			Summary: fmt.Sprintf("Volume %s is another one now", at),
			Detail:  fmt.Sprintf("The seed had it as %s; the pool of that name has %s. It was not touched. Put the pool back where it was; or, if nobody needs either file, delete them by hand.", at.Path, s.vol.Path()),
		})
	}
	if drifted || !s.maySeed(true) {
		return nil
	}
	if err := s.readSeed(ctx, true); err != nil {
		return err
	}
	if s.holdsWhatItsNameSays() {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Volume %s holds something else than the seed left there", at),
		Detail:  fmt.Sprintf("It holds %s, so it was not deleted: its content may matter to somebody. If it does not: virsh vol-delete %s %s.", heldText(s.seed.tagged()), at.Name, at.Pool),
	})
}

// holdsWhatItsNameSays says whether the volume holds a seed whose digest begins
// with the digits of its name. It has been read.
func (s *volumeSight) holdsWhatItsNameSays() bool {
	_, short, _ := seed.ParseVolumeName(s.name)
	return s.seed.found && s.seed.digest.Begins(short)
}

// sharedPools are the types of pools that other hosts use at the same time, or may.
var sharedPools = map[string]bool{"netfs": true, "gluster": true, "vstorage": true, "rbd": true, "sheepdog": true, "iscsi": true, "iscsi-direct": true, "scsi": true, "mpath": true}

// sharedFormats are the file systems of pools of type fs that several hosts mount.
var sharedFormats = map[string]bool{"gfs": true, "gfs2": true, "ocfs2": true, "vmfs": true}

// SharedPool returns the type of a pool if other hosts use such pools, too, else "".
// A directory on storage that they share is not told from any other.
func (k *Volume) SharedPool(ctx context.Context, name string) (string, error) {
	p, err := k.host().LookupPoolByName(ctx, name)
	if err != nil {
		return "", err
	}
	xml, err := p.XML(ctx, false)
	if err != nil {
		return "", err
	}
	def, err := spec.Pool().Decode(xml)
	if err != nil {
		return "", err
	}
	typ, format := def.Attr("type").Str(), def.At("source.format.type").Str()
	switch {
	case sharedPools[typ]:
		return typ, nil
	case typ == "fs" && sharedFormats[format]:
		return format, nil
	}
	return "", nil
}

// mayRetire says whether a volume is one that a seed of this run had before, and
// no seed of this run has. is says whether a path leads to it: a pool that was
// renamed shows the same one under two names. The lock is the caller's.
func (r *seedRun) mayRetire(at SeedVolume, is func(path string) bool) bool {
	if _, kept := r.current[at.String()]; kept || !r.superseded[at.String()] {
		return false
	}
	for _, current := range r.current {
		if is(current.Path) {
			return false
		}
	}
	return true
}

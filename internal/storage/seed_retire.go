package storage

import (
	"context"
	"errors"
	"path"
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// What a drive had before is deleted once nobody needs it. The XML of the domains
// says who does, but not while one of them changes its medium: libvirt shows the
// new one already, in definition and guest, and goes back to the old one if the
// guest does not let go of that. So whoever changes a medium holds the old one.

// holds are the volumes that updates under way may come back to, by their names.
type holds struct {
	mu   sync.Mutex
	held map[string]int
}

func nameOf(m kind.Medium) string {
	if m.Volume != "" {
		return m.Volume
	}
	return path.Base(m.File)
}

// Hold keeps media from being deleted until they are released, which may be said
// more than once.
func (k *Volume) Hold(media []kind.Medium) (release func()) {
	change := func(by int) {
		k.holds.mu.Lock()
		defer k.holds.mu.Unlock()
		if k.holds.held == nil {
			k.holds.held = map[string]int{}
		}
		for _, m := range media {
			name := nameOf(m)
			if k.holds.held[name] += by; k.holds.held[name] <= 0 {
				delete(k.holds.held, name)
			}
		}
	}
	change(1)
	var once sync.Once
	return func() { once.Do(func() { change(-1) }) }
}

// deleteUnneeded deletes a volume that no update holds and nobody needs, and says
// who does. Nobody begins to hold it meanwhile: who does so later names it in XML
// until then.
func (k *Volume) deleteUnneeded(ctx context.Context, s *volumeSight) (deleted bool, needs []string, err error) {
	k.holds.mu.Lock()
	defer k.holds.mu.Unlock()
	if k.holds.held[s.name] > 0 {
		return false, []string{"a domain whose update is under way"}, nil
	}
	if needs, err = k.needsOf(ctx, s); len(needs) > 0 || err != nil {
		return false, needs, err
	}
	err = s.vol.Delete(ctx, virt.DeleteFlags{})
	if virt.IsNotFound(err) {
		return false, nil, nil // somebody else was faster
	}
	return err == nil, nil, err
}

// Retire deletes the medium that a drive had, if it is a volume that a seed of
// this run had before and has no more, and holds what its name says. Whoever still
// needs it keeps it. What no seed of this run has said is left to the next plan,
// which shows it as a change of the seed.
func (k *Volume) Retire(ctx context.Context, old kind.Medium) (retired string, err error) {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	if len(k.run.superseded) == 0 {
		return "", nil
	}
	was, err := k.mediumVolume(ctx, old)
	if err != nil || !k.run.superseded[was.String()] {
		return "", err
	}
	s, err := k.look(ctx, was.state())
	var gone *kind.GoneError
	if errors.As(err, &gone) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	this := identityOf(k.host(), s.vol)
	if !s.maySeed(true) || !k.run.mayRetire(was, func(file string) bool { return this.is(ctx, file) }) {
		return "", nil
	}
	if err := s.readSeed(ctx, true); err != nil {
		return "", err
	}
	if !s.holdsWhatItsNameSays() {
		return "", nil
	}
	deleted, _, err := k.deleteUnneeded(ctx, s)
	if err != nil || !deleted {
		return "", err
	}
	return was.String(), nil
}

// mediumVolume is the volume that a medium is, the zero value if it cannot be that
// of a seed.
func (k *Volume) mediumVolume(ctx context.Context, m kind.Medium) (SeedVolume, error) {
	if m.Pool != "" {
		return SeedVolume{Pool: m.Pool, Name: m.Volume}, nil
	}
	if _, _, ok := seed.ParseVolumeName(path.Base(m.File)); !ok {
		return SeedVolume{}, nil
	}
	vol, err := k.host().LookupVolumeByPath(ctx, m.File)
	if virt.IsNotFound(err) || virt.HasCode(err, virt.ErrOperationInvalid) {
		return SeedVolume{}, nil // it is in no pool that is started
	}
	if err != nil {
		return SeedVolume{}, err
	}
	return SeedVolume{Pool: vol.PoolName(), Name: vol.Name(), Path: vol.Path()}, nil
}

package domain

import (
	"context"
	"fmt"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// What lies in a drive changes while the guest runs, unless the configuration
// says that the guest keeps it until its next start: a machine that reads its seed
// at boot only may have it then, and a restart that the user allows brings it.

// mediaSetting is update.media: when a running guest gets another medium.
const (
	mediaSetting  = "update.media"
	mediaLive     = "live"
	mediaNextBoot = "next_boot"
)

// keepsMedium says whether the running guest keeps what is in its drive until its
// next start.
func keepsMedium(config tree.Value, c change.Change) bool {
	return config.At(mediaSetting).Str() == mediaNextBoot && isMedium(c)
}

// isMedium says whether a change is that of the medium of a drive.
func isMedium(c change.Change) bool {
	return len(c.Path) > 4 && within(c.Path.Pattern(), "devices.disks[].source") && mediumOf[c.Path[4].Attr]
}

const mediumWaits = `update.media is "next_boot": the guest keeps the medium that it has until its next start.`

// withMediaSetting is what changes cost where the configuration has media wait.
func withMediaSetting(config tree.Value, changes []change.Change, costs []cost) []cost {
	for i, c := range changes {
		if costs[i].class == change.ClassLive && keepsMedium(config, c) {
			costs[i] = cost{change.ClassNextBoot, mediumWaits}
		}
	}
	return costs
}

func validateMedia(config tree.Value) []kind.Problem {
	switch media := config.At(mediaSetting); {
	case !media.IsKnown(), media.Str() == mediaLive, media.Str() == mediaNextBoot:
		return nil
	default:
		return []kind.Problem{{
			Path: tree.ParsePath(mediaSetting), Summary: "Unknown time for media",
			Detail: fmt.Sprintf("update.media is %q; it can be live, which is the standard, or next_boot.", media.Str()),
		}}
	}
}

// Media is whoever takes what comes out of drives.
type Media interface {
	// Hold keeps media from being deleted until they are released, which may be
	// said more than once.
	Hold(media []kind.Medium) (release func())
	// Retire is told what a drive had and has no more. It deletes that medium if
	// whoever made it has said in this run that another one takes its place, and
	// nobody needs it; and says what it deleted.
	Retire(ctx context.Context, old kind.Medium) (retired string, err error)
}

// Retiring makes the kind hand over every medium that an update has taken out of a
// drive.
func (k *Kind) Retiring(media Media) *Kind {
	k.media = media
	return k
}

// lockedTray adds to the error of an update of a disk what it means that a medium
// does not come out.
func lockedTray(disk tree.Value, err error) error {
	if !isOn(disk, "cdrom") || !virt.HasCode(err, virt.ErrOperationFailed) {
		return err
	}
	return fmt.Errorf("%w: the guest has locked the tray, as it does while it has the CD mounted. Unmount it in the guest and apply again; "+
		"or let the new one wait for the guest's next start: update = { media = %q }", err, mediaNextBoot)
}

// drives are the media of the drives of a definition, by target.
func drives(definition tree.Value) map[string]kind.Medium {
	out := map[string]kind.Medium{}
	for _, disk := range definition.At("devices.disks").Elems() {
		if !isOn(disk, "cdrom", "floppy") {
			continue
		}
		m := kind.Medium{Pool: disk.At("source.volume.pool").Str(), Volume: disk.At("source.volume.volume").Str(), File: disk.At("source.file.file").Str()}
		if m.File == "" {
			m.File = disk.At("source.block.dev").Str()
		}
		out[disk.At("target.dev").Str()] = m
	}
	return out
}

// holdMedia keeps what the machine has in its drives while the update is under way.
// libvirt shows a new medium in the guest before the guest has let go of the old
// one, and goes back if it does not; until then no XML names the old one.
func (a *apply) holdMedia() (release func()) {
	if a.k.media == nil {
		return func() {}
	}
	var media []kind.Medium
	for _, before := range []tree.Value{a.before.definition, a.before.running()} {
		for _, m := range drives(before) {
			media = append(media, m)
		}
	}
	return a.k.media.Hold(media)
}

// retireMedia hands over what came out of the drives. It is called when all else
// was done and read back: whatever it cannot do is not worth taking that back for.
func (a *apply) retireMedia(ctx context.Context, after *sight) {
	if a.k.media == nil {
		return
	}
	defined, runs := drives(after.definition), drives(after.running())
	var done []kind.Medium
	for _, before := range []tree.Value{a.before.definition, a.before.running()} {
		for dev, old := range drives(before) {
			if old == (kind.Medium{}) || old == defined[dev] || after.active() && old == runs[dev] || slices.Contains(done, old) {
				continue
			}
			done = append(done, old)
			retired, err := a.k.media.Retire(ctx, old)
			switch {
			case err != nil:
				a.warnings = append(a.warnings, kind.Problem{
					Summary: fmt.Sprintf("What was in drive %s of domain %q may still be on the host", dev, a.before.name),
					Detail:  fmt.Sprintf("%s. The drive has its new medium; the seed whose volume it was shows it under superseded, and its next apply deletes it.", err),
				})
			case retired != "":
				a.step("delete "+retired, kind.Updated)
			}
		}
	}
}

package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// How another seed comes into a volume that guests have in their drives. libvirt
// has no lock: it would write under a medium that a guest is reading. So the
// medium is taken out of every drive first, the volume is written and read back,
// and then it is put in again, as it was in. The inode and the path stay, so no
// definition changes. If a step fails, all steps before it are taken back.

// renewal is one exchange under way.
type renewal struct {
	k      *Volume
	s      *volumeSight
	done   *kind.Done
	force  bool
	insist string // for messages: how to have a locked medium taken out all the same
	digest seed.Digest
	image  io.ReadSeeker
	size   uint64 // bytes of the image
	plain  bool   // which is a text
	old    []byte // what is overwritten
	length uint64 // bytes that are written: the image, and over what is left of the old one
	drives []*drive
	effect change.Effect // what the plan announced
	dirty  bool          // the volume may hold something else than it held
	wrote  bool          // it was written to, whatever became of that
	copied []copied      // who had it by fw_cfg before
	undo   kind.Undo
}

// renew puts the seed of the configuration into the volume, if the plan says so.
func (k *Volume) renew(ctx context.Context, s *volumeSight, u kind.Update, done *kind.Done) error {
	var planned *change.Change
	for i, c := range u.Changes {
		if c.Path.Pattern() == seedURL {
			planned = &u.Changes[i]
		}
	}
	if planned == nil {
		return nil
	}
	source := u.Planned.At("create.content")
	url := source.Attr("url").Str()
	switch is := s.seed.tagged(); {
	case sameSeed(url, is.Str()):
		done.Steps = append(done.Steps, kind.Step{Name: "upload", Outcome: kind.AlreadyConfigured})
		return nil
	case !tree.Equal(is, planned.Actual) && !sameSeed(is.Str(), planned.Actual.Str()):
		return kind.Refuse(kind.Problem{
			Path: planned.Path, Summary: fmt.Sprintf("The seed in volume %q was changed on the host after the plan was made", s.name),
			Detail: fmt.Sprintf("The plan saw %s, the volume holds %s now. Nothing was changed. Plan again, and decide with what it holds before you.", heldText(planned.Actual), heldText(is)),
		})
	}
	image, err := open(ctx, url, source.Attr("checksum").Str(), maxSeed)
	if err == nil {
		defer image.close()
		err = image.holdsSeed(url)
	}
	if err != nil {
		return also(fmt.Errorf("read the new content of volume %s: %w", s.name, err), "Nothing was changed.")
	}
	digest, _ := seedDigest(url)
	r := &renewal{
		k: k, s: s, done: done, digest: digest, image: image.file, size: image.size, plain: seed.IsPlainPath(url), effect: u.Effect, insist: insistInVolume,
		force: u.Config.At("update.force_media").Bool(), undo: kind.Undo{Lost: virt.IsUnreachable},
	}
	return r.carryOut(ctx, u.Planned)
}

// insistInVolume says how to insist where the seed is that of a volume.
const insistInVolume = "or insist, with update = { force_media = true } in the volume: the guest then loses what it has open on the CD."

// carryOut makes the exchange, or takes it back.
func (r *renewal) carryOut(ctx context.Context, planned tree.Value) error {
	if err := r.prepare(ctx, planned); err != nil {
		return err
	}
	if err := r.exchange(ctx); err != nil {
		r.done.Steps = nil
		return r.rollBack(ctx, err)
	}
	return nil
}

// prepare checks everything that can be checked before something is touched,
// and keeps what will be overwritten.
func (r *renewal) prepare(ctx context.Context, planned tree.Value) error {
	name := r.s.name
	if want := sizeIn(planned.Known()).Num(); want != nil && want.Cmp(new(big.Float).SetUint64(r.size)) < 0 {
		return kind.Refuse(kind.Problem{
			Path: tree.Root.Attr("capacity"), Summary: fmt.Sprintf("The content of volume %q is larger than its capacity", name),
			Detail: fmt.Sprintf("capacity is %s bytes, the new seed takes %d. Nothing was changed. Raise capacity (capacity_unit is bytes if it is not set), or leave it out: the volume grows with its seed then.", sizeIn(planned.Known()), r.size),
		})
	}
	users, this, err := r.users(ctx)
	if err != nil {
		return err
	}
	if err := r.refuseUsers(ctx, users, this); err != nil {
		return err
	}
	if err := refuseStarted(users, r.effect, r.s.name, seedURL); err != nil {
		return err
	}
	if err := r.findDrives(ctx, users); err != nil {
		return err
	}
	capacity, _ := r.s.size().Uint()
	if r.length = max(r.size, r.s.seed.size); r.s.seed.size == 0 && capacity <= maxSeed {
		r.length = max(r.length, capacity)
	}
	r.old, err = r.s.download(ctx, 0, min(r.length, capacity))
	return err
}

// users are those who may see the content change: not the guests that got it by
// fw_cfg, of which QEMU has kept a copy since it started.
func (r *renewal) users(ctx context.Context) ([]user, *identity, error) {
	users, this, err := r.k.usersOf(ctx, r.s)
	return slices.DeleteFunc(users, func(u user) bool { return u.once }), this, err
}

// refuseUsers refuses if somebody has the volume who cannot give it away.
func (r *renewal) refuseUsers(ctx context.Context, users []user, this *identity) error {
	backed, err := r.k.backedBy(ctx, this)
	if err != nil {
		return err
	}
	var others []string
	for _, u := range users {
		if !u.medium || !this.has(ctx, u) {
			others = append(others, u.String())
		}
	}
	if others = append(others, backed...); len(others) > 0 {
		return kind.Refuse(refuseNoMedium(r.s.name, others))
	}
	return r.refuseSaved(ctx, this)
}

// refuseSaved refuses while a saved guest has the volume in a drive: what it has
// read of it comes back with its memory, and would not fit to the new content.
func (r *renewal) refuseSaved(ctx context.Context, this *identity) error {
	domains, err := r.k.host().Domains(ctx)
	if err != nil {
		return err
	}
	for _, d := range domains {
		saved, err := savedUsers(ctx, d)
		if virt.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if len(this.among(ctx, saved)) > 0 {
			return kind.Refuse(kind.Problem{
				Path: tree.ParsePath(seedURL), Summary: fmt.Sprintf("Saved guest %q has volume %q in a drive", d.Name(), r.s.name),
				Detail: fmt.Sprintf("Its managed save holds the memory of a guest that has read the old content, and goes on with it at the next start. Nothing was changed. "+
					"Start it (virsh start %[1]s) and apply again: then it is exchanged in the drive; or, if what it was doing may be lost, delete the save: virsh managedsave-remove %[1]s.", d.Name()),
			})
		}
	}
	return nil
}

// refuseStarted refuses to touch running guests if the plan announced that none
// is touched. Who has a copy of the volume is not touched.
func refuseStarted(users []user, announced change.Effect, name, at string) error {
	for _, u := range users {
		if u.running && !u.once && announced < change.EffectLive {
			return kind.Refuse(kind.Problem{
				Path: tree.ParsePath(at), Summary: fmt.Sprintf("Volume %q is not as it was when the plan was made", name),
				Detail: fmt.Sprintf("%s has it now. The change of %s has the effect %s on it; the plan announced %s. Nothing was changed of it. Plan again.", u, at, change.EffectLive, announced),
			})
		}
	}
	return nil
}

// findDrives finds the drives of the running guests, and refuses if a medium
// could not be put in again.
func (r *renewal) findDrives(ctx context.Context, users []user) error {
	for _, u := range users {
		if !u.running {
			continue
		}
		if err := r.refuseLostPool(ctx, u); err != nil {
			return err
		}
		d, err := findDrive(ctx, u)
		if err != nil {
			return err
		}
		if d != nil {
			d.insist = r.insist
			r.drives = append(r.drives, d)
		}
	}
	return nil
}

// refuseLostPool refuses if a guest has the volume by a pool in which libvirt does
// not find it any more: it would come out, and not in again.
func (r *renewal) refuseLostPool(ctx context.Context, u user) error {
	if u.pool == "" {
		return nil
	}
	p, err := r.k.host().LookupPoolByName(ctx, u.pool)
	if err == nil {
		_, err = p.LookupVolume(ctx, u.volume)
	}
	if err == nil || virt.IsUnreachable(err) {
		return err
	}
	return kind.Refuse(kind.Problem{
		Path: tree.ParsePath(seedURL), Summary: fmt.Sprintf("Guest %q has volume %q by a name that leads nowhere", u.name, r.s.name),
		Detail: fmt.Sprintf("Its %s names volume %s of pool %s, which libvirt does not find (%v): taken out, it could not be put in again. Nothing was changed. "+
			"Give the pool its old name back; or eject it (virsh change-media %s %s --eject --live), or let the guest's definition name pool %s and restart the guest; then apply again.",
			u.place, u.volume, u.pool, err, u.name, strings.TrimPrefix(u.place, "disk "), r.s.vol.PoolName()),
	})
}

// exchange takes the medium out, writes, reads back, and puts it in again.
func (r *renewal) exchange(ctx context.Context) error {
	for _, d := range r.drives {
		r.undo.Add(d.insert)
		if err := d.eject(ctx, r.force); err != nil {
			return err
		}
	}
	if len(r.drives) > 0 {
		r.step(ctx, "eject")
	}
	if err := r.refuseInserted(ctx); err != nil {
		return err
	}
	var err error
	if r.copied, err = r.copies(ctx); err != nil {
		return err
	}
	r.undo.Add(r.writeOld)
	r.dirty, r.wrote = true, true
	if err := r.write(ctx); err != nil {
		return err
	}
	r.step(ctx, "upload")
	if err := r.noteStarted(ctx); err != nil {
		return err
	}
	for _, d := range r.drives {
		r.undo.Add(func(ctx context.Context) error { return d.eject(ctx, r.force) })
		if err := d.insert(ctx); err != nil {
			return err
		}
	}
	if len(r.drives) > 0 {
		r.step(ctx, "insert")
	}
	return nil
}

func (r *renewal) step(ctx context.Context, name string) {
	tflog.Info(ctx, "exchanging a seed", map[string]any{"volume": r.s.name, "done": name, "drives": driveNames(r.drives)})
	r.done.Steps = append(r.done.Steps, kind.Step{Name: name, Outcome: kind.Updated})
}

// refuseInserted refuses to write while a running guest has the volume.
func (r *renewal) refuseInserted(ctx context.Context) error {
	users, _, err := r.users(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.running {
			return kind.Refuse(kind.Problem{
				Path: tree.ParsePath(seedURL), Summary: fmt.Sprintf("Volume %q is in use, so it was not written to", r.s.name),
				Detail: fmt.Sprintf("%s has it, though it was taken out of all drives: somebody put it in, or started a guest meanwhile.", u),
			})
		}
	}
	return nil
}

// noteStarted warns of guests that were started while the volume was written:
// libvirt does not keep them from reading half of it.
func (r *renewal) noteStarted(ctx context.Context) error {
	users, _, err := r.users(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.running {
			r.done.Warnings = append(r.done.Warnings, kind.Problem{
				Path: tree.ParsePath(seedURL), Summary: fmt.Sprintf("Guest %q was started while volume %q was written", u.name, r.s.name),
				Detail: fmt.Sprintf("It may have read a part of the old seed and a part of the new one. What the volume holds is right. If it matters, eject and insert the CD (%s), or restart the guest.", u.place),
			})
		}
	}
	return r.noteCopied(ctx)
}

// copied is a guest that has the volume by fw_cfg: since it was started this time,
// QEMU has a copy of what the volume held then.
type copied struct {
	user user
	id   int // of the running guest, another one at each start
}

func (r *renewal) copies(ctx context.Context) (found []copied, err error) {
	users, _, err := r.k.usersOf(ctx, r.s)
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		if !u.once || !u.running {
			continue
		}
		id, err := u.domain.ID(ctx)
		if virt.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, copied{u, id})
	}
	return found, nil
}

// noteCopied warns of guests that QEMU gave a copy to while the volume was written,
// each once. They have it until their next start, and most read it at their first
// boot only.
func (r *renewal) noteCopied(ctx context.Context) error {
	now, err := r.copies(ctx)
	for _, c := range now {
		same := func(had copied) bool { return had.user.name == c.user.name && had.id == c.id }
		if slices.ContainsFunc(r.copied, same) {
			continue
		}
		r.copied = append(r.copied, c)
		r.done.Warnings = append(r.done.Warnings, kind.Problem{
			Path: tree.ParsePath(seedURL), Summary: fmt.Sprintf("Guest %q was started while volume %q was written", c.user.name, r.s.name),
			Detail: fmt.Sprintf("It has the volume by fw_cfg (%s), of which it got a copy when it was started: perhaps with a part of the old seed and a part of the new one. "+
				"It keeps this copy until it is off and started again (virsh destroy %[2]s, virsh start %[2]s; a reboot from within does not read the volume again). "+
				"If this was its first boot, look at what it made of it: Ignition and Combustion do not run a second time, so that such a machine has to be made anew.", c.user.place, c.user.name),
		})
	}
	return err
}

// write writes the new image, and over what is left of the old one, which may
// have secrets in it. Then it reads back.
func (r *renewal) write(ctx context.Context) error {
	if _, err := r.image.Seek(0, io.SeekStart); err != nil {
		return err
	}
	rest := filler(r.plain, r.length-r.size)
	if err := r.writeAll(ctx, io.MultiReader(r.image, rest), r.length); err != nil {
		return err
	}
	after, err := r.k.look(ctx, r.s.definition)
	if err != nil {
		return err
	}
	if err := after.readSeed(ctx, r.plain); err != nil {
		return err
	}
	return after.compareSeed(tree.NullValue.SetAt(seedURL, tree.StringValue(r.digest.Tagged())))
}

// writeAll writes to the beginning of the volume, which grows if it has to.
func (r *renewal) writeAll(ctx context.Context, content io.Reader, length uint64) error {
	now, err := r.s.vol.Info(ctx)
	if err != nil {
		return err
	}
	// libvirt resizes nothing to less than its allocation, which for a small file is
	// a block: that grows as it is written.
	if now.Capacity < length && now.Allocation <= length {
		if err := r.s.vol.Resize(ctx, length, virt.ResizeFlags{}); err != nil {
			return err
		}
	}
	return r.s.vol.Upload(ctx, content, 0, length)
}

// writeOld puts back what the volume held. A file that has grown stays longer.
func (r *renewal) writeOld(ctx context.Context) error {
	users, _, err := r.users(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.running {
			return fmt.Errorf("%s has the volume, so its old content was not written back", u)
		}
	}
	now, err := r.s.vol.Info(ctx)
	if err != nil {
		return err
	}
	length := min(max(r.length, uint64(len(r.old))), now.Capacity)
	rest := filler(r.s.seed.plain, length-uint64(len(r.old)))
	if err := r.s.vol.Upload(ctx, io.MultiReader(bytes.NewReader(r.old), rest), 0, length); err != nil {
		return err
	}
	r.dirty = false
	return nil
}

// rollBack takes the steps back, and adds to the error what is true now.
func (r *renewal) rollBack(ctx context.Context, failed error) error {
	kept := r.undo.TakeBack(ctx)
	var text []string
	if len(kept) > 0 {
		text = append(text, fmt.Sprintf("Not all of it could be taken back (%s).", strings.Join(kept, "; ")))
	}
	if r.wrote {
		ctx, cancel := cleanup(ctx)
		defer cancel()
		if err := r.noteCopied(ctx); err != nil {
			text = append(text, fmt.Sprintf("Which guests were started meanwhile, and have a copy of it by fw_cfg, could not be asked (%v).", err))
		}
	}
	var out []string
	for _, d := range r.drives {
		if d.out {
			out = append(out, fmt.Sprintf("virsh change-media %s %s %s --insert --live", d.user.name, d.dev, r.s.vol.Path()))
		}
	}
	in := len(r.drives) > 0 && len(out) == 0
	switch {
	case r.dirty:
		text = append(text, "The volume may hold a part of the old seed and a part of the new one; the next apply writes the new one, unless it is there whole.")
	case in:
		text = append(text, "The volume holds what it held, and the guests have it in their drives.")
	default:
		text = append(text, "The volume holds what it held.")
	}
	switch {
	case len(out) > 0:
		text = append(text, fmt.Sprintf("It is not, or may not be, in the drives of these running guests, and no apply puts it in again, as nobody can tell it from one that was taken out on purpose. Once the volume is right: %s; the next start of the guest brings it too, if its definition has it.", strings.Join(out, "; ")))
	case r.dirty && in:
		text = append(text, "The guests have it in their drives.")
	}
	return also(failed, strings.Join(text, " "))
}

func driveNames(drives []*drive) string {
	names := make([]string, len(drives))
	for i, d := range drives {
		names[i] = d.String()
	}
	return strings.Join(names, ", ")
}

package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/big"
	"strings"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
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
	url    string // of the new seed; its digest is in it
	image  *content
	old    []byte // what is overwritten
	length uint64 // bytes that are written: the image, and zeros over what is left of the old one
	drives []*drive
	undo   []func(context.Context) error // takes the steps back, last first
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
	image, err := open(ctx, url, source.Attr("checksum").Str())
	if err == nil {
		defer image.close()
		_, err = image.seedNamed(url)
	}
	if err != nil {
		return also(fmt.Errorf("read the new content of volume %s: %w", s.name, err), "Nothing was changed.")
	}
	r := &renewal{k: k, s: s, done: done, url: url, image: image, force: u.Config.At("update.force_media").Bool()}
	if err := r.prepare(ctx, u.Planned); err != nil {
		return err
	}
	if err := r.exchange(ctx); err != nil {
		done.Steps = nil
		return r.rollBack(ctx, err)
	}
	return nil
}

// prepare checks everything that can be checked before something is touched,
// and keeps what will be overwritten.
func (r *renewal) prepare(ctx context.Context, planned tree.Value) error {
	name := r.s.name
	if want := sizeIn(planned.Known()).Num(); want != nil && want.Cmp(new(big.Float).SetUint64(r.image.size)) < 0 {
		return kind.Refuse(kind.Problem{
			Path: tree.Root.Attr("capacity"), Summary: fmt.Sprintf("The content of volume %q is larger than its capacity", name),
			Detail: fmt.Sprintf("capacity is %s bytes, the new seed takes %d. Nothing was changed. Raise capacity (capacity_unit is bytes if it is not set), or leave it out: the volume grows with its seed then.", sizeIn(planned.Known()), r.image.size),
		})
	}
	users, err := r.k.usersOf(ctx, r.s)
	if err != nil {
		return err
	}
	backed, err := r.k.backedBy(ctx, identityOf(r.k.host(), r.s.vol))
	if err != nil {
		return err
	}
	var others []string
	for _, u := range users {
		if !u.medium || !u.has(r.s.vol.PoolName(), name, r.s.vol.Path()) {
			others = append(others, u.String())
		}
	}
	if others = append(others, backed...); len(others) > 0 {
		return kind.Refuse(refuseNoMedium(name, others))
	}
	for _, u := range users {
		if !u.running {
			continue
		}
		d, err := findDrive(ctx, u)
		if err != nil {
			return err
		}
		if d != nil {
			r.drives = append(r.drives, d)
		}
	}
	capacity, _ := r.s.size().Uint()
	if r.length = max(r.image.size, r.s.seed.size); r.s.seed.size == 0 && capacity <= maxSeed {
		r.length = max(r.length, capacity)
	}
	r.old, err = r.s.download(ctx, 0, min(r.length, capacity))
	return err
}

// exchange takes the medium out, writes, reads back, and puts it in again.
func (r *renewal) exchange(ctx context.Context) error {
	for _, d := range r.drives {
		r.undo = append(r.undo, d.insert)
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
	r.undo = append(r.undo, r.writeOld)
	if err := r.write(ctx); err != nil {
		return err
	}
	r.step(ctx, "upload")
	if err := r.noteStarted(ctx); err != nil {
		return err
	}
	for _, d := range r.drives {
		r.undo = append(r.undo, func(ctx context.Context) error { return d.eject(ctx, r.force) })
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
	users, err := r.k.usersOf(ctx, r.s)
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
	users, err := r.k.usersOf(ctx, r.s)
	for _, u := range users {
		if u.running {
			r.done.Warnings = append(r.done.Warnings, kind.Problem{
				Path: tree.ParsePath(seedURL), Summary: fmt.Sprintf("Guest %q was started while volume %q was written", u.name, r.s.name),
				Detail: fmt.Sprintf("It may have read a part of the old seed and a part of the new one. What the volume holds is right. If it matters, eject and insert the CD (%s), or restart the guest.", u.place),
			})
		}
	}
	return err
}

// write writes the new image, and zeros over what is left of the old one: it
// may have secrets in it. Then it reads back.
func (r *renewal) write(ctx context.Context) error {
	if _, err := r.image.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	zeros := bytes.NewReader(make([]byte, r.length-r.image.size))
	if err := r.writeAll(ctx, io.MultiReader(r.image.file, zeros), r.length); err != nil {
		return err
	}
	after, err := r.k.look(ctx, r.s.definition)
	if err != nil {
		return err
	}
	if err := after.readSeed(ctx); err != nil {
		return err
	}
	return after.compareSeed(tree.NullValue.SetAt(seedURL, tree.StringValue(r.url)))
}

// writeAll writes to the beginning of the volume, which grows if it has to.
func (r *renewal) writeAll(ctx context.Context, content io.Reader, length uint64) error {
	now, err := r.s.vol.Info(ctx)
	if err != nil {
		return err
	}
	if now.Capacity < length {
		if err := r.s.vol.Resize(ctx, length, virt.ResizeFlags{}); err != nil {
			return err
		}
	}
	return r.s.vol.Upload(ctx, content, 0, length)
}

// writeOld puts back what the volume held. A file that has grown stays longer,
// with zeros behind.
func (r *renewal) writeOld(ctx context.Context) error {
	users, err := r.k.usersOf(ctx, r.s)
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
	zeros := bytes.NewReader(make([]byte, length-uint64(len(r.old))))
	return r.s.vol.Upload(ctx, io.MultiReader(bytes.NewReader(r.old), zeros), 0, length)
}

// rollBack takes the steps back, and adds to the error what is true now.
func (r *renewal) rollBack(ctx context.Context, failed error) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	var kept []string
	for i := len(r.undo) - 1; i >= 0; i-- {
		if err := r.undo[i](ctx); err != nil {
			kept = append(kept, err.Error())
		}
	}
	look := "virsh domblklist GUEST"
	switch {
	case len(kept) > 0:
		return also(failed, fmt.Sprintf("Some of it could not be taken back (%s): look at the drives (%s) before the next apply, which writes and inserts what is missing.", strings.Join(kept, "; "), look))
	case len(r.drives) > 0:
		return also(failed, "The volume holds what it held, and the guests have it in their drives.")
	}
	return also(failed, "The volume holds what it held.")
}

func driveNames(drives []*drive) string {
	names := make([]string, len(drives))
	for i, d := range drives {
		names[i] = d.String()
	}
	return strings.Join(names, ", ")
}

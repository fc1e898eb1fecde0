package domain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// flight is what an apply is about to do, for preflight.
type flight struct {
	name           string
	wanted, before tree.Value // definitions; before is null at a creation
	old            string     // document of the definition before, "" at a creation
	inConfig       tree.Value // what the paths in messages lead into
	starts         bool       // the guest is started, or started again
	changes        bool       // the definition does
	// gets says whether the running guest is to get something of an element of a
	// list now; key is "" if the element has none.
	gets func(list, key string) bool
	// write makes the document of a definition.
	write func(wanted tree.Value) (string, error)
}

// preflight checks what an apply needs of the host, before it touches anything:
// libvirt itself accepts networks and files that do not exist, and takes a disk
// without a format for raw, whatever is in it. Only what changes is checked. What
// was named before and has gone since is a boot problem, and no reason to refuse
// something else; unless this apply starts the guest, which would not come up.
//
// Everything that is wrong is told at once. preflight returns the definition with
// the formats of its disks filled in, and its document. Nothing was touched when
// it refuses.
func (k *Kind) preflight(ctx context.Context, f flight) (wanted tree.Value, document string, err error) {
	wanted, problems, err := k.withFormats(ctx, f)
	if err != nil {
		return wanted, "", err
	}
	document = f.old
	if f.changes {
		if document, err = f.write(wanted); err != nil {
			return wanted, "", err
		}
	}
	found, reason, err := obstacles(ctx, k.host().View(), f, document)
	if err != nil {
		return wanted, "", err
	}
	for _, one := range found {
		problems = append(problems, one.refusal(ctx, k.host().View(), f.name, f.inConfig))
	}
	if reason != nil {
		problems = append(problems, *reason)
	}
	problems = append(problems, k.refuseEmptied(ctx, f, wanted)...)
	if len(problems) > 0 {
		return wanted, "", &kind.ProblemError{Problems: problems}
	}
	return wanted, document, nil
}

// obstacles are what keeps an apply from being made: what the host does not have,
// and then what it cannot build. reason is what libvirt says where nothing else
// explains it. Before anything is refused the host is asked once more: its answers
// may be a moment old, and a provisioner have started the network since.
func obstacles(ctx context.Context, host hostView, f flight, document string) (found []finding, reason *kind.Problem, err error) {
	found, reason, err = obstaclesNow(ctx, host, f, document)
	if err == nil && (len(found) > 0 || reason != nil) {
		host.Forget()
		found, reason, err = obstaclesNow(ctx, host, f, document)
	}
	return found, reason, err
}

func obstaclesNow(ctx context.Context, host hostView, f flight, document string) (found []finding, reason *kind.Problem, err error) {
	if found, err = refusedIn(ctx, host, f, document); err != nil || !f.changes && !f.starts {
		return found, nil, err
	}
	more, reason := unbuildable(ctx, host, f, document)
	if found = append(found, more...); slices.ContainsFunc(found, finding.ofMachine) {
		return found, nil, nil
	}
	return found, reason, nil
}

// refusedIn finds what an apply is about to need and the host does not have.
func refusedIn(ctx context.Context, host hostView, f flight, document string) (out []finding, err error) {
	now, err := findingsIn(ctx, host, f.name, document)
	if err != nil {
		return nil, err
	}
	var before []finding
	if f.old != "" {
		if before, err = findingsIn(ctx, host, f.name, f.old); err != nil {
			return nil, err
		}
	}
	fresh := newIn(now, before)
	if f.starts {
		fresh = now
	}
	for _, one := range fresh {
		switch {
		case one.grade == missing:
		case one.grade == inactive && (f.starts || f.gets(one.ref.list, one.ref.key)):
		default:
			continue
		}
		out = append(out, one)
	}
	return out, nil
}

// findingsIn are all that a definition names and the host does not have.
func findingsIn(ctx context.Context, host hostView, name, document string) ([]finding, error) {
	needs, err := needsOf(document)
	if err != nil {
		return nil, err
	}
	c := &bootCheck{host: host, domain: name}
	c.check(ctx, needs)
	return c.found, nil
}

// withFormats gives the disks that change the formats of their volumes.
func (k *Kind) withFormats(ctx context.Context, f flight) (wanted tree.Value, problems []kind.Problem, err error) {
	wanted = f.wanted
	disks := slices.Clone(wanted.At("devices.disks").Elems())
	for i, disk := range disks {
		if sameSource(disk, diskLike(f.before, disk)) {
			continue
		}
		var problem *kind.ProblemError
		disks[i], err = k.withFormat(ctx, f, disk)
		switch {
		case errors.As(err, &problem):
			problems = append(problems, problem.Problems...)
		case err != nil:
			return wanted, nil, err
		}
	}
	if len(disks) > 0 {
		wanted = wanted.SetAt("devices.disks", tree.ListValue(disks))
	}
	return wanted, problems, nil
}

// diskLike is the disk of a definition that is the same disk of the guest, null
// if there is none.
func diskLike(definition, disk tree.Value) tree.Value {
	for _, other := range definition.At("devices.disks").Elems() {
		if other.At("target.dev").Str() == disk.At("target.dev").Str() {
			return other
		}
	}
	return tree.NullValue
}

// sameSource says whether a disk reads what it read, and in the same way.
func sameSource(disk, before tree.Value) bool {
	return !before.IsNull() && tree.Equal(disk.Attr("source"), before.Attr("source")) && tree.Equal(disk.At("driver.type"), before.At("driver.type"))
}

// withFormat gives a disk the format of the volume that it names, where the plan
// gives none, and refuses one that is not the volume's. What only the definition
// gives, the provider once found out itself, of another volume.
func (k *Kind) withFormat(ctx context.Context, f flight, disk tree.Value) (tree.Value, error) {
	format, err := k.formatOf(ctx, disk)
	if err != nil || format == "" {
		return disk, err
	}
	given := disk.At("driver.type").Str()
	wrong := given != format && (given == "raw" || given == "qcow2")
	planned := diskLike(f.inConfig, disk)
	switch {
	case given == "", wrong && !planned.IsNull() && !planned.At("driver.type").IsKnown():
		disk = disk.SetAt("driver.type", tree.StringValue(format))
		if disk.At("driver.name").IsNull() {
			disk = disk.SetAt("driver.name", tree.StringValue("qemu"))
		}
	case wrong:
		return disk, kind.Refuse(kind.Problem{
			Path:    reference{list: "devices.disks", leaf: "driver.type", key: disk.At("target.dev").Str(), value: given}.path(f.inConfig),
			Summary: fmt.Sprintf("Disk %s is %s, not %s, in domain %q", disk.At("target.dev").Str(), format, given, f.name),
			Detail:  fmt.Sprintf("The guest would see the container instead of the disk in it, and could destroy it. Nothing was changed. Set driver.type to %q.", format),
		})
	}
	return disk, nil
}

// formatOf asks for the format of the volume behind a disk, "" if it is in no
// pool or says nothing.
func (k *Kind) formatOf(ctx context.Context, disk tree.Value) (string, error) {
	if !disk.At("source.block").IsNull() {
		return "", nil
	}
	vol, err := k.volumeOf(ctx, disk)
	if err != nil || vol == nil {
		return "", err
	}
	xml, err := asked(ctx, k, func() (string, error) { return vol.XML(ctx) })
	if virt.IsSilent(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	def, err := spec.Volume().Decode(xml)
	if err != nil {
		return "", err
	}
	format := strings.Replace(def.At("target.format.type").Str(), "iso", "raw", 1)
	if format != "raw" && format != "qcow2" {
		return "", nil
	}
	return format, nil
}

// asked asks about a volume as long as storage is waited for (virt.Patiently).
func asked[T any](ctx context.Context, k *Kind, ask func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	got, err := virt.Patiently(ctx, k.host().View(), func() answer {
		value, err := ask()
		return answer{value, err}
	})
	if err != nil {
		return got.value, err
	}
	return got.value, got.err
}

// volumeOf finds the volume behind a disk, nil if there is none. What is not
// there, or in a pool that is stopped, has none here: it is told elsewhere. Of
// storage that does not answer nothing is known.
func (k *Kind) volumeOf(ctx context.Context, disk tree.Value) (*virt.Volume, error) {
	pool, file := disk.At("source.volume.pool").Str(), disk.At("source.file.file").Str()
	if file == "" {
		file = disk.At("source.block.dev").Str()
	}
	if pool == "" && file == "" {
		return nil, nil
	}
	vol, err := asked(ctx, k, func() (*virt.Volume, error) {
		if pool == "" {
			return k.host().LookupVolumeByPath(ctx, file)
		}
		p, err := k.host().LookupPoolByName(ctx, pool)
		if err != nil {
			return nil, err
		}
		return p.LookupVolume(ctx, disk.At("source.volume.volume").Str())
	})
	if virt.IsNotFound(err) || virt.HasCode(err, virt.ErrOperationInvalid) || virt.IsSilent(err) {
		return nil, nil
	}
	return vol, err
}

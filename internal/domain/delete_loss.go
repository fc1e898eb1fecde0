package domain

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// What libvirt keeps beside a definition and cannot keep without it. Of snapshots
// and checkpoints only libvirt's records go with it, whatever is asked for: the
// images and what is in them stay, since they may be the only copy of something.
// A managed save is a file of libvirt's own, and is deleted.
//
// libvirt itself refuses to undefine a domain that has any of these, but says so
// only when the guest is down already.

// loss is one such thing.
type loss struct{ what, byHand string }

// refuseLoss refuses what would be lost with the definition, except what the
// flags give up.
func refuseLoss(ctx context.Context, s *sight, given virt.UndefineFlags) error {
	var lost []loss
	var settings []string
	add := func(found []loss, given bool, setting string) {
		if len(found) > 0 && !given {
			lost, settings = append(lost, found...), append(settings, setting+" = true")
		}
	}
	snapshots, err := s.dom.Snapshots(ctx)
	if err != nil && !virt.HasCode(err, virt.ErrNoSupport) {
		return err
	}
	var found []loss
	for _, snapshot := range snapshots {
		found = append(found, lossOf(s.name, snapshot))
	}
	add(found, given.SnapshotsMetadata, "delete_snapshots")
	checkpoints, err := s.dom.Checkpoints(ctx)
	if err != nil && !virt.HasCode(err, virt.ErrNoSupport) {
		return err
	}
	found = nil
	for _, name := range checkpoints {
		byHand := fmt.Sprintf("virsh checkpoint-delete %s %s", word(s.name), word(name))
		if !s.active() {
			byHand += " --metadata" // its bitmaps can be removed only while the guest runs
		}
		found = append(found, loss{fmt.Sprintf("checkpoint %q", name), byHand})
	}
	add(found, given.CheckpointsMetadata, "delete_checkpoints")
	if s.managedSave {
		add([]loss{{"the managed save image, with what the guest had in its memory", "virsh managedsave-remove " + word(s.name)}}, given.ManagedSave, "delete_managed_save")
	}
	if len(lost) == 0 {
		return nil
	}
	lines := make([]string, len(lost))
	for i, l := range lost {
		lines[i] = fmt.Sprintf("- %s (by hand: %s)", l.what, l.byHand)
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to destroy domain %q: something would be lost with it", s.name),
		Detail: fmt.Sprintf("It has:\n%s\nNothing was changed. Remove these by hand; or set destroy = { %s } in its block, apply (this touches nothing on the host), then repeat. "+
			"Of snapshots and checkpoints libvirt's records go then, and no image: what is inside the images, and the files beside them, stays.", strings.Join(lines, "\n"), strings.Join(settings, ", ")),
	})
}

// lossOf says where a snapshot keeps what it has.
func lossOf(domain string, snapshot virt.Snapshot) loss {
	var doc struct {
		Memory struct {
			File string `xml:"file,attr"`
		} `xml:"memory"`
		Disks []struct {
			Name     string `xml:"name,attr"`
			Snapshot string `xml:"snapshot,attr"`
			Source   struct {
				File string `xml:"file,attr"`
				Dev  string `xml:"dev,attr"`
			} `xml:"source"`
		} `xml:"disks>disk"`
	}
	l := loss{fmt.Sprintf("snapshot %q", snapshot.Name), fmt.Sprintf("virsh snapshot-delete %s %s", word(domain), word(snapshot.Name))}
	if err := xml.Unmarshal([]byte(snapshot.XML), &doc); err != nil {
		return l // the name is what matters
	}
	var inside, files []string
	for _, d := range doc.Disks {
		switch d.Snapshot {
		case "internal":
			inside = append(inside, d.Name)
		case "external":
			files = append(files, d.Source.File+d.Source.Dev)
		}
	}
	if doc.Memory.File != "" {
		files = append(files, doc.Memory.File)
	}
	var where []string
	if len(inside) > 0 {
		where = append(where, "inside the image of "+strings.Join(inside, ", "))
	}
	if len(files) > 0 {
		where = append(where, "in "+strings.Join(files, ", "))
		l.byHand += " --metadata" // merges nothing, and removes none of these
	}
	if len(where) > 0 {
		l.what += ", " + strings.Join(where, " and ")
	}
	return l
}

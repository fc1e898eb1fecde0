package storage

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/beevik/etree"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Before something is deleted, more is asked than who names it: the same file may
// have several names, an image that is off has its backing files in its header
// only, and snapshots and saved guests hold definitions of their own.

// everyUser lists what users lists, and what only shows on a closer look.
func everyUser(ctx context.Context, h *virt.Host) ([]user, error) {
	all, err := usersBy(ctx, h, closely)
	if err != nil {
		return nil, err
	}
	domains, err := h.Domains(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range domains {
		found, err := remembered(ctx, d)
		if virt.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, locate(ctx, h, all)
}

// closeUsers lists what all domains name anywhere, with the backing files that
// only the images themselves tell.
func closeUsers(ctx context.Context, h *virt.Host) ([]user, error) {
	all, err := usersBy(ctx, h, closely)
	if err != nil {
		return nil, err
	}
	return all, locate(ctx, h, all)
}

// remembered lists what the snapshots of a domain and its managed save name.
func remembered(ctx context.Context, d *virt.Domain) (out []user, err error) {
	snapshots, err := d.Snapshots(ctx)
	if err != nil && !virt.HasCode(err, virt.ErrNoSupport) {
		return nil, err
	}
	for _, s := range snapshots {
		found, err := namedIn(s.XML, user{domain: d, name: d.Name(), place: fmt.Sprintf("snapshot %q", s.Name)})
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	found, err := savedUsers(ctx, d)
	return append(out, found...), err
}

// savedUsers lists what the managed save of a domain names.
func savedUsers(ctx context.Context, d *virt.Domain) ([]user, error) {
	saved, err := d.HasManagedSave(ctx)
	if virt.HasCode(err, virt.ErrNoSupport) || err == nil && !saved {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	document, err := d.ManagedSaveXML(ctx)
	if err != nil {
		return nil, err
	}
	return namedIn(document, user{domain: d, name: d.Name(), place: "managed save"})
}

// namedIn lists every absolute path and every volume that a document names, with
// what is known of it in like. It does not know what an element means, and so
// finds also what the schema has no attribute for.
func namedIn(document string, like user) (out []user, err error) {
	doc := etree.NewDocument()
	if err := doc.ReadFromString(document); err != nil {
		return nil, fmt.Errorf("read what domain %s names in its %s: %w", like.name, like.place, err)
	}
	name := func(text, format string) {
		if text = strings.TrimSpace(text); path.IsAbs(text) {
			u := like
			u.source, u.format = path.Clean(text), format
			out = append(out, u)
		}
	}
	for _, e := range doc.FindElements("//*") {
		name(e.Text(), "")
		format := formatBeside(e)
		for _, a := range e.Attr {
			name(a.Value, format)
		}
		if protocol, at := e.SelectAttrValue("protocol", ""), e.SelectAttrValue("name", ""); protocol != "" && at != "" {
			u := like
			u.remotes = []string{protocol + ":" + at}
			out = append(out, u)
		}
		if pool, volume := e.SelectAttrValue("pool", ""), e.SelectAttrValue("volume", ""); pool != "" && volume != "" {
			u := like
			u.pool, u.volume, u.format = pool, volume, format
			out = append(out, u)
		}
	}
	return out, nil
}

// formatBeside is the format of the image that a source of a disk, or of what is
// below one, names; "" of everything else.
func formatBeside(e *etree.Element) string {
	parent := e.Parent()
	if e.Tag != "source" || parent == nil {
		return ""
	}
	for _, tag := range []string{"driver", "format"} {
		if beside := parent.SelectElement(tag); beside != nil {
			return beside.SelectAttrValue("type", "")
		}
	}
	return ""
}

// closely lists what usersIn lists, and what is named anywhere else in the
// document.
func closely(document string, like user) ([]user, error) {
	listed, err := usersIn(document, like)
	if err != nil {
		return nil, err
	}
	like.place = "its XML"
	all, err := namedIn(document, like)
	if err != nil {
		return nil, err
	}
	return append(listed, slices.DeleteFunc(all, func(u user) bool {
		return slices.ContainsFunc(listed, func(l user) bool {
			switch {
			case u.pool != "":
				return l.pool == u.pool && l.volume == u.volume
			case u.remotes != nil:
				return slices.Contains(l.remotes, u.remotes[0])
			}
			return l.source == u.source || slices.Contains(l.below, u.source)
		})
	})...), nil
}

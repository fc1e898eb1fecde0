package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/adopt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/network"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// The kinds of objects, in the order in which they are written.
const (
	kindNetwork = "network"
	kindPool    = "pool"
	kindVolume  = "volume"
	kindDomain  = "domain"
)

var kindsInOrder = []string{kindNetwork, kindPool, kindVolume, kindDomain}

// handle is an object of the host before it is read.
type handle struct {
	kind, pool, name string
	id               string // what an import takes
	path             string // of a volume
}

// selector is what a person gives to choose the object.
func (h handle) selector() string {
	if h.kind == kindVolume {
		return h.kind + "/" + h.pool + "/" + h.name
	}
	return h.kind + "/" + h.name
}

// object is one that was read.
type object struct {
	handle
	label   string     // its name in the configuration
	whole   tree.Value // what the provider reads of it
	essence tree.Value // what is written of it
}

func (o *object) resource() string { return "libvirt_" + o.kind }

// address is that of the configuration.
func (o *object) address() string { return o.resource() + "." + o.label }

// reader reads a host with the provider's own code.
type reader struct {
	*virt.Host
	kinds     map[string]kind.Kind
	essences  map[string]*adopt.Essence
	emulators map[string]string // by architecture, machine and type
}

// open prepares a connection through which nothing can be written.
func open(uri string) *reader {
	host := virt.NewHost(virt.Options{URI: uri})
	host.AddHook(virt.Hook{Before: func(c virt.Call) error {
		if c.Write {
			return fmt.Errorf("%s: adopt changes nothing on a host; this is a mistake in it", c)
		}
		return nil
	}})
	get := func() *virt.Host { return host }
	r := &reader{Host: host, emulators: map[string]string{}, kinds: map[string]kind.Kind{
		kindDomain: domain.New(get), kindNetwork: network.New(get), kindPool: storage.NewPool(get), kindVolume: storage.NewVolume(get),
	}}
	r.essences = map[string]*adopt.Essence{
		kindDomain:  adopt.Domain(r.kinds[kindDomain].Type(), r.emulator),
		kindNetwork: adopt.Network(r.kinds[kindNetwork].Type()),
		kindPool:    adopt.Pool(r.kinds[kindPool].Type()),
		kindVolume:  adopt.Volume(r.kinds[kindVolume].Type()),
	}
	return r
}

func (r *reader) close() error { return r.Close() }

// handles lists what there is of a kind, by name.
func (r *reader) handles(ctx context.Context, kind string) (all []handle, err error) {
	switch kind {
	case kindDomain:
		domains, err := r.Domains(ctx)
		if err != nil {
			return nil, err
		}
		for _, d := range domains {
			all = append(all, handle{kind: kind, name: d.Name(), id: d.UUID()})
		}
	case kindNetwork:
		networks, err := r.Networks(ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range networks {
			all = append(all, handle{kind: kind, name: n.Name(), id: n.UUID()})
		}
	case kindPool:
		pools, err := r.Pools(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range pools {
			all = append(all, handle{kind: kind, name: p.Name(), id: p.UUID()})
		}
	case kindVolume:
		if all, err = r.volumes(ctx); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b handle) int { return strings.Compare(a.selector(), b.selector()) })
	return all, nil
}

// volumes lists those of the pools that are started: others tell nothing.
func (r *reader) volumes(ctx context.Context) (all []handle, err error) {
	pools, err := r.Pools(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range pools {
		volumes, err := p.Volumes(ctx)
		if tellsNothing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, v := range volumes {
			all = append(all, handleOf(v))
		}
	}
	return all, nil
}

// tellsNothing says whether libvirt answered that an object is not there, or that
// the pool of it is off.
func tellsNothing(err error) bool {
	return virt.IsNotFound(err) || virt.HasCode(err, virt.ErrOperationInvalid)
}

func handleOf(v *virt.Volume) handle {
	return handle{kind: kindVolume, pool: v.PoolName(), name: v.Name(), id: v.Key(), path: v.Path()}
}

// list prints what there is, as selectors.
func (r *reader) list(ctx context.Context, out io.Writer) error {
	for _, kind := range slices.Backward(kindsInOrder) {
		all, err := r.handles(ctx, kind)
		if err != nil {
			return err
		}
		for _, h := range all {
			fmt.Fprintln(out, h.selector())
		}
	}
	return nil
}

// selector chooses objects.
type selector struct{ kind, pattern string }

func parseSelector(text string) (selector, error) {
	kind, pattern, found := strings.Cut(text, "/")
	if !found || pattern == "" || !slices.Contains(kindsInOrder, kind) {
		return selector{}, fmt.Errorf("%q chooses nothing: write domain/NAME, network/NAME, pool/NAME or volume/POOL/NAME; adopt without arguments lists what there is", text)
	}
	if kind == kindVolume && !strings.Contains(pattern, "/") {
		return selector{}, fmt.Errorf("%q names no pool: write volume/POOL/NAME, or volume/%s/* for all volumes of the pool", text, pattern)
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return selector{}, fmt.Errorf("%q is no pattern: %w", text, err)
	}
	return selector{kind, pattern}, nil
}

// chooses says whether the object is meant. A name that has the characters of a
// pattern is meant by itself, too.
func (s selector) chooses(h handle) bool {
	name := h.name
	if h.kind == kindVolume {
		name = h.pool + "/" + h.name
	}
	matched, err := path.Match(s.pattern, name)
	return h.kind == s.kind && (err == nil && matched || s.pattern == name)
}

// choose reads what is meant. The notes say what is left out and why: one object
// that cannot be adopted keeps no other from it.
func (r *reader) choose(ctx context.Context, o options) (objects []*object, notes []string, err error) {
	chosen := map[string]handle{}
	used := make([]bool, len(o.chosen))
	for _, kind := range kindsInOrder {
		all, err := r.handles(ctx, kind)
		if err != nil {
			return nil, nil, err
		}
		for _, h := range all {
			named := false
			for i, text := range o.chosen {
				s, _ := parseSelector(text)
				if s.chooses(h) {
					used[i], named = true, true
				}
			}
			if o.all || named {
				chosen[h.selector()] = h
			}
		}
	}
	for i, u := range used {
		if !u {
			return nil, nil, fmt.Errorf("the host %s has nothing that %q chooses; adopt without arguments lists what there is", r.Display(), o.chosen[i])
		}
	}
	queue := make([]handle, 0, len(chosen))
	for _, selector := range slices.Sorted(maps.Keys(chosen)) {
		queue = append(queue, chosen[selector])
	}
	for len(queue) > 0 {
		h := queue[0]
		queue = queue[1:]
		read, note, err := r.read(ctx, h)
		if err != nil {
			return nil, nil, err
		}
		if note != "" {
			notes = append(notes, note)
			continue
		}
		objects = append(objects, read)
		if !o.uses {
			continue
		}
		more, unseen, err := r.uses(ctx, read)
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, unseen...)
		for _, m := range more {
			if _, known := chosen[m.selector()]; !known {
				chosen[m.selector()] = m
				queue = append(queue, m)
			}
		}
	}
	slices.SortFunc(objects, func(a, b *object) int {
		return strings.Compare(orderOf(a), orderOf(b))
	})
	slices.Sort(notes)
	notes = slices.Compact(notes)
	if len(objects) == 0 && len(notes) > 0 {
		return nil, nil, fmt.Errorf("nothing of what was chosen can be adopted, and nothing was written. %s", strings.Join(notes, " "))
	}
	return objects, notes, nil
}

func orderOf(o *object) string {
	return fmt.Sprint(slices.Index(kindsInOrder, o.kind)) + o.selector()
}

// read reads one object as an import does. The note says why it is left out.
func (r *reader) read(ctx context.Context, h handle) (*object, string, error) {
	k := r.kinds[h.kind]
	found, err := k.Find(ctx, h.id)
	if err == nil && h.kind == kindVolume && (found.Attr("pool").Str() != h.pool || found.Attr("name").Str() != h.name) {
		// The key is that of another volume, too: an image of Ceph has the same one
		// in each cluster.
		h.id = h.pool + "/" + h.name
		found, err = k.Find(ctx, h.id)
	}
	if tellsNothing(err) {
		return nil, missing(h), nil
	}
	var facts kind.Facts
	if err == nil {
		facts, err = k.Read(ctx, found)
	}
	var gone *kind.GoneError
	switch {
	case errors.As(err, &gone):
		return nil, missing(h), nil
	case err != nil:
		return nil, "", fmt.Errorf("read %s: %w", h.selector(), err)
	}
	if persistent := facts.Status.Attr("persistent"); persistent.Kind() == tree.Bool && !persistent.Bool() {
		return nil, fmt.Sprintf("%s has no definition (it is transient) and is left out: a configuration of it would give it one. "+
			"If that is wanted: virsh dumpxml --inactive %s > f.xml && virsh define f.xml, which touches no guest, and adopt it then.", h.selector(), h.name), nil
	}
	r.learnEmulator(ctx, h.kind, facts.Definition)
	return &object{handle: h, whole: facts.Definition, essence: r.essences[h.kind].Of(facts.Definition)}, "", nil
}

// missing is the note for an object that the host lists and then says nothing of.
func missing(h handle) string {
	if h.kind == kindVolume {
		return fmt.Sprintf("%s is left out: its pool lists it, but it is not there, or the pool was stopped meanwhile. Let libvirt look again: virsh pool-refresh %s.", h.selector(), h.pool)
	}
	return fmt.Sprintf("%s is left out: it went while the host was read.", h.selector())
}

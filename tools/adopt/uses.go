package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// uses lists what an object needs that could be adopted with it: the networks
// and volumes of a domain, the pool of a volume and the volume beneath it. The
// notes say of what the host tells nothing.
func (r *reader) uses(ctx context.Context, o *object) (all []handle, notes []string, err error) {
	add := func(found []handle, note string, lookErr error) {
		all, err = append(all, found...), errors.Join(err, lookErr)
		if note != "" {
			notes = append(notes, fmt.Sprintf("%s uses %s", o.selector(), note))
		}
	}
	switch o.kind {
	case kindVolume:
		add(r.poolOf(ctx, o.pool))
		add(r.volumeAt(ctx, o.whole.At("backing_store.path").Str()))
	case kindDomain:
		for _, nic := range o.whole.At("devices.interfaces").Elems() {
			add(r.networkOf(ctx, nic.At("source.network.network").Str()))
		}
		for _, disk := range o.whole.At("devices.disks").Elems() {
			add(r.volumeOf(ctx, disk.Attr("source")))
		}
	}
	return all, notes, err
}

func (r *reader) poolOf(ctx context.Context, name string) ([]handle, string, error) {
	pool, err := r.LookupPoolByName(ctx, name)
	switch {
	case virt.IsNotFound(err):
		return nil, "", nil // it went meanwhile
	case err != nil:
		return nil, "", err
	}
	return []handle{{kind: kindPool, name: pool.Name(), id: pool.UUID()}}, "", nil
}

func (r *reader) networkOf(ctx context.Context, name string) ([]handle, string, error) {
	if name == "" {
		return nil, "", nil
	}
	net, err := r.LookupNetworkByName(ctx, name)
	switch {
	case virt.IsNotFound(err):
		return nil, "", nil // a machine may name one that is gone
	case err != nil:
		return nil, "", err
	}
	return []handle{{kind: kindNetwork, name: net.Name(), id: net.UUID()}}, "", nil
}

// volumeOf finds the volume that a disk has.
func (r *reader) volumeOf(ctx context.Context, source tree.Value) ([]handle, string, error) {
	if name := source.At("volume.volume").Str(); name != "" {
		poolName := source.At("volume.pool").Str()
		pool, err := r.LookupPoolByName(ctx, poolName)
		var v *virt.Volume
		if err == nil {
			v, err = pool.LookupVolume(ctx, name)
		}
		return foundVolume(v, fmt.Sprintf("volume/%s/%s", poolName, name), err)
	}
	for _, place := range []string{"file.file", "block.dev"} {
		if path := source.At(place).Str(); path != "" {
			return r.volumeAt(ctx, path)
		}
	}
	return nil, "", nil
}

// volumeAt finds the volume of a path; a file that is in no pool is none.
func (r *reader) volumeAt(ctx context.Context, path string) ([]handle, string, error) {
	if path == "" {
		return nil, "", nil
	}
	v, err := r.LookupVolumeByPath(ctx, path)
	return foundVolume(v, path, err)
}

// foundVolume makes of the answer to a look-up what is adopted. A pool that is off
// tells nothing of what lies in it.
func foundVolume(v *virt.Volume, called string, err error) ([]handle, string, error) {
	var answer *virt.Error
	switch {
	case virt.IsNotFound(err):
		return nil, "", nil
	case virt.HasCode(err, virt.ErrOperationInvalid) && errors.As(err, &answer):
		return nil, fmt.Sprintf("%s, and if that is a volume, it is not adopted: %s. Start the pool first to adopt it, too.", called, answer.Message), nil
	case err != nil:
		return nil, "", err
	}
	return []handle{handleOf(v)}, "", nil
}

// learnEmulator asks the host which emulator such a machine gets by itself. What
// it does not say is not known: then the emulator is written.
func (r *reader) learnEmulator(ctx context.Context, kind string, definition tree.Value) {
	if kind != kindDomain {
		return
	}
	arch, machine, virtType := definition.At("os.type_arch").Str(), definition.At("os.type_machine").Str(), definition.Attr("type").Str()
	key := emulatorKey(arch, machine, virtType)
	if _, known := r.emulators[key]; known {
		return
	}
	r.emulators[key] = ""
	text, err := r.DomainCapabilities(ctx, "", arch, machine, virtType)
	if err != nil {
		return
	}
	var capabilities struct {
		Path string `xml:"path"`
	}
	if xml.Unmarshal([]byte(text), &capabilities) == nil {
		r.emulators[key] = strings.TrimSpace(capabilities.Path)
	}
}

func emulatorKey(arch, machine, virtType string) string {
	return fmt.Sprintf("%s %s %s", arch, machine, virtType)
}

func (r *reader) emulator(arch, machine, virtType string) string {
	return r.emulators[emulatorKey(arch, machine, virtType)]
}

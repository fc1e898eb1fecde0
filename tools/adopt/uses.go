package main

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// uses lists what an object needs that could be adopted with it: the networks
// and volumes of a domain, the pool of a volume and the volume beneath it.
func (r *reader) uses(ctx context.Context, o *object) (all []handle, err error) {
	switch o.kind {
	case kindVolume:
		pool, err := r.LookupPoolByName(ctx, o.pool)
		if err != nil {
			return nil, err
		}
		all = append(all, handle{kind: kindPool, name: pool.Name(), id: pool.UUID()})
		below, err := r.volumeAt(ctx, o.whole.At("backing_store.path").Str())
		return append(all, below...), err
	case kindDomain:
		for _, nic := range o.whole.At("devices.interfaces").Elems() {
			name := nic.At("source.network.network").Str()
			if name == "" {
				continue
			}
			net, err := r.LookupNetworkByName(ctx, name)
			if virt.IsNotFound(err) {
				continue // a machine may name one that is gone
			}
			if err != nil {
				return nil, err
			}
			all = append(all, handle{kind: kindNetwork, name: net.Name(), id: net.UUID()})
		}
		for _, disk := range o.whole.At("devices.disks").Elems() {
			found, err := r.volumeOf(ctx, disk.Attr("source"))
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// volumeOf finds the volume that a disk has.
func (r *reader) volumeOf(ctx context.Context, source tree.Value) ([]handle, error) {
	if name := source.At("volume.volume").Str(); name != "" {
		pool, err := r.LookupPoolByName(ctx, source.At("volume.pool").Str())
		if err == nil {
			var v *virt.Volume
			if v, err = pool.LookupVolume(ctx, name); err == nil {
				return []handle{handleOf(v)}, nil
			}
		}
		if virt.IsNotFound(err) || virt.HasCode(err, virt.ErrOperationInvalid) { // the pool is off
			return nil, nil
		}
		return nil, err
	}
	for _, place := range []string{"file.file", "block.dev"} {
		if path := source.At(place).Str(); path != "" {
			return r.volumeAt(ctx, path)
		}
	}
	return nil, nil
}

// volumeAt finds the volume of a path; a file that is in no pool is none.
func (r *reader) volumeAt(ctx context.Context, path string) ([]handle, error) {
	if path == "" {
		return nil, nil
	}
	v, err := r.LookupVolumeByPath(ctx, path)
	switch {
	case virt.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []handle{handleOf(v)}, nil
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

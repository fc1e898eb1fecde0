package provider

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// importHelp is the end of every refusal to import.
const importHelp = "The identifier is the absolute path of a seed image, or NAME=PATH, for example web-1=/var/lib/libvirt/images/web-1-seed.iso. " +
	"An image that lies on the libvirt host only can be fetched with virsh vol-download. " +
	"Without an image there is nothing to import: leave the block as it is, and apply creates the same seed."

// ImportState takes over the content of an existing image, whoever wrote it. The
// image itself is only read; the seed gets a file of its own in the store.
func (r *cloudinitDisk) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	m, err := importSeed(req.ID)
	if err != nil {
		resp.Diagnostics.AddError(fmt.Sprintf("Could not import seed %q", req.ID), sentence(err.Error())+"\n\n"+importHelp)
		return
	}
	if err := r.put(m, false); err != nil {
		addSeedFailure(&resp.Diagnostics, "import", m, err)
		return
	}
	m.ID = m.identifier(nil)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// importSeed reads the image that an identifier names.
func importSeed(id string) (*cloudinitDiskModel, error) {
	name, file, err := splitImportID(id)
	if err != nil {
		return nil, err
	}
	for _, f := range seed.CheckName(name) {
		return nil, fmt.Errorf("the name %q: %s", name, f)
	}
	content, err := readImage(file)
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(content.Label, seed.LabelCloudInit) {
		return nil, fmt.Errorf("%s has the label %q, so it is no seed for cloud-init, which looks for %q", file, content.Label, seed.LabelCloudInit)
	}
	m := &cloudinitDiskModel{Name: types.StringValue(name)}
	for _, f := range content.Files {
		var attribute *types.String
		switch f.Name {
		case seed.FileUserData:
			attribute = &m.UserData
		case seed.FileMetaData:
			attribute = &m.MetaData
		case seed.FileNetworkConfig:
			attribute = &m.NetworkConfig
		default:
			return nil, fmt.Errorf("%s contains %q, for which this resource has no attribute", file, f.Name)
		}
		if !utf8.Valid(f.Data) {
			return nil, fmt.Errorf("%s in %s is not text in UTF-8, so no attribute can hold it", f.Name, file)
		}
		*attribute = types.StringValue(string(f.Data))
	}
	if !m.complete() {
		return nil, fmt.Errorf("%s lacks user-data or meta-data, so it is no seed for cloud-init", file)
	}
	return m, nil
}

// splitImportID takes PATH or NAME=PATH apart. Without a name, it is that of the
// file.
func splitImportID(id string) (name, file string, err error) {
	if filepath.IsAbs(id) {
		if own, _, ok := seed.ParsePath(id); ok {
			return own, id, nil
		}
		return strings.TrimSuffix(filepath.Base(id), ".iso"), id, nil
	}
	name, rest, found := strings.Cut(id, "=/")
	if !found {
		return "", "", fmt.Errorf("%q is not the absolute path of an image", id)
	}
	return name, "/" + rest, nil
}

func readImage(file string) (seed.Seed, error) {
	// A FIFO would block, and a device has no size.
	info, err := os.Stat(file)
	if err != nil {
		return seed.Seed{}, fmt.Errorf("read seed image: %w", err)
	}
	if !info.Mode().IsRegular() {
		return seed.Seed{}, fmt.Errorf("read seed image: %s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return seed.Seed{}, fmt.Errorf("read seed image: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := seed.ReadISO(f, info.Size())
	if err != nil {
		return seed.Seed{}, fmt.Errorf("%s: %w", file, err)
	}
	return content, nil
}

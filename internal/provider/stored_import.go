package provider

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// ImportState takes over the content of an existing file, whoever wrote it. The
// file itself is only read; the object gets one of its own in the store.
func (r *stored) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	m, err := r.load(req.ID)
	if err != nil {
		resp.Diagnostics.AddError(fmt.Sprintf("Could not import %s %q", r.kind.noun, req.ID), sentence(err.Error())+"\n\n"+r.kind.importHelp)
		return
	}
	if err := r.put(m, false); err != nil {
		r.addFailure(&resp.Diagnostics, "import", m, err)
		return
	}
	m.common().ID = m.common().identifier(nil)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// load reads the file that an identifier names.
func (r *stored) load(id string) (storedModel, error) {
	name, file, err := splitImportID(id)
	if err != nil {
		return nil, err
	}
	for _, f := range seed.CheckName(name) {
		return nil, fmt.Errorf("the name %q: %s", name, f)
	}
	m, err := r.kind.load(file)
	if err != nil {
		return nil, err
	}
	m.common().Name = types.StringValue(name)
	return m, nil
}

// splitImportID takes PATH or NAME=PATH apart. Without a name, it is that of the
// file.
func splitImportID(id string) (name, file string, err error) {
	if filepath.IsAbs(id) {
		if own, _, ok := seed.ParsePath(id); ok {
			return own, id, nil
		}
		name = filepath.Base(id)
		for _, end := range []string{".iso", ".ign", ".json", ".sh"} {
			name = strings.TrimSuffix(name, end)
		}
		return name, id, nil
	}
	name, rest, found := strings.Cut(id, "=/")
	if !found {
		return "", "", fmt.Errorf("%q is not the absolute path of a file", id)
	}
	return name, "/" + rest, nil
}

// openRegular opens a file for reading, and tells its size in bytes.
func openRegular(file string) (*os.File, int64, error) {
	// A FIFO would block, and a device has no size.
	info, err := os.Stat(file)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	return f, info.Size(), err
}

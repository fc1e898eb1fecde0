package provider

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// importSeedHelp is the end of every refusal to import a seed.
const importSeedHelp = "The identifier is the absolute path of a seed image, or NAME=PATH, for example web-1=/var/lib/libvirt/images/web-1-seed.iso. " +
	"An image that lies on the libvirt host only can be fetched with virsh vol-download. " +
	"Without an image there is nothing to import: leave the block as it is, and apply creates the same seed."

// loadSeed reads an image, whoever wrote it.
func loadSeed(file string) (storedModel, error) {
	content, err := readImage(file)
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(content.Label, seed.LabelCloudInit) {
		return nil, fmt.Errorf("%s has the label %q, so it is no seed for cloud-init, which looks for %q", file, content.Label, seed.LabelCloudInit)
	}
	m := new(cloudinitDiskModel)
	m.withoutPool()
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
	if m.UserData.IsNull() || m.MetaData.IsNull() {
		return nil, fmt.Errorf("%s lacks user-data or meta-data, so it is no seed for cloud-init", file)
	}
	return m, nil
}

func readImage(file string) (seed.Seed, error) {
	f, size, err := openRegular(file)
	if err != nil {
		return seed.Seed{}, fmt.Errorf("read seed image: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := seed.ReadISO(f, size)
	if err != nil {
		return seed.Seed{}, fmt.Errorf("%s: %w", file, err)
	}
	return content, nil
}

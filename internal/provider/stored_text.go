package provider

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// storedText is a stored resource of one text, which a guest gets as it is or on
// a drive.
type storedText struct {
	storedFile
	Content types.String `tfsdk:"content"`
	Format  types.String `tfsdk:"format"`
}

func (t *storedText) texts(check func(string) []seed.Finding) []storedInput {
	return []storedInput{{"content", t.Content, check, true}, {"format", t.Format, seed.CheckFormat, false}}
}

// onDrive tells whether the guest gets it on a drive.
func (t *storedText) onDrive() bool { return t.Format.ValueString() == seed.FormatISO }

const importTextHelp = "A file that lies on the libvirt host only can be fetched with virsh vol-download. " +
	"Without a file there is nothing to import: leave the block as it is, and apply creates the same."

// loadText reads a text, or the named file of an image with that label.
func loadText(path, label, name string) (storedText, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return storedText{}, fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	var t storedText
	var data []byte
	switch image, err := seed.ReadISO(f, size); {
	case err == nil:
		var ok bool
		if data, ok = image.File(name); !ok || !strings.EqualFold(image.Label, label) {
			return storedText{}, fmt.Errorf("%s is the image of a drive, but not one with the label %q and the file %s", path, label, name)
		}
		if len(image.Files) > 1 {
			return storedText{}, fmt.Errorf("%s has more files than %s, for which this resource has no attribute", path, name)
		}
		t.Format = types.StringValue(seed.FormatISO)
	case !errors.Is(err, seed.ErrFormat):
		return storedText{}, fmt.Errorf("%s: %w", path, err)
	case size > seed.MaxContent:
		return storedText{}, fmt.Errorf("%s is larger than %d MiB", path, seed.MaxContent>>20)
	default:
		if data, err = io.ReadAll(io.NewSectionReader(f, 0, size)); err != nil {
			return storedText{}, fmt.Errorf("read %s: %w", path, err)
		}
		// A volume that was longer than its content was fetched with what follows.
		data = []byte(strings.TrimRight(string(data), "\x00"))
	}
	if !utf8.Valid(data) {
		return storedText{}, fmt.Errorf("%s is not text in UTF-8, so no attribute can hold it", path)
	}
	t.Content = types.StringValue(string(data))
	return t, nil
}

// storedTextDescription is what the descriptions of all texts say.
const storedTextDescription = "The file is a pure function of `content` and `format`: the same inputs give the same bytes on any day and on any machine. " +
	"It lies in a store on the machine that runs the provider (see `seed_store` in the provider's configuration), which is only a cache. " +
	"If it is gone, because the store was wiped or another machine runs the plan, the next refresh puts it back, and nothing else changes.\n\n" +
	"A machine gets it through a volume, since the store is closed to QEMU and need not be on the libvirt host. The volume (`create = { content = { url = ….path } }`) is compared by the digest of what it really holds: " +
	"another store, a lost file, or a file that another program wrote is no change. Other content is put into the same volume in place.\n\n"

// storedTextFwCfg says how a file gets to fw_cfg.
const storedTextFwCfg = "Put it into a volume, and name the volume's file in the domain's `sys_info`, as in the example. " +
	"Leave out the volume's `capacity`, so that no zeros are behind the text, and let the domain have `features = { acpi = true }`, without which its kernel does not find `fw_cfg`.\n"

// storedTextAttributes are the attributes. what is what the file has in it.
func storedTextAttributes(what, content, format string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "The name. An object that was taken over from another provider keeps the identifier that it had.",
		},
		"name": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "Name, unique on the machine that runs the provider: the name of the file begins with it.",
		},
		"content": schema.StringAttribute{Required: true, Sensitive: true, MarkdownDescription: content},
		"format":  schema.StringAttribute{Optional: true, MarkdownDescription: format},
		"path": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "Path of the file with " + what + ", `STORE/NAME-sha256-DIGEST` and an extension, known in the plan. It depends on the machine that runs the provider: " +
				"where a saved plan is applied on another machine than it was made on, set `seed_store` to a directory that both can use.",
		},
		"size": schema.Int64Attribute{
			Computed:            true,
			MarkdownDescription: "Size of the file in bytes.",
		},
		"digest": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "Digest of the content, `sha256:` and hexadecimal digits: for the file as it is, SHA-256 of `content` without white space at its end; " +
				"for a drive, SHA-256 over the label, and the file's name and bytes.",
		},
		"protect": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether it is protected from being destroyed and replaced. It is kept in the state, and stands when the block is removed. " +
				"Unset: what the provider's configuration says, else `false`, since it can be made again.",
		},
	}
}

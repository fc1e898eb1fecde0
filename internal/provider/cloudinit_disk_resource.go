package provider

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// cloudinitDisk is libvirt_cloudinit_disk: a seed image for cloud-init.
type cloudinitDisk struct{ stored }

func newCloudinitDisk() resource.Resource { return &cloudinitDisk{stored{kind: cloudinitDiskKind}} }

var cloudinitDiskKind = storedKind{
	typeName:   "cloudinit_disk",
	noun:       "seed",
	file:       "image",
	schema:     cloudinitDiskSchema,
	model:      func() storedModel { return new(cloudinitDiskModel) },
	load:       loadSeed,
	importHelp: importSeedHelp,
}

// cloudinitDiskModel is a seed in configuration, plan and state.
type cloudinitDiskModel struct {
	storedFile
	UserData      types.String `tfsdk:"user_data"`
	MetaData      types.String `tfsdk:"meta_data"`
	NetworkConfig types.String `tfsdk:"network_config"`

	// Of a seed that lies in a pool.
	Pool              types.String `tfsdk:"pool"`
	UserDataWO        types.String `tfsdk:"user_data_wo"`
	UserDataWOVersion types.Int64  `tfsdk:"user_data_wo_version"`
	VolumeName        types.String `tfsdk:"volume_name"`
	ContentDigest     types.String `tfsdk:"content_digest"`
	Superseded        types.List   `tfsdk:"superseded"`
}

func (m *cloudinitDiskModel) inputs() []storedInput {
	return []storedInput{
		{"user_data", m.UserData, seed.CheckUserData, true},
		{"meta_data", m.MetaData, seed.CheckMetaData, true},
		{"network_config", m.NetworkConfig, seed.CheckNetworkConfig, false},
	}
}

func (m *cloudinitDiskModel) content() seed.Content {
	return seed.CloudInit(m.UserData.ValueString(), m.MetaData.ValueString(), m.NetworkConfig.ValueStringPointer())
}

func cloudinitDiskSchema() schema.Schema {
	s := schema.Schema{
		MarkdownDescription: "A cloud-init seed: a small ISO image with the label `cidata`, which gives a machine its first configuration.\n\n" +
			"The image is a pure function of `user_data`, `meta_data` and `network_config`: the same inputs give the same bytes on any day and on any machine. " +
			"Without `pool` it lies in a store on the machine that runs the provider (see `seed_store` in the provider's configuration), which is only a cache. " +
			"If the file is gone, because the store was wiped or another machine runs the plan, the next refresh puts it back, and nothing else changes.\n\n" +
			"A machine gets it in one of two ways. With `pool`, the image lies in a pool of the host as a volume of its own, and the CD of the `libvirt_domain` names that: " +
			"`source = { volume = { pool = \"POOL\", volume = libvirt_cloudinit_disk.NAME.volume_name } }`. Other content is another volume: the domain's plan shows the change of its CD, which a running machine gets without interruption, " +
			"and the old volume is deleted once nobody has it any more. Nothing lies on the machine that runs the provider.\n\n" +
			"Without `pool`, a machine gets it through a volume resource: `create = { content = { url = libvirt_cloudinit_disk.NAME.path } }` in a `libvirt_volume`, which is the CD of the `libvirt_domain`. " +
			"The volume is compared by the digest of what it really holds. So it does not matter where the store is, or whether the file is there, or whether another program wrote the image: equal content is no change. " +
			"Other content is put into the same volume in place, out of the drives of the running machines that have it and in again; the machines go on running, and no domain changes. " +
			"cloud-init reads it at the next boot, and acts on it if `instance-id` is a new one.\n\n" +
			"Every change is made in place. Without `pool`, the image of the change before stays in the store until the next one, since a machine may still have it in its drive.\n\n" +
			"What cloud-init would silently ignore is refused in the plan: user data with an unknown header, YAML that does not parse, meta data without an `instance-id`. " +
			"Inputs that an object has already are not complained about.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The name. An object that was taken over from another provider keeps the identifier that it had.",
			},
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name of the seed, unique on the machine that runs the provider: the name of the image's file begins with it.",
			},
			"user_data": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				MarkdownDescription: "The user data, in plain text and without compression. cloud-init knows what it is by its beginning: `#cloud-config`, `#!`, `#include`, `#include-once`, " +
					"`#cloud-boothook`, `#part-handler`, `#cloud-config-archive`, `#cloud-config-jsonp`, `## template: jinja`, or the header of a MIME message with a `MIME-Version:` line. " +
					"Accepted, too, are scripts for cloudbase-init (`#ps1`, `rem cmd`) and machine configurations of Talos Linux. Empty means none. " +
					"Either this or `user_data_wo` has to be there.",
			},
			"meta_data": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "The meta data, a mapping in YAML or JSON. It must have an `instance-id`: by a new one, cloud-init knows that a machine is a new one, and sets it up again. " +
					"Usual, too, is `local-hostname`.",
			},
			"network_config": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The network configuration, in [version 2](https://cloudinit.readthedocs.io/en/latest/reference/network-config-format-v2.html) (netplan's) or version 1 of cloud-init's format, " +
					"with or without `network:` above it. Unset: the guest uses DHCP.",
			},
			"path": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "Path of the image, `STORE/NAME-sha256-DIGEST.iso`, known in the plan. It depends on the machine that runs the provider: " +
					"where a saved plan is applied on another machine than it was made on, set `seed_store` to a directory that both can use. With `pool`: the path of the volume on the host.",
			},
			"size": schema.Int64Attribute{
				Computed:            true,
				MarkdownDescription: "Size of the image in bytes.",
			},
			"digest": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "Digest of the content, `sha256:` and hexadecimal digits: SHA-256 over the label, and each file's name and bytes. " +
					"It does not depend on the program that wrote an image, and says whether two seeds are the same to a guest.",
			},
			"protect": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether the seed is protected from being destroyed and replaced. It is kept in the state, and stands when the block is removed. " +
					"Unset: what the provider's configuration says, else `false`, since a seed can be made again.",
			},
		},
	}
	maps.Copy(s.Attributes, poolAttributes())
	return s
}

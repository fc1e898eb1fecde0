package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
)

var _ resource.ResourceWithValidateConfig = (*cloudinitDisk)(nil)

// poolAttributes are the attributes of a seed that lies in a pool.
func poolAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"pool": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Name of the pool of the host in which the image lies, as a volume of its own. Unset: it lies in the store of the machine that runs the provider. " +
				"`name` has to be unique among the seeds of the pool. Who needs a volume is asked of this host alone: in a pool that machines of other hosts use, too, an old volume is deleted only after a plan has shown that, and somebody has to look there before.",
		},
		"user_data_wo": schema.StringAttribute{
			Optional:  true,
			Sensitive: true,
			WriteOnly: true,
			MarkdownDescription: "The user data, for what must not be in the state: it is in no plan and no state, and may come from an ephemeral value. It needs `pool`, since what is not in the state cannot be put back into a store, and `user_data_wo_version`. " +
				"Then `volume_name` and `digest` are not known in a plan that changes the seed. The digest is in the state: who knows all of the user data but a short password can find that with it.",
		},
		"user_data_wo_version": schema.Int64Attribute{
			Optional:            true,
			MarkdownDescription: "Version of `user_data_wo`. Since nobody can compare that, another version says that it is another one, and nothing else does.",
		},
		"volume_name": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "Name of the volume in `pool`, `NAME-DIGEST.iso` with the first 12 digits of the digest, known in the plan: for `source.volume.volume` of the CD of a `libvirt_domain`. Null without `pool`. " +
				"With other content it is another one.",
		},
		"content_digest": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "Digest of what the volume really holds, as of the last refresh; null if it is gone, or holds no seed, or without `pool`. " +
				"If it is not `digest`, somebody changed it on the host, and the next apply puts it back.",
		},
		"superseded": schema.ListAttribute{
			ElementType: types.StringType,
			Computed:    true,
			MarkdownDescription: "Volumes that the seed had before and that are still on the host, as `POOL/VOLUME`: a machine has one of them in its drive yet. " +
				"The update of that machine deletes it, if it is in the apply that changes the seed. Otherwise, one that nobody needs any more is a change of this seed in the next plan, and the apply of that deletes it.",
		},
	}
}

// ValidateConfig says what does not go together.
func (r *cloudinitDisk) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var c cloudinitDiskModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &c)...)
	if resp.Diagnostics.HasError() {
		return
	}
	refuse := func(attribute, summary, detail string) {
		resp.Diagnostics.AddAttributeError(path.Root(attribute), fmt.Sprintf("%s of seed %q", summary, c.Name.ValueString()), detail)
	}
	plain, secret := !c.UserData.IsNull(), !c.UserDataWO.IsNull()
	switch {
	case !plain && !secret:
		refuse("user_data", "Missing user_data", "Set user_data; or user_data_wo, which is not kept in the state. Empty user data is \"\".")
	case plain && secret && !c.UserData.IsUnknown() && !c.UserDataWO.IsUnknown():
		refuse("user_data_wo", "Two user data", "user_data and user_data_wo are both set, and a seed has one of them. Leave one out.")
	}
	if secret && c.Pool.IsNull() {
		refuse("user_data_wo", "No pool for user_data_wo", "What is not in the state cannot be put back into the store of this machine, so the image has to lie on the host. Set pool to the name of a pool; or use user_data.")
	}
	if secret && c.UserDataWOVersion.IsNull() {
		refuse("user_data_wo_version", "Missing user_data_wo_version", "user_data_wo is not kept, so it cannot be compared. Set user_data_wo_version to a number, and to another one whenever user_data_wo changes.")
	}
	if !secret && !c.UserDataWOVersion.IsNull() {
		refuse("user_data_wo_version", "No user_data_wo", "user_data_wo_version is the version of user_data_wo, which is not set. Leave it out; or, if user_data_wo comes from a value that is null here, give that a value.")
	}
	if !c.Pool.IsUnknown() && !c.Pool.IsNull() && c.Pool.ValueString() == "" {
		refuse("pool", "Empty pool", "It is the name of a pool of the host. Leave it out for a seed in the store of this machine.")
	}
}

// pooled says whether the seed lies in a pool.
func (m *cloudinitDiskModel) pooled() bool { return !m.Pool.IsNull() && !m.Pool.IsUnknown() }

// mayBePooled is pooled for a plan in which the pool may not be known.
func (m *cloudinitDiskModel) mayBePooled() bool { return !m.Pool.IsNull() }

// inPools says whether something of the seed lies in a pool: its image, or one
// that it had before.
func (m *cloudinitDiskModel) inPools() bool { return m.pooled() || len(m.Superseded.Elements()) > 0 }

// sameSeed tells whether all that decides about the image and its place is that of
// another model.
func (m *cloudinitDiskModel) sameSeed(other *cloudinitDiskModel) bool {
	return sameFile(m, other) && m.Pool.Equal(other.Pool) && m.UserDataWOVersion.Equal(other.UserDataWOVersion)
}

// writeOnly says whether the user data are not in the state.
func (m *cloudinitDiskModel) writeOnly() bool { return !m.UserDataWOVersion.IsNull() }

// volume is where the image lies, the zero value if it is in no pool.
func (m *cloudinitDiskModel) volume() storage.SeedVolume {
	if !m.pooled() || m.VolumeName.ValueString() == "" {
		return storage.SeedVolume{}
	}
	return storage.SeedVolume{Pool: m.Pool.ValueString(), Name: m.VolumeName.ValueString(), Path: m.Path.ValueString()}
}

// volumeOf is where an image of that content lies.
func (m *cloudinitDiskModel) volumeOf(digest seed.Digest) storage.SeedVolume {
	return storage.SeedVolume{Pool: m.Pool.ValueString(), Name: seed.VolumeName(m.Name.ValueString(), digest)}
}

// before are the volumes that the seed had before.
func (m *cloudinitDiskModel) before() (out []storage.SeedVolume) {
	for _, e := range m.Superseded.Elements() {
		if text, ok := e.(types.String); ok {
			if at, ok := storage.ParseSeedVolume(text.ValueString()); ok {
				out = append(out, at)
			}
		}
	}
	return out
}

// setBefore is the list of those that are still there. A seed that never was in a
// pool has none.
func (m *cloudinitDiskModel) setBefore(all []storage.SeedVolume) {
	if len(all) == 0 && !m.mayBePooled() {
		m.Superseded = types.ListNull(types.StringType)
		return
	}
	var names []string
	for _, at := range all {
		if !slices.Contains(names, at.String()) {
			names = append(names, at.String())
		}
	}
	elems := make([]attr.Value, len(names))
	for i, name := range names {
		elems[i] = types.StringValue(name)
	}
	m.Superseded = types.ListValueMust(types.StringType, elems)
}

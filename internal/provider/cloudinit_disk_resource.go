package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// cloudinitDisk is libvirt_cloudinit_disk: a seed image in the store of this
// machine. Its state holds everything that the image is made of, so the file is
// a cache: Read puts it back, and nothing else in a plan depends on it.
type cloudinitDisk struct{ settings seedSettings }

// seedSettings is what seeds need to know of the provider's configuration.
type seedSettings interface {
	// SeedStore returns the configured directory, "" if none is.
	SeedStore() string
	// ProtectSeeds returns what protects a seed that says nothing itself, and
	// where that comes from.
	ProtectSeeds() (protect bool, origin string)
	// files returns what the seeds of this run know of each other's images.
	files() *seedFiles
}

var (
	_ seedSettings                     = (*Data)(nil)
	_ resource.ResourceWithConfigure   = (*cloudinitDisk)(nil)
	_ resource.ResourceWithModifyPlan  = (*cloudinitDisk)(nil)
	_ resource.ResourceWithImportState = (*cloudinitDisk)(nil)
)

func newCloudinitDisk() resource.Resource { return &cloudinitDisk{} }

// cloudinitDiskModel is a seed in configuration, plan and state.
type cloudinitDiskModel struct {
	ID            types.String `tfsdk:"id"`
	Name          types.String `tfsdk:"name"`
	UserData      types.String `tfsdk:"user_data"`
	MetaData      types.String `tfsdk:"meta_data"`
	NetworkConfig types.String `tfsdk:"network_config"`
	Path          types.String `tfsdk:"path"`
	Size          types.Int64  `tfsdk:"size"`
	Digest        types.String `tfsdk:"digest"`
	Protect       types.Bool   `tfsdk:"protect"`
}

// supersededKey holds, in private state, the paths of the images that this
// object had before. The last one stays until the next change: a guest may still
// have it in its drive, and must find it when it is started again before the
// change has reached it.
const supersededKey = "driftsafe.superseded"

func (r *cloudinitDisk) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_cloudinit_disk"
}

func (r *cloudinitDisk) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A cloud-init seed: a small ISO image with the label `cidata`, which gives a machine its first configuration.\n\n" +
			"The image is a pure function of `user_data`, `meta_data` and `network_config`: the same inputs give the same bytes on any day and on any machine. " +
			"It lies in a store on the machine that runs the provider (see `seed_store` in the provider's configuration), which is only a cache. " +
			"If the file is gone, because the store was wiped or another machine runs the plan, the next refresh puts it back, and nothing else changes.\n\n" +
			"A machine gets it through a volume: `create = { content = { url = libvirt_cloudinit_disk.NAME.path } }` in a `libvirt_volume`, which is the CD of the `libvirt_domain`. " +
			"The volume is compared by the digest of what it really holds. So it does not matter where the store is, or whether the file is there, or whether another program wrote the image: equal content is no change. " +
			"Other content is put into the same volume in place, out of the drives of the running machines that have it and in again; the machines go on running, and no domain changes. " +
			"cloud-init reads it at the next boot, and acts on it if `instance-id` is a new one.\n\n" +
			"Every change is made in place. The image of the change before stays in the store until the next one, since a machine may still have it in its drive.\n\n" +
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
				Required:  true,
				Sensitive: true,
				MarkdownDescription: "The user data, in plain text and without compression. cloud-init knows what it is by its beginning: `#cloud-config`, `#!`, `#include`, `#include-once`, " +
					"`#cloud-boothook`, `#part-handler`, `#cloud-config-archive`, `#cloud-config-jsonp`, `## template: jinja`, or the header of a MIME message with a `MIME-Version:` line. " +
					"Accepted, too, are scripts for cloudbase-init (`#ps1`, `rem cmd`) and machine configurations of Talos Linux. Empty means none.",
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
					"where a saved plan is applied on another machine than it was made on, set `seed_store` to a directory that both can use.",
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
}

func (r *cloudinitDisk) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	if req.ProviderData == nil { // the schema is asked for, nothing else
		return
	}
	settings, ok := req.ProviderData.(seedSettings)
	if !ok {
		resp.Diagnostics.AddError("Seeds got no settings", fmt.Sprintf("The provider handed over a %T. This is an error in the provider: please report it.", req.ProviderData))
		return
	}
	r.settings = settings
}

// store returns the store of this run.
func (r *cloudinitDisk) store() (seed.Store, error) {
	return seed.OpenStore(r.settings.SeedStore(), os.Getenv)
}

// content returns the seed that the model describes. All inputs are known.
func (m *cloudinitDiskModel) content() seed.Seed {
	return seed.CloudInit(m.UserData.ValueString(), m.MetaData.ValueString(), m.NetworkConfig.ValueStringPointer())
}

// sameSeed tells whether name and content are those of another model.
func (m *cloudinitDiskModel) sameSeed(other *cloudinitDiskModel) bool {
	return m.Name.Equal(other.Name) && m.UserData.Equal(other.UserData) && m.MetaData.Equal(other.MetaData) && m.NetworkConfig.Equal(other.NetworkConfig)
}

// complete tells whether the model has all that an image is made of.
func (m *cloudinitDiskModel) complete() bool {
	return !m.Name.IsNull() && !m.UserData.IsNull() && !m.MetaData.IsNull()
}

// put makes sure that the image is in the store, and sets what depends on it.
// own says that this object has just come to the image: then no other object of
// this run may remove it.
func (r *cloudinitDisk) put(m *cloudinitDiskModel, own bool) error {
	store, err := r.store()
	if err != nil {
		return err
	}
	content := m.content()
	if own {
		r.settings.files().keep(store.Path(m.Name.ValueString(), content.Digest()))
	}
	placed, err := store.Put(m.Name.ValueString(), content)
	if err != nil {
		return err
	}
	m.Path = types.StringValue(placed.Path)
	m.Size = types.Int64Value(placed.Size)
	m.Digest = types.StringValue(content.Digest().Tagged())
	return nil
}

func (r *cloudinitDisk) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan cloudinitDiskModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, guardKey, nil)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.put(&plan, true); err != nil {
		addSeedFailure(&resp.Diagnostics, "create", &plan, err)
		return
	}
	plan.ID = plan.identifier(nil)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// Read puts the image into the store of this run, which is the one write that a
// plan makes. If that fails, the state stays as it is: it describes the seed
// completely without the file.
func (r *cloudinitDisk) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state cloudinitDiskModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !state.complete() {
		resp.Diagnostics.AddWarning(fmt.Sprintf("The state of seed %q is not complete", state.Name.ValueString()),
			"It lacks the name, user_data or meta_data, so its image can neither be made nor compared. Apply the configuration, which has them.")
		return
	}
	if err := r.put(&state, false); err != nil {
		resp.Diagnostics.AddWarning(fmt.Sprintf("The image of seed %q is not in the store", state.Name.ValueString()),
			sentence(err.Error())+"\n\nThe seed itself is complete in the state, and is planned as usual. What reads the file in this run will fail.")
		return
	}
	if state.ID.IsNull() {
		state.ID = state.identifier(nil)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *cloudinitDisk) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state cloudinitDiskModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, guardKey, nil)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan.sameSeed(&state) { // only protect differs, which is in the state alone
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		return
	}
	if err := r.put(&plan, true); err != nil {
		addSeedFailure(&resp.Diagnostics, "update", &plan, err)
		return
	}
	plan.ID = plan.identifier(&state)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)

	old, diags := superseded(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	for _, path := range old {
		if path == plan.Path.ValueString() { // an earlier content is back
			continue
		}
		if err := r.settings.files().remove(path); err != nil {
			resp.Diagnostics.AddWarning(fmt.Sprintf("An old image of seed %q was not removed", plan.Name.ValueString()),
				sentence(err.Error())+" Nothing uses it any more: remove it by hand.")
		}
	}
	resp.Diagnostics.Append(setSuperseded(ctx, resp.Private, state.Path.ValueString())...)
}

func (r *cloudinitDisk) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state cloudinitDiskModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if g := r.guardOf(&state); g.Protect {
		// Plans refuse all but the replacement of a tainted object, about which
		// the core asks nobody.
		g.Late = true
		refuseSeed(&resp.Diagnostics, "destroy", g)
		return
	}
	paths, diags := superseded(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	paths = append(paths, state.Path.ValueString())
	// A state that was not refreshed may name the store of another run.
	if store, err := r.store(); err == nil && state.complete() {
		paths = append(paths, store.Path(state.Name.ValueString(), state.content().Digest()))
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if err := r.settings.files().remove(path); err != nil {
			addSeedFailure(&resp.Diagnostics, "remove", &state, err)
		}
	}
}

// privateKeys is what the framework's private state offers.
type privateKeys interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func superseded(ctx context.Context, private privateKeys) (paths []string, diags diag.Diagnostics) {
	raw, diags := private.GetKey(ctx, supersededKey)
	if len(raw) > 0 && json.Unmarshal(raw, &paths) != nil {
		diags.AddWarning("Old seed images are not known any more", "The record of them in private state cannot be read. Remove what is not used from the store by hand.")
	}
	return paths, diags
}

func setSuperseded(ctx context.Context, private privateKeys, path string) diag.Diagnostics {
	raw, err := json.Marshal([]string{path})
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Old seed images cannot be recorded", err.Error())}
	}
	return private.SetKey(ctx, supersededKey, raw)
}

func addSeedFailure(diags *diag.Diagnostics, doing string, m *cloudinitDiskModel, err error) {
	diags.AddError(fmt.Sprintf("Could not %s seed %q", doing, m.Name.ValueString()), sentence(err.Error()))
}

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
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// stored is a resource that is one file in the store of this machine: a seed, an
// Ignition configuration, a Combustion script. Its state holds everything that
// the file is made of, so the file is a cache: Read puts it back, and nothing
// else in a plan depends on it. What differs between these resources is their
// storedKind.
type stored struct {
	kind     storedKind
	settings seedSettings
}

// storedKind is what a resource adds to stored.
type storedKind struct {
	typeName string // without the provider's
	noun     string // in messages: seed
	file     string // in messages: image
	schema   func() schema.Schema
	model    func() storedModel // an empty one
	// load reads a file of any origin into a model, but for its name. It is
	// called with the absolute path of a regular file.
	load       func(path string) (storedModel, error)
	importHelp string
}

// storedModel is an object in configuration, plan and state.
type storedModel interface {
	// common returns the attributes that all have.
	common() *storedFile
	// inputs returns what the file is made of.
	inputs() []storedInput
	// content returns what the file is made of as a whole. All inputs are known.
	content() seed.Content
}

// storedFile are the attributes that all stored resources have.
type storedFile struct {
	ID      types.String `tfsdk:"id"`
	Name    types.String `tfsdk:"name"`
	Path    types.String `tfsdk:"path"`
	Size    types.Int64  `tfsdk:"size"`
	Digest  types.String `tfsdk:"digest"`
	Protect types.Bool   `tfsdk:"protect"`
}

func (f *storedFile) common() *storedFile { return f }

// storedInput is an attribute of which a file is made.
type storedInput struct {
	attribute string
	value     types.String
	check     func(string) []seed.Finding
	required  bool
}

// seedSettings is what stored resources need to know of the provider's
// configuration.
type seedSettings interface {
	// SeedStore returns the configured directory, "" if none is.
	SeedStore() string
	// ProtectSeeds returns what protects an object that says nothing itself, and
	// where that comes from.
	ProtectSeeds() (protect bool, origin string)
	// Host returns the connection, nil while it is not known.
	Host() *virt.Host
	// pools returns the seeds that lie in pools of the host.
	pools() *seedPools
	// files returns what the objects of this run know of each other's files.
	files() *seedFiles
}

var (
	_ seedSettings                     = (*Data)(nil)
	_ resource.ResourceWithConfigure   = (*stored)(nil)
	_ resource.ResourceWithModifyPlan  = (*stored)(nil)
	_ resource.ResourceWithImportState = (*stored)(nil)
)

// supersededKey holds, in private state, the paths of the files that this object
// had before. The last one stays until the next change: a guest may still have
// it in its drive, and must find it when it is started again before the change
// has reached it.
const supersededKey = "driftsafe.superseded"

func (r *stored) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.kind.typeName
}

func (r *stored) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = r.kind.schema()
}

func (r *stored) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
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
func (r *stored) store() (seed.Store, error) {
	return seed.OpenStore(r.settings.SeedStore(), os.Getenv)
}

// getter is a configuration, a plan or a state of the framework.
type getter interface {
	Get(ctx context.Context, target any) diag.Diagnostics
}

// get reads a model.
func (r *stored) get(ctx context.Context, from getter, diags *diag.Diagnostics) storedModel {
	m := r.kind.model()
	diags.Append(from.Get(ctx, m)...)
	return m
}

// sameFile tells whether two models are the same file: name and content.
func sameFile(a, b storedModel) bool {
	if !a.common().Name.Equal(b.common().Name) {
		return false
	}
	return slices.EqualFunc(a.inputs(), b.inputs(), func(x, y storedInput) bool { return x.value.Equal(y.value) })
}

// complete tells whether the model has all that a file is made of.
func complete(m storedModel) bool {
	return !m.common().Name.IsNull() && !slices.ContainsFunc(m.inputs(), func(in storedInput) bool { return in.required && in.value.IsNull() })
}

// put makes sure that the file is in the store, and sets what depends on it. own
// says that this object has just come to the file: then no other object of this
// run may remove it.
func (r *stored) put(m storedModel, own bool) error {
	store, err := r.store()
	if err != nil {
		return err
	}
	content, f := m.content(), m.common()
	if own {
		r.settings.files().keep(store.Path(f.Name.ValueString(), content))
	}
	placed, err := store.Put(f.Name.ValueString(), content)
	if err != nil {
		return err
	}
	f.Path = types.StringValue(placed.Path)
	f.Size = types.Int64Value(placed.Size)
	f.Digest = types.StringValue(content.Digest().Tagged())
	return nil
}

func (r *stored) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	plan := r.get(ctx, req.Plan, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, guardKey, nil)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.put(plan, true); err != nil {
		r.addFailure(&resp.Diagnostics, "create", plan, err)
		return
	}
	plan.common().ID = plan.common().identifier(nil)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Read puts the file into the store of this run, which is the one write that a
// plan makes. If that fails, the state stays as it is: it describes the object
// completely without the file.
func (r *stored) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	state := r.get(ctx, req.State, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	f := state.common()
	if !complete(state) {
		resp.Diagnostics.AddWarning(fmt.Sprintf("The state of %s %q is not complete", r.kind.noun, f.Name.ValueString()),
			fmt.Sprintf("It lacks %s, so its %s can neither be made nor compared. Apply the configuration, which has them.", orList(state), r.kind.file))
		return
	}
	if r.putBack(state, &resp.Diagnostics) {
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	}
}

// putBack puts the file into the store of this run, and says what it means if that
// fails.
func (r *stored) putBack(state storedModel, diags *diag.Diagnostics) (done bool) {
	f := state.common()
	if err := r.put(state, false); err != nil {
		diags.AddWarning(fmt.Sprintf("The %s of %s %q is not in the store", r.kind.file, r.kind.noun, f.Name.ValueString()),
			sentence(err.Error())+fmt.Sprintf("\n\nThe %s itself is complete in the state, and is planned as usual. What reads the file in this run will fail.", r.kind.noun))
		return false
	}
	if f.ID.IsNull() {
		f.ID = f.identifier(nil)
	}
	return true
}

func (r *stored) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	plan, state := r.get(ctx, req.Plan, &resp.Diagnostics), r.get(ctx, req.State, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, guardKey, nil)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if sameFile(plan, state) { // only protect differs, which is in the state alone
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
		return
	}
	if err := r.put(plan, true); err != nil {
		r.addFailure(&resp.Diagnostics, "update", plan, err)
		return
	}
	f := plan.common()
	f.ID = f.identifier(state.common())
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)

	resp.Diagnostics.Append(r.supersede(ctx, req.Private, resp.Private, plan, state.common().Path.ValueString())...)
}

// supersede removes the files that the object had before its last one, and records
// that one: was, "" if it is none of the store. Where the file is the same still,
// the one before stays, as a guest may have that.
func (r *stored) supersede(ctx context.Context, from, to privateKeys, now storedModel, was string) diag.Diagnostics {
	f := now.common()
	if was == f.Path.ValueString() {
		return nil
	}
	old, diags := superseded(ctx, from)
	if was == "" { // nothing of the store is superseded; what lies there now is no old one any more
		old = slices.DeleteFunc(old, func(path string) bool { return path == f.Path.ValueString() })
		diags.Append(setSuperseded(ctx, to, old...)...)
		return diags
	}
	for _, path := range old {
		if path == f.Path.ValueString() { // an earlier content is back
			continue
		}
		if err := r.settings.files().remove(path); err != nil {
			diags.AddWarning(fmt.Sprintf("An old %s of %s %q was not removed", r.kind.file, r.kind.noun, f.Name.ValueString()),
				sentence(err.Error())+" Nothing uses it any more: remove it by hand.")
		}
	}
	diags.Append(setSuperseded(ctx, to, was)...)
	return diags
}

func (r *stored) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	state := r.get(ctx, req.State, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	f := state.common()
	if g := r.guardOf(f); g.Protect {
		// Plans refuse all but the replacement of a tainted object, about which
		// the core asks nobody.
		g.Late = true
		refuseStored(&resp.Diagnostics, "destroy", g)
		return
	}
	paths, diags := superseded(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	paths = append(paths, f.Path.ValueString())
	// A state that was not refreshed may name the store of another run.
	if store, err := r.store(); err == nil && complete(state) {
		paths = append(paths, store.Path(f.Name.ValueString(), state.content()))
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if err := r.settings.files().remove(path); err != nil {
			r.addFailure(&resp.Diagnostics, "remove", state, err)
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

func setSuperseded(ctx context.Context, private privateKeys, paths ...string) diag.Diagnostics {
	if len(paths) == 0 {
		return private.SetKey(ctx, supersededKey, nil)
	}
	raw, err := json.Marshal(paths)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Old seed images cannot be recorded", err.Error())}
	}
	return private.SetKey(ctx, supersededKey, raw)
}

func (r *stored) addFailure(diags *diag.Diagnostics, doing string, m storedModel, err error) {
	diags.AddError(fmt.Sprintf("Could not %s %s %q", doing, r.kind.noun, m.common().Name.ValueString()), sentence(err.Error()))
}

// orList names what a file cannot be made without: "the name, user_data or
// meta_data".
func orList(m storedModel) string {
	text := "the name"
	var required []string
	for _, in := range m.inputs() {
		if in.required {
			required = append(required, in.attribute)
		}
	}
	for i, name := range required {
		if i == len(required)-1 {
			text += " or " + name
		} else {
			text += ", " + name
		}
	}
	return text
}

package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
)

// A seed that lies in a pool. Its state names the volume and says what that really
// holds. Other content is another volume: the one before stays as long as somebody
// needs it, and is deleted by the domain that had it in its drive, or here.

// volumes are those of the host, nil while that is not known: then it says so.
func (r *cloudinitDisk) volumes(diags *diag.Diagnostics, doing string, m *cloudinitDiskModel) *storage.Volume {
	if r.settings.Host() == nil {
		diags.AddError(fmt.Sprintf("Could not %s seed %q: the host is not known yet", doing, m.Name.ValueString()),
			"The uri in the provider's configuration depends on a value that is known only after apply. Apply what it depends on first (-target), or write the URI literally.")
		return nil
	}
	return r.settings.pools().of(r.settings)
}

// addPoolFailure is addSeedFailure for what the host had a part in.
func (r *cloudinitDisk) addPoolFailure(diags *diag.Diagnostics, doing string, m *cloudinitDiskModel, err error) {
	var problem *kind.ProblemError
	if !errors.As(err, &problem) {
		diags.AddError(fmt.Sprintf("Could not %s seed %q", doing, m.Name.ValueString()), sentence(err.Error())+"\n\nAsked: "+r.settings.Host().Display())
		return
	}
	for _, p := range problem.Problems {
		diags.AddError(fmt.Sprintf("Could not %s seed %q", doing, m.Name.ValueString()), p.Summary+". "+p.Detail)
	}
}

// image is the content that the seed is to have. The user data that are not kept
// come from the configuration of this very call.
func (r *cloudinitDisk) image(ctx context.Context, m *cloudinitDiskModel, config tfsdk.Config, diags *diag.Diagnostics) (image storage.SeedImage, ok bool) {
	content := m.content()
	if m.writeOnly() {
		var secret types.String
		diags.Append(config.GetAttribute(ctx, path.Root("user_data_wo"), &secret)...)
		if secret.IsNull() {
			diags.AddAttributeError(path.Root("user_data_wo"), fmt.Sprintf("No user_data_wo for seed %q", m.Name.ValueString()), "It is null in this run, and is kept nowhere. Nothing was changed.")
			return image, false
		}
		for _, f := range seed.CheckUserData(secret.ValueString()) {
			if !f.Warning {
				diags.AddAttributeError(path.Root("user_data_wo"), fmt.Sprintf("Invalid user_data_wo of seed %q", m.Name.ValueString()), f.String()+" Nothing was changed.")
				return image, false
			}
		}
		content = seed.CloudInit(secret.ValueString(), m.MetaData.ValueString(), m.NetworkConfig.ValueStringPointer())
	}
	image.Digest = content.Digest()
	if planned := m.Digest; !planned.IsNull() && !planned.IsUnknown() && planned.ValueString() != image.Digest.Tagged() {
		diags.AddAttributeError(path.Root("user_data_wo"), fmt.Sprintf("user_data_wo of seed %q is another one, and its version is the same", m.Name.ValueString()),
			fmt.Sprintf("The volume has to be written again, with what version %d was applied with; user_data_wo makes another image now. Nothing was changed. Raise user_data_wo_version, by which the seed gets the new content.", m.UserDataWOVersion.ValueInt64()))
		return image, false
	}
	var err error
	if image.Bytes, err = content.Bytes(); err != nil {
		r.addFailure(diags, "make the image of", m, err)
		return image, false
	}
	return image, !diags.HasError()
}

// placed sets what follows from where the image lies now.
func (m *cloudinitDiskModel) placed(at storage.SeedVolume, image storage.SeedImage, sight storage.SeedSight) error {
	if !m.Path.IsUnknown() && m.Path.ValueString() != sight.Path {
		return fmt.Errorf("the plan promised the path %s, and the volume is %s: the pool was moved in the meantime. The volume is there; plan again", m.Path.ValueString(), sight.Path)
	}
	m.Path, m.Size = types.StringValue(sight.Path), types.Int64Value(int64(len(image.Bytes)))
	m.Digest, m.VolumeName = types.StringValue(image.Digest.Tagged()), types.StringValue(at.Name)
	m.ContentDigest = types.StringValue(sight.Digest)
	return nil
}

func (r *cloudinitDisk) createInPool(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse, plan *cloudinitDiskModel) {
	volumes := r.volumes(&resp.Diagnostics, "create", plan)
	if volumes == nil {
		return
	}
	image, ok := r.image(ctx, plan, req.Config, &resp.Diagnostics)
	if !ok {
		return
	}
	at := plan.volumeOf(image.Digest)
	volumes.KeepSeed(at)
	sight, err := volumes.PutSeed(ctx, at, image)
	if err == nil {
		err = plan.placed(at, image, sight)
	}
	if err != nil {
		r.addPoolFailure(&resp.Diagnostics, "create", plan, err)
		return
	}
	volumes.KeepSeed(plan.volume())
	plan.ID = plan.identifier(nil)
	plan.setBefore(nil)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	resp.Diagnostics.Append(r.record(ctx, seedRecord{Seen: sight.Record}).store(ctx, resp.Private)...)
}

// record completes a record with the host that was asked.
func (r *cloudinitDisk) record(ctx context.Context, rec seedRecord) seedRecord {
	rec.Host, rec.HostName = "", ""
	if id, err := r.settings.Host().Identity(ctx); err == nil {
		rec.Host = id
	}
	if v, err := r.settings.Host().Versions(ctx); err == nil {
		rec.HostName = v.HostName
	}
	return rec
}

// elsewhere refuses to conclude anything from the answer of another host than the
// one that has the seed. found says that this one has its volume: a host without
// a UUID of its own gets a new one from libvirt now and then.
func (r *cloudinitDisk) elsewhere(ctx context.Context, rec seedRecord, found bool) error {
	now := r.record(ctx, seedRecord{})
	if rec.Host == "" || now.Host == "" || now.Host == rec.Host || found && now.HostName == rec.HostName {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: "It is on another host",
		Detail: fmt.Sprintf("It was last seen on the libvirt %s; the provider is connected to %s (%s). Nothing was concluded, and the state was kept. Set the provider's uri to the host that has it. If the machines were moved on purpose: `state rm ADDRESS`, and the next apply makes the seed there.",
			rec.Host, now.Host, r.settings.Host().Display()),
	})
}

// lookHere looks at the volume of a seed, and refuses to conclude anything if this
// is not the host that has it. A seed that is in no pool any more has a host by what
// it had before; its sight is empty.
func (r *cloudinitDisk) lookHere(ctx context.Context, volumes *storage.Volume, rec seedRecord, state *cloudinitDiskModel) (sight storage.SeedSight, err error) {
	at := state.volume()
	if at.Name != "" {
		if sight, err = volumes.LookSeed(ctx, at, rec.Seen); err != nil {
			return sight, err
		}
		return sight, r.elsewhere(ctx, rec, sight.Found)
	}
	found := false
	for _, before := range rec.placed(state.before()) {
		one, err := volumes.LookSeed(ctx, before, nil)
		found = found || err == nil && one.Found
	}
	return sight, r.elsewhere(ctx, rec, found)
}

// readInPool takes the host's word for what the volume holds, and for which of the
// volumes before are still there.
func (r *cloudinitDisk) readInPool(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse, state *cloudinitDiskModel) {
	volumes := r.volumes(&resp.Diagnostics, "read", state)
	if volumes == nil {
		return
	}
	rec, diags := loadSeedRecord(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	sight, err := r.lookHere(ctx, volumes, rec, state)
	if err != nil {
		r.addPoolFailure(&resp.Diagnostics, "read", state, err)
		return
	}
	if state.volume().Name != "" {
		rec.Seen = sight.Record
		state.ContentDigest = types.StringNull()
		if sight.Digest != "" {
			state.ContentDigest = types.StringValue(sight.Digest)
		}
		if sight.Found {
			state.Path = types.StringValue(sight.Path)
			if rec.SharedPool, err = volumes.SharedPool(ctx, state.Pool.ValueString()); err != nil {
				r.addPoolFailure(&resp.Diagnostics, "read", state, err)
				return
			}
		}
		warnOfContent(&resp.Diagnostics, state, sight)
	}
	if !state.pooled() && complete(state) {
		r.putBack(state, &resp.Diagnostics)
	}
	r.readBefore(ctx, volumes, state, &rec, &resp.Diagnostics)
	rec = r.record(ctx, rec)
	resp.Diagnostics.Append(rec.store(ctx, resp.Private)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// warnOfContent says that the volume is gone, or that somebody wrote to it.
func warnOfContent(diags *diag.Diagnostics, state *cloudinitDiskModel, sight storage.SeedSight) {
	name, at := state.Name.ValueString(), state.volume()
	for _, p := range sight.Warnings {
		diags.AddWarning(p.Summary, p.Detail)
	}
	switch {
	case !sight.Found:
		diags.AddWarning(fmt.Sprintf("The volume of seed %q is gone from the host", name),
			fmt.Sprintf("Pool %q has no volume %s any more. The next apply makes it again, with the same content and under the same name.", at.Pool, at.Name))
	case sight.Digest == "":
		diags.AddWarning(fmt.Sprintf("The volume of seed %q was changed on the host", name),
			fmt.Sprintf("%s of pool %q holds no seed any more. The next apply writes it again.", at.Name, at.Pool))
	case sight.Digest != state.Digest.ValueString():
		diags.AddWarning(fmt.Sprintf("The volume of seed %q was changed on the host", name),
			fmt.Sprintf("%s of pool %q holds %s; the last apply left %s there. The next apply writes that again: out of the drives of the machines that have it, and in again.", at.Name, at.Pool, sight.Digest, state.Digest.ValueString()))
	}
}

// updateInPool puts the image where the plan wants it, and then deletes what the
// seed had before and nobody needs.
func (r *cloudinitDisk) updateInPool(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse, plan, state *cloudinitDiskModel) {
	same := plan.staysAs(state)
	if same && plan.ContentDigest.Equal(state.ContentDigest) && plan.Superseded.Equal(state.Superseded) { // only protect differs
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
		return
	}
	volumes := r.volumes(&resp.Diagnostics, "update", plan)
	if volumes == nil {
		return
	}
	rec, diags := loadSeedRecord(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	if _, err := r.lookHere(ctx, volumes, rec, state); err != nil {
		r.addPoolFailure(&resp.Diagnostics, "update", plan, err)
		return
	}
	if !same || !plan.ContentDigest.Equal(state.ContentDigest) {
		if rec.Seen = r.placeInPool(ctx, req, resp, volumes, plan); resp.Diagnostics.HasError() {
			return
		}
	}
	plan.ID = plan.identifier(state.common())
	r.clear(ctx, volumes, &rec, plan, state, &resp.Diagnostics)
	resp.Diagnostics.Append(r.record(ctx, rec).store(ctx, resp.Private)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	switch {
	case plan.pooled():
		r.removeFiles(ctx, req, resp, state)
	case state.pooled():
		resp.Diagnostics.Append(r.supersede(ctx, req.Private, resp.Private, plan, "")...)
	default:
		resp.Diagnostics.Append(r.supersede(ctx, req.Private, resp.Private, plan, state.Path.ValueString())...)
	}
}

// placeInPool puts the image where the plan wants it.
func (r *cloudinitDisk) placeInPool(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse, volumes *storage.Volume, plan *cloudinitDiskModel) (seen []byte) {
	if !plan.pooled() {
		if err := r.put(plan, true); err != nil {
			r.addFailure(&resp.Diagnostics, "update", plan, err)
		}
		return nil
	}
	image, ok := r.image(ctx, plan, req.Config, &resp.Diagnostics)
	if !ok {
		return nil
	}
	at := plan.volumeOf(image.Digest)
	at.Path = plan.Path.ValueString()
	volumes.KeepSeed(at)
	sight, err := volumes.LookSeed(ctx, at, nil)
	switch {
	case err != nil:
	case !sight.Found:
		at.Path = ""
		sight, err = volumes.PutSeed(ctx, at, image)
	case !plan.ownsVolume(ctx, req, at):
		at.Path = ""
		sight, err = volumes.PutSeed(ctx, at, image) // which refuses what holds something else
	default:
		sight, err = volumes.RenewSeed(ctx, at, image)
	}
	if err == nil {
		err = plan.placed(at, image, sight)
	}
	if err != nil {
		r.addPoolFailure(&resp.Diagnostics, "update", plan, err)
		return nil
	}
	volumes.KeepSeed(plan.volume())
	return sight.Record
}

// ownsVolume says whether the state has the volume, as the current one or as one
// before: then a content that somebody else wrote there is overwritten.
func (m *cloudinitDiskModel) ownsVolume(ctx context.Context, req resource.UpdateRequest, at storage.SeedVolume) bool {
	var state cloudinitDiskModel
	if req.State.Get(ctx, &state).HasError() {
		return false
	}
	for _, own := range append(state.before(), state.volume()) {
		if own.Pool == at.Pool && own.Name == at.Name {
			return true
		}
	}
	return false
}

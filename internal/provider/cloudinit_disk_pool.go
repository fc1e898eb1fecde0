package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// readInPool takes the host's word for what the volume holds, and for which of the
// volumes before are still there.
func (r *cloudinitDisk) readInPool(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse, state *cloudinitDiskModel) {
	volumes := r.volumes(&resp.Diagnostics, "read", state)
	if volumes == nil {
		return
	}
	rec, diags := loadSeedRecord(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	if at := state.volume(); at.Name != "" {
		sight, err := volumes.LookSeed(ctx, at, rec.Seen)
		if err == nil {
			err = r.elsewhere(ctx, rec, sight.Found)
		}
		if err != nil {
			r.addPoolFailure(&resp.Diagnostics, "read", state, err)
			return
		}
		rec.Seen = sight.Record
		state.ContentDigest = types.StringNull()
		if sight.Digest != "" {
			state.ContentDigest = types.StringValue(sight.Digest)
		}
		if sight.Found {
			state.Path = types.StringValue(sight.Path)
		}
		warnOfContent(&resp.Diagnostics, state, sight)
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

// readBefore finds out which of the volumes before are still there, and which of
// those nobody needs. What cannot be asked now stays as it is.
func (r *cloudinitDisk) readBefore(ctx context.Context, volumes *storage.Volume, state *cloudinitDiskModel, rec *seedRecord, diags *diag.Diagnostics) {
	var left []storage.SeedVolume
	rec.Unneeded = nil
	for _, at := range state.before() {
		there, needs, err := volumes.SeedNeeds(ctx, at)
		switch {
		case err != nil:
			left = append(left, at)
			warnOfBefore(diags, state, at, sentence(err.Error()))
		case !there:
		default:
			left = append(left, at)
			if len(needs) == 0 {
				rec.Unneeded = append(rec.Unneeded, at.String())
				continue
			}
			warnOfBefore(diags, state, at, fmt.Sprintf("It is needed by %s. An apply that gives these the new one, or takes it out of their drives, deletes it.", strings.Join(needs, "; ")))
		}
	}
	if !slices.Equal(left, state.before()) || state.Superseded.IsNull() {
		state.setBefore(left)
	}
}

func warnOfBefore(diags *diag.Diagnostics, m *cloudinitDiskModel, at storage.SeedVolume, why string) {
	diags.AddWarning(fmt.Sprintf("An old volume of seed %q is still on the host: %s", m.Name.ValueString(), at), why)
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
	if at := state.volume(); at.Name != "" {
		sight, err := volumes.LookSeed(ctx, at, rec.Seen)
		if err == nil {
			err = r.elsewhere(ctx, rec, sight.Found)
		}
		if err != nil {
			r.addPoolFailure(&resp.Diagnostics, "update", plan, err)
			return
		}
	}
	if !same || !plan.ContentDigest.Equal(state.ContentDigest) {
		if rec.Seen = r.placeInPool(ctx, req, resp, volumes, plan); resp.Diagnostics.HasError() {
			return
		}
	}
	plan.ID = plan.identifier(state.common())
	r.clear(ctx, volumes, plan, state, &resp.Diagnostics)
	rec.Unneeded = nil
	resp.Diagnostics.Append(r.record(ctx, rec).store(ctx, resp.Private)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	if plan.pooled() {
		r.removeFiles(ctx, req, resp, state)
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

// clear deletes what the seed had before and nobody needs. The rest stays in the
// state, and a domain of this run that takes it out of its drive may delete it.
func (r *cloudinitDisk) clear(ctx context.Context, volumes *storage.Volume, plan, state *cloudinitDiskModel, diags *diag.Diagnostics) {
	now := plan.volume()
	old := state.before()
	if was := state.volume(); was.Name != "" && was.String() != now.String() {
		old = append(old, was)
	}
	var left []storage.SeedVolume
	for _, at := range old {
		if at.String() == now.String() { // an earlier content is back
			continue
		}
		needs, err := volumes.RemoveSeed(ctx, at, now)
		if err != nil {
			warnOfBefore(diags, plan, at, sentence(err.Error())+" The next plan tries it again.")
		}
		if len(needs) > 0 {
			volumes.SupersedeSeed(at)
		}
		if err != nil || len(needs) > 0 {
			left = append(left, at)
		}
	}
	if plan.Superseded.IsUnknown() {
		plan.setBefore(left)
	}
}

// removeFiles removes the images that the seed had in the store before its last
// one, as it lies in a pool now. The last one stays until the next update in the
// pool, or the end of the seed: a machine whose own change fails comes back to it.
func (r *cloudinitDisk) removeFiles(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse, state *cloudinitDiskModel) {
	paths, diags := superseded(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	last := ""
	if !state.pooled() {
		last = state.Path.ValueString()
	}
	for _, file := range paths {
		if file == last {
			continue
		}
		if err := r.settings.files().remove(file); err != nil {
			resp.Diagnostics.AddWarning(fmt.Sprintf("An old image of seed %q was not removed", state.Name.ValueString()),
				sentence(err.Error())+" Nothing uses it any more: remove it by hand.")
		}
	}
	if last == "" {
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, supersededKey, nil)...)
		return
	}
	resp.Diagnostics.Append(setSuperseded(ctx, resp.Private, last)...)
}

// deleteFromPools deletes the volumes of the seed. One that somebody needs stops
// it, before anything is deleted; what the seed had before is left to whoever has
// it. The current one goes last, so that whatever fails leaves the state as it was.
func (r *cloudinitDisk) deleteFromPools(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse, state *cloudinitDiskModel) {
	volumes := r.volumes(&resp.Diagnostics, "destroy", state)
	if volumes == nil {
		return
	}
	rec, diags := loadSeedRecord(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	now := state.volume()
	err := r.refuseNeeded(ctx, volumes, rec, now)
	for _, at := range state.before() {
		if err != nil {
			break
		}
		var needs []string
		if needs, err = volumes.RemoveSeed(ctx, at, now); len(needs) > 0 {
			warnOfBefore(&resp.Diagnostics, state, at, fmt.Sprintf("It is needed by %s, so it was left there. The seed is destroyed, and nothing deletes this volume any more: virsh vol-delete %s %s.", strings.Join(needs, "; "), at.Name, at.Pool))
		}
	}
	if err == nil && now.Name != "" {
		var needs []string
		if needs, err = volumes.RemoveSeed(ctx, now, storage.SeedVolume{}); len(needs) > 0 {
			err = needed(now, needs)
		}
	}
	if err != nil {
		r.addPoolFailure(&resp.Diagnostics, "destroy", state, err)
	}
}

// refuseNeeded refuses to destroy a seed whose volume somebody needs, or that lies
// on another host.
func (r *cloudinitDisk) refuseNeeded(ctx context.Context, volumes *storage.Volume, rec seedRecord, at storage.SeedVolume) error {
	if at.Name == "" {
		return nil
	}
	sight, err := volumes.LookSeed(ctx, at, rec.Seen)
	if err == nil {
		err = r.elsewhere(ctx, rec, sight.Found)
	}
	if err != nil || !sight.Found || volumes.KeepsSeed(at) {
		return err
	}
	if _, needs, err := volumes.SeedNeeds(ctx, at); err != nil || len(needs) > 0 {
		return errors.Join(err, needed(at, needs))
	}
	return nil
}

// needed says that a volume is not deleted because somebody needs it, nil if nobody
// does.
func needed(at storage.SeedVolume, needs []string) error {
	if len(needs) == 0 {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Volume %s is in use", at),
		Detail:  fmt.Sprintf("It is needed by %s. libvirt itself would delete it all the same. Nothing was changed. Take it out of these first, or destroy them.", strings.Join(needs, "; ")),
	})
}

// deleteFiles removes what a seed that lies in a pool has in the store still.
func (r *cloudinitDisk) deleteFiles(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse, state *cloudinitDiskModel) {
	paths, diags := superseded(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	for _, file := range paths {
		if err := r.settings.files().remove(file); err != nil {
			r.addFailure(&resp.Diagnostics, "remove", state, err)
		}
	}
}

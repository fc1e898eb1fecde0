package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	fwpath "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
)

// planInPool plans a seed that lies in a pool, or did. Everything that decides is
// in the state and in the records of the last look; the host is not asked.
func (r *cloudinitDisk) planInPool(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, plan, prior *cloudinitDiskModel) diag.Diagnostics {
	var secret types.String
	diags := req.Config.GetAttribute(ctx, fwpath.Root("user_data_wo"), &secret)
	rec, d := loadSeedRecord(ctx, req.Private)
	diags.Append(d...)
	if plan.staysAs(prior) {
		plan.ID, plan.Path, plan.Size, plan.Digest, plan.VolumeName = prior.ID, prior.Path, prior.Size, prior.Digest, prior.VolumeName
		plan.ContentDigest, plan.Superseded = prior.ContentDigest, prior.Superseded
		if plan.pooled() {
			plan.ContentDigest = prior.Digest // what somebody made of it is put back
		}
		if len(rec.Unneeded) > 0 {
			plan.Superseded = types.ListUnknown(types.StringType)
		}
	} else {
		diags.Append(r.checkInputs(plan, prior)...)
		if plan.writeOnly() {
			diags.Append(checkSecret(plan, secret)...)
		}
		if diags.HasError() {
			return diags
		}
		diags.Append(r.computeInPool(plan, prior)...)
	}
	if !diags.HasError() {
		rec.warnOfEnd(&diags, plan)
		diags.Append(resp.Plan.Set(ctx, plan)...)
	}
	return diags
}

// staysAs says whether the seed stays what it is and where it is. A state of
// another provider's older versions has a pool, and no volume that this one made.
func (m *cloudinitDiskModel) staysAs(prior *cloudinitDiskModel) bool {
	return prior != nil && m.sameSeed(prior) && (!m.pooled() || prior.VolumeName.ValueString() != "")
}

// asStored is a model that may not be there, which no interface may hide.
func asStored(m *cloudinitDiskModel) storedModel {
	if m == nil {
		return nil
	}
	return m
}

func commonOf(m *cloudinitDiskModel) *storedFile {
	if m == nil {
		return nil
	}
	return m.common()
}

func (r *cloudinitDisk) checkInputs(plan, prior *cloudinitDiskModel) diag.Diagnostics {
	return r.check(plan, asStored(prior))
}

// computeInPool sets what follows from name, pool and content, unknown where they
// are. Content that is not kept may be another one when it is applied.
func (r *cloudinitDisk) computeInPool(plan, prior *cloudinitDiskModel) diag.Diagnostics {
	var diags diag.Diagnostics
	plan.withoutPool()
	if prior != nil || plan.Pool.IsUnknown() { // null, if the pool turns out to be
		plan.Superseded = types.ListUnknown(types.StringType)
	}
	if !plan.mayBePooled() {
		return r.compute(plan, asStored(prior))
	}
	plan.ID = plan.identifier(commonOf(prior))
	plan.Path, plan.Size, plan.Digest = types.StringUnknown(), types.Int64Unknown(), types.StringUnknown()
	plan.VolumeName, plan.ContentDigest = types.StringUnknown(), types.StringUnknown()
	if plan.writeOnly() || plan.UserData.IsUnknown() || plan.MetaData.IsUnknown() || plan.NetworkConfig.IsUnknown() {
		return diags
	}
	content := plan.content()
	image, err := content.Bytes()
	if err != nil {
		r.addFailure(&diags, "make the image of", plan, err)
		return diags
	}
	digest := content.Digest()
	plan.Size, plan.Digest = types.Int64Value(int64(len(image))), types.StringValue(digest.Tagged())
	if plan.Pool.IsUnknown() {
		return diags
	}
	plan.ContentDigest = plan.Digest
	if plan.Name.IsUnknown() {
		return diags
	}
	plan.VolumeName = types.StringValue(seed.VolumeName(plan.Name.ValueString(), digest))
	// A volume of the same pool lies beside the one before.
	if prior != nil && prior.Pool.Equal(plan.Pool) && path.Base(prior.Path.ValueString()) == prior.VolumeName.ValueString() && prior.VolumeName.ValueString() != "" {
		plan.Path = types.StringValue(path.Join(path.Dir(prior.Path.ValueString()), plan.VolumeName.ValueString()))
	}
	return diags
}

// withoutPool is what a seed has that is in no pool.
func (m *cloudinitDiskModel) withoutPool() {
	m.VolumeName, m.ContentDigest = types.StringNull(), types.StringNull()
	m.setBefore(nil)
}

// checkSecret checks user data that is not kept. It is new whenever its version
// is.
func checkSecret(plan *cloudinitDiskModel, secret types.String) (diags diag.Diagnostics) {
	if secret.IsUnknown() || secret.IsNull() {
		return nil
	}
	for _, f := range seed.CheckUserData(secret.ValueString()) {
		if f.Warning {
			diags.AddAttributeWarning(fwpath.Root("user_data_wo"), fmt.Sprintf("Doubtful user_data_wo of seed %q", plan.Name.ValueString()), f.String())
		} else {
			diags.AddAttributeError(fwpath.Root("user_data_wo"), fmt.Sprintf("Invalid user_data_wo of seed %q", plan.Name.ValueString()), f.String())
		}
	}
	return diags
}

// seedRecord is what the last look at a seed in a pool has left in private state.
type seedRecord struct {
	Host     string            `json:"host"`      // the libvirt that has it
	HostName string            `json:"host_name"` // what its host calls itself
	Seen     json.RawMessage   `json:"seen,omitempty"`
	Paths    map[string]string `json:"paths,omitempty"`    // of superseded, on the host
	Unneeded []string          `json:"unneeded,omitempty"` // of superseded: nobody needs them any more
	Shared   map[string]string `json:"shared,omitempty"`   // of unneeded: types of pools that other hosts use, too
	// SharedPool is the type of the seed's pool, if other hosts use such pools, too.
	SharedPool string `json:"shared_pool,omitempty"`
}

// placed adds to volumes before where they lie, as far as that is known.
func (rec seedRecord) placed(all []storage.SeedVolume) []storage.SeedVolume {
	for i, at := range all {
		all[i].Path = rec.Paths[at.String()]
	}
	return all
}

// left records where the volumes before lie that are still there.
func (rec *seedRecord) left(all []storage.SeedVolume) {
	rec.Paths = map[string]string{}
	for _, at := range all {
		if at.Path != "" {
			rec.Paths[at.String()] = at.Path
		}
	}
}

const seedRecordKey = "driftsafe.seed_volume"

func loadSeedRecord(ctx context.Context, private interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}) (rec seedRecord, diags diag.Diagnostics) {
	raw, diags := private.GetKey(ctx, seedRecordKey)
	if len(raw) > 0 && json.Unmarshal(raw, &rec) != nil {
		return seedRecord{}, diags // of another version: all is looked at again
	}
	return rec, diags
}

func (rec seedRecord) store(ctx context.Context, private interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}) diag.Diagnostics {
	raw, err := json.Marshal(rec)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("The record of a seed cannot be stored", err.Error())}
	}
	return private.SetKey(ctx, seedRecordKey, raw)
}

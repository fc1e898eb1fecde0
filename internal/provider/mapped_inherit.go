package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A state that another provider left. That of dmacvicar/libvirt 0.9 has the
// shape of our own and is read as it is. That of its versions 0.6 to 0.8 has
// other attributes under some of the same names, in other units, so nothing of
// it is believed but which object it is: such a state is cut down to a stub, and
// the next read fills it as after an import. Private state is not there to tell
// an Upgrade from a Read, so a stub is known by holding nothing else.

// stub are the attributes that say which object it is.
var stub = map[string]bool{"id": true, "uuid": true, "key": true, "name": true, "pool": true, "path": true}

// Upgrade reads a state that an older version or another provider wrote, or one
// that a moved block brings from another type.
func (m *mapped) Upgrade(ctx context.Context, req protocol.UpgradeRequest) protocol.UpgradeResponse {
	var stored tree.Value
	if err := json.Unmarshal(req.JSON, &stored); err == nil {
		inherited := m.inherit(stored, req.From)
		if !inherited.IsNull() {
			return protocol.UpgradeResponse{State: inherited}
		}
		if req.From != "" {
			var resp protocol.UpgradeResponse
			resp.Diagnostics.AddError(nil, fmt.Sprintf("This %s is no %s of the host", req.From, m.kind.Noun()),
				fmt.Sprintf("Its state has no %s that libvirt knows, so nothing can be taken over: it may be a file of this machine only. Remove the moved block; if the host has such a %s, import it.", m.identity, m.kind.Noun()))
			return resp
		}
	}
	return protocol.LenientUpgrade{}.Upgrade(ctx, req)
}

// inherit returns the stub of a state that has its identity in the attribute id
// alone, as all states of 0.6 to 0.8 have it; null for any other state. from is
// another type that it comes from.
func (m *mapped) inherit(stored tree.Value, from string) tree.Value {
	id := stored.Attr("id").Str()
	if id == "" || stored.Attr(m.identity).Str() != "" {
		return tree.NullValue
	}
	attrs := map[string]tree.Value{}
	keep := func(names ...string) {
		for _, name := range names {
			if v := stored.Attr(name); v.Str() != "" && m.kind.Type().Attrs[name] != nil {
				attrs[name] = v
			}
		}
	}
	switch {
	case m.identity == "key":
		key, isImage := keyOfImage(id)
		if from != "" {
			id = key
		}
		if from != "" && !isImage || !strings.HasPrefix(id, "/") && stored.Attr("pool").Str() == "" {
			return tree.NullValue
		}
		keep("name", "pool")
	case !kind.IsUUID(id):
		return tree.NullValue
	default:
		keep("name")
	}
	attrs[m.identity] = tree.StringValue(id)
	if a := m.kind.Type().Attrs["id"]; a != nil && a.Type.Kind == tree.String {
		attrs["id"] = tree.StringValue(id)
	}
	return tree.ObjectValue(attrs)
}

// keyOfImage returns the key of the volume that an image of a seed was: the
// identifier had ";" and a random UUID behind it. The key may have a ";" itself.
func keyOfImage(id string) (key string, isImage bool) {
	at := strings.LastIndexByte(id, ';')
	if at < 0 || !kind.IsUUID(id[at+1:]) {
		return id, false
	}
	return id[:at], true
}

// inherited adds to a state that another provider wrote what that one does not
// read back, though its configuration has it: a core lets nobody plan "as it is"
// for an attribute that the state does not have.
func (m *mapped) inherited(state tree.Value, rec records) tree.Value {
	if !rec.Baseline.IsNull() || !rec.Actual.IsNull() || m.kind.Type().Attrs["autostart"] == nil || !state.Attr("autostart").IsNull() {
		return state
	}
	return state.With("autostart", tree.UnknownValue)
}

// isStub says whether a state says no more than which object it is, and nothing
// is recorded of it: then the next read fills it.
func isStub(state tree.Value, rec records) bool {
	if !rec.Baseline.IsNull() || !rec.Actual.IsNull() {
		return false
	}
	for _, name := range state.Names() {
		if !stub[name] {
			return false
		}
	}
	return true
}

// refuseStub refuses to compare a configuration with a state that was not filled.
func (m *mapped) refuseStub(d *protocol.Diagnostics, prior tree.Value) {
	d.AddError(nil, fmt.Sprintf("Nothing is known yet of %s %q", m.kind.Noun(), prior.Attr("name").Str()),
		"Its state comes from another version or type, and says only which object it is. The host has to be asked once: plan without -refresh=false. "+
			"If a warning says that the host cannot tell yet, do first what it says.")
}

package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// mapped serves one kind of object as a resource. What is the same for all
// kinds is here and in mapped_plan.go and mapped_apply.go.
type mapped struct {
	typeName    string
	description string
	kind        kind.Kind
	data        *Data

	identity  string   // the attribute that is the resource identity: uuid, key
	movesFrom []string // types whose objects are of this kind, too
}

var _ protocol.Resource = (*mapped)(nil)

// computed are the attributes that the provider fills and no comparison reads.
var computed = []string{"change", "status"}

// plain is a state without what the provider computes.
func plain(state tree.Value) tree.Value {
	if state.IsNull() {
		return state
	}
	for _, name := range computed {
		state = state.With(name, tree.NullValue)
	}
	return state
}

func (m *mapped) Schema() protocol.Schema {
	return protocol.Schema{TypeName: m.typeName, Description: m.description, Type: m.kind.Type(), Identity: m.identity, MovesFrom: m.movesFrom}
}

func (m *mapped) Validate(_ context.Context, config tree.Value) protocol.Diagnostics {
	var d protocol.Diagnostics
	if null := nullElement(config, nil); null != nil {
		d.AddError(null, fmt.Sprintf("%s is null", null), "An element of a list cannot be null. Leave it out; in an expression: [for x in LIST : x if x != null].")
		return d
	}
	addProblems(&d, protocol.Error, m.kind.Validate(config))
	return d
}

// Read takes the host's word for everything that state holds.
func (m *mapped) Read(ctx context.Context, req protocol.ReadRequest) (resp protocol.ReadResponse) {
	name := req.State.Attr("name").Str()
	if m.kind.Identity(req.State) == "" {
		resp.State = req.State
		resp.Diagnostics.AddError(nil, fmt.Sprintf("State of %s %q has no identity", m.kind.Noun(), name),
			"The state holds nothing that finds the object on the host. Remove it with `state rm` and import it again; this touches nothing on the host.")
		return resp
	}
	if m.unconfigured(&resp.Diagnostics, "read", name) {
		resp.State = req.State
		return resp
	}
	req.Private = withoutGuard(req.Private)
	resp.Private = req.Private
	rec := loadRecords(req.Private)
	if m.elsewhere(ctx, &resp.Diagnostics, rec, req.State) {
		resp.State = req.State
		return resp
	}
	facts, err := m.look(ctx, req.State, rec)
	var gone *kind.GoneError
	switch {
	case errors.As(err, &gone):
		resp.State = tree.NullValue
		resp.Diagnostics.AddWarning(nil, fmt.Sprintf("%s %q is gone from the host", capital(m.kind.Noun()), name),
			fmt.Sprintf("libvirt answers: %v. It leaves the state; the plan creates it again if the configuration still has it.", gone.Err))
		return resp
	case err != nil:
		resp.State = req.State
		m.addFailure(&resp.Diagnostics, "read", name, err)
		return resp
	}
	isStub := isStub(plain(req.State), rec)
	if facts.Repeated && (isStub || rec.Imported) {
		// Nothing was ever read: what is not known must not be recorded as agreed.
		resp.State = req.State
		addProblems(&resp.Diagnostics, protocol.Warning, facts.Warnings)
		return resp
	}
	shape := m.kind.Rules().Shape(m.kind.Type(), m.shape(m.inherited(plain(req.State), rec)), rec.Owned)
	if rec.Imported || isStub {
		shape = m.withoutSettings(facts.Definition)
		rec.Imported = false
	}
	state := m.kind.Rules().Project(m.kind.Type(), shape, facts.Definition)
	rec.Actual, rec.Host = change.Without(facts.Definition, m.kind.Secret), m.hostID(ctx)
	rec.HostName, rec.Within = m.hostName(ctx), facts.Within
	rec.Guest = m.guestRecord(facts)
	if rec.Baseline.IsNull() {
		rec.Baseline = rec.Actual
		// Why a guest differs that is seen for the first time, nobody knows: it may
		// wait for its next start, as somebody wants it to.
		waiting, _ := m.waiting(rec, nil)
		rec.Late = late{Run: rec.Actual.Attr("id"), Paths: pathTexts(waiting)}
	}
	resp.State = state.With("status", m.complete(facts.Status, state, rec)).With("change", req.State.Attr("change"))
	if resp.Private, err = rec.store(req.Private); err != nil {
		m.addFailure(&resp.Diagnostics, "store the records of", name, err)
	}
	addProblems(&resp.Diagnostics, protocol.Warning, facts.Warnings)
	return resp
}

// look asks the host, and tells a kind that can make use of it what it said last.
func (m *mapped) look(ctx context.Context, state tree.Value, rec records) (kind.Facts, error) {
	if again, can := m.kind.(kind.Rereader); can {
		return again.Reread(ctx, state, rec.Actual)
	}
	return m.kind.Read(ctx, state)
}

// withoutSettings leaves out of a definition what is no part of the object: how
// it is made, where the host tells something of that.
func (m *mapped) withoutSettings(definition tree.Value) tree.Value {
	for _, name := range definition.Names() {
		if m.kind.Rules().Setting(name) {
			definition = definition.With(name, tree.NullValue)
		}
	}
	return definition
}

// shape is what a state shows: what it holds, and what people refer to even
// where it was not there before.
func (m *mapped) shape(state tree.Value) tree.Value {
	for name := range m.kind.Type().Attrs {
		if state.Attr(name).IsNull() && m.kind.Rules().Chosen(name) {
			state = state.With(name, tree.UnknownValue)
		}
	}
	return state
}

// hostID identifies the daemon that is asked, "" if it does not say.
func (m *mapped) hostID(ctx context.Context) string {
	id, err := m.data.Host().Identity(ctx)
	if err != nil {
		return ""
	}
	return id
}

// hostName is what the host calls itself, "" if it does not say.
func (m *mapped) hostName(ctx context.Context) string {
	v, err := m.data.Host().Versions(ctx)
	if err != nil {
		return ""
	}
	return v.HostName
}

// elsewhere refuses to conclude anything about an object from the answer of
// another host than the one that has it: "no such object" there means nothing.
func (m *mapped) elsewhere(ctx context.Context, d *protocol.Diagnostics, rec records, state tree.Value) bool {
	name := state.Attr("name").Str()
	if rec.Host == "" {
		return false
	}
	id, err := m.data.Host().Identity(ctx)
	if err != nil {
		m.addFailure(d, "read", name, err)
		return true
	}
	if id == rec.Host || m.renumbered(ctx, rec, id, state) {
		return false
	}
	d.AddError(nil, fmt.Sprintf("%s %q is on another host", capital(m.kind.Noun()), name),
		fmt.Sprintf("It was last seen on the libvirt %s; the provider is connected to %s (%s). Nothing was concluded, and the state was kept. Set the provider's uri to the host that has it. If it was moved on purpose: `state rm ADDRESS`, then import it.",
			rec.Host, id, m.data.Host().Display()))
	return true
}

// renumbered says whether it is the host of the records under another UUID:
// where the firmware has none, libvirt draws one whenever its daemon starts.
// The host is then known by its name, and by having the object: by the UUID of
// it, or of what holds it.
func (m *mapped) renumbered(ctx context.Context, rec records, id string, state tree.Value) bool {
	kindOf := func(id string) string { return id[:strings.LastIndexByte(id, ' ')+1] }
	if rec.HostName == "" || rec.HostName != m.hostName(ctx) || kindOf(id) != kindOf(rec.Host) {
		return false
	}
	facts, err := m.kind.Read(ctx, state)
	return err == nil && (kind.IsUUID(m.kind.Identity(state)) || rec.Within != "" && facts.Within == rec.Within)
}

// Import finds the object; the read that follows fills the state.
func (m *mapped) Import(ctx context.Context, req protocol.ImportRequest) (resp protocol.ImportResponse) {
	if m.unconfigured(&resp.Diagnostics, "import", req.ID) {
		return resp
	}
	state, err := m.kind.Find(ctx, req.ID)
	if err != nil {
		m.addFailure(&resp.Diagnostics, "import", req.ID, err)
		return resp
	}
	resp.State = state
	if resp.Private, err = (records{Imported: true}).store(protocol.Private{}); err != nil {
		m.addFailure(&resp.Diagnostics, "import", req.ID, err)
	}
	return resp
}

func capital(noun string) string {
	if noun == "" {
		return noun
	}
	return string(noun[0]-'a'+'A') + noun[1:]
}

// nullElement finds a list element that is null; libvirt would get an empty
// device for it.
func nullElement(v tree.Value, path tree.Path) tree.Path {
	for i, e := range v.Elems() {
		here := path.Elem(i, "")
		if e.IsNull() {
			return here
		}
		if found := nullElement(e, here); found != nil {
			return found
		}
	}
	for _, name := range v.Names() {
		if found := nullElement(v.Attr(name), path.Attr(name)); found != nil {
			return found
		}
	}
	return nil
}

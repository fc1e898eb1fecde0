// Package protocol serves resources and data sources that are functions over
// trees on the plugin protocol, and hides the wire from them.
//
// The XML-mapped types have thousands of paths. The plugin framework rebuilds
// their types for every value it visits, which costs seconds per object and
// plan; here a schema is compiled once and values are read from and written to
// the wire in one pass (docs/design has the figures). Everything else of the
// provider is served by the framework: NewServer puts the mapped types in front
// of any other provider server and hands on all that they do not claim.
//
// A resource sees only this: its configuration, prior state, proposed state and
// plan as tree.Value, its private records as JSON, and diagnostics with paths.
// In return the adapter holds these invariants, whatever the resource does:
//
//   - nothing is lost: an error, a panic or a forgotten value in an update or a
//     delete leaves the prior state in place;
//   - a new state holds no unknown value and fits the schema, otherwise the
//     diagnostics name the path;
//   - what another provider left in a state or in private data is tolerated.
package protocol

import (
	"context"
	"encoding/json"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Schema describes a resource or data source type.
type Schema struct {
	TypeName    string     // libvirt_domain
	Version     int64      // of the state's format; 0 is also the incumbent's
	Description string     // Markdown
	Type        *tree.Type // an object; it must not change afterwards
	Identity    string     // attribute, a string, that is the resource identity: it never changes while the object exists; "" for none
	MovesFrom   []string   // other types whose state Upgrade understands, for moved blocks
}

// Resource is a managed resource type. Its methods are called concurrently,
// also for different objects. Schema is called once.
//
// Trees that come in hold only what is not null. Trees that go out may leave
// out whatever is null, and must fit the schema.
type Resource interface {
	Schema() Schema

	// Validate checks a configuration, which may hold unknown values.
	Validate(ctx context.Context, config tree.Value) Diagnostics

	// Read asks the host for the present state of an object.
	Read(ctx context.Context, req ReadRequest) ReadResponse

	// Plan decides what an apply would do. It must be a pure function of the
	// request: the core calls it again at apply and rejects another answer.
	Plan(ctx context.Context, req PlanRequest) PlanResponse

	// Apply creates, updates or deletes an object.
	Apply(ctx context.Context, req ApplyRequest) ApplyResponse

	// Import finds an existing object.
	Import(ctx context.Context, req ImportRequest) ImportResponse

	// Upgrade reads a state that an older version or another provider wrote.
	// Embed LenientUpgrade for the default.
	Upgrade(ctx context.Context, req UpgradeRequest) UpgradeResponse
}

// DataSource is a data source type. Its methods are called concurrently.
type DataSource interface {
	Schema() Schema
	Validate(ctx context.Context, config tree.Value) Diagnostics

	// Read returns the whole object: what is configured, and what was found.
	Read(ctx context.Context, config tree.Value) (tree.Value, Diagnostics)
}

// In every response that has a field Private, nil means "as it came": the
// records of the request are kept. An empty, non-nil Private clears them.

// ReadRequest asks for the state of an object. After an import, State is what
// Import returned.
type ReadRequest struct {
	State   tree.Value
	Private Private
}

// ReadResponse is the answer to a ReadRequest. A null State without an error
// says that the object is gone and takes it out of the state.
type ReadResponse struct {
	State       tree.Value
	Private     Private
	Diagnostics Diagnostics
}

// PlanRequest asks what an apply would do.
type PlanRequest struct {
	Config   tree.Value // null for a destroy; may hold unknown values
	Prior    tree.Value // null for a create
	Proposed tree.Value // configuration over prior, as the core merges them; null for a destroy
	Private  Private
}

// IsCreate says whether the object does not exist yet.
func (r PlanRequest) IsCreate() bool { return r.Prior.IsNull() }

// IsDestroy says whether the object is to be destroyed.
func (r PlanRequest) IsDestroy() bool { return r.Proposed.IsNull() }

// IsUpdate says whether the object exists and is to stay. It is also true
// where nothing changes.
func (r PlanRequest) IsUpdate() bool { return !r.IsCreate() && !r.IsDestroy() }

// PlanResponse is the answer to a PlanRequest.
type PlanResponse struct {
	Planned     tree.Value  // ignored for a destroy, where nothing else than null is possible
	Private     Private     // is the Private of the ApplyRequest, and of the create half of a replacement
	Replace     []tree.Path // what makes a replacement necessary; the core ignores paths that do not change
	Diagnostics Diagnostics
}

// ApplyRequest asks to make a plan true.
type ApplyRequest struct {
	Config  tree.Value // null for a delete
	Prior   tree.Value // null for a create
	Planned tree.Value // null for a delete
	Private Private    // as planned
}

// IsCreate says whether the object does not exist yet.
func (r ApplyRequest) IsCreate() bool { return r.Prior.IsNull() }

// IsDelete says whether the object is to be deleted.
func (r ApplyRequest) IsDelete() bool { return r.Planned.IsNull() }

// IsUpdate says whether the object exists and is to stay.
func (r ApplyRequest) IsUpdate() bool { return !r.IsCreate() && !r.IsDelete() }

// ApplyResponse is the answer to an ApplyRequest.
//
// State is what is true now. With an error, a State that is not null is stored
// as it is, its unknown values as null (a create that failed half way; the core
// taints the object); a null State with an error keeps the prior state. Without
// an error the State of a delete is ignored: the object is gone.
type ApplyResponse struct {
	State       tree.Value
	Private     Private
	Diagnostics Diagnostics
}

// ImportRequest asks for an existing object. ID is never empty.
type ImportRequest struct {
	ID string
}

// ImportResponse is the answer to an ImportRequest. State may be a stub: the
// core calls Read with it at once.
type ImportResponse struct {
	State       tree.Value
	Private     Private
	Diagnostics Diagnostics
}

// UpgradeRequest holds a state as it was stored, before each use of it.
type UpgradeRequest struct {
	Schema  Schema          // of the resource
	From    string          // another type that the state is moved from, "" for the resource's own
	Version int64           // of the schema that wrote it
	JSON    json.RawMessage // an object; the core has removed attributes that Schema lacks if Version is the same
}

// UpgradeResponse is the answer to an UpgradeRequest.
type UpgradeResponse struct {
	State       tree.Value
	Diagnostics Diagnostics
}

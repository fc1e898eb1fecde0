// Package kind is the contract between the provider and the packages that
// know one kind of libvirt object each: domain, network, storage.
//
// The provider's side of it is the same for all: read the host, project what
// it says onto the state, compare with the configuration, show the effect,
// refuse what is protected, apply, read back. A Kind supplies what differs:
// its schema, its rules of comparison, what a change costs, and the calls.
package kind

import (
	"context"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Facts is what the host says about one object.
type Facts struct {
	Name       string     // as people know it
	Definition tree.Value // the whole persistent definition, with what libvirt keeps beside the XML (autostart, running)
	Guest      tree.Value // what runs, in the form of Definition; null if nothing does, or if it is as its definition
	Status     tree.Value // the computed attribute status, null if the kind has none
	Active     bool       // it runs, or is started
	Within     string     // UUID of what holds the object, if it has none of its own: the pool of a volume
	Warnings   []Problem  // what a person should know though nothing has to change
	Repeated   bool       // the host tells nothing for now: this is what it said last, else what the state has
}

// Problem is an error or a warning about an object, at a path if one is known.
type Problem struct {
	Path    tree.Path
	Summary string // names the object: cores merge warnings of equal summaries
	Detail  string // what happened, what was done already, what to do next
}

// Step is one named part of an apply and what became of it.
type Step struct{ Name, Outcome string }

// The outcomes of a step.
const (
	Updated           = "updated"
	AlreadyConfigured = "already_configured"
	Deferred          = "deferred" // waits for the next start of the guest
)

// Verdict is what a kind says of the changes of a plan.
type Verdict struct {
	Outcome  string        // create, update, resize, restart, shutdown, recreate
	Effect   change.Effect // the highest of all changes
	Fields   []string      // "path: effect", one for each change
	Replace  []tree.Path   // paths that only another object can bring
	Renewed  []tree.Path   // leaves that the effect gives another value, which only the host knows
	Refusals []Problem     // changes that cannot be made as things are; nothing is applied
	Warnings []Problem
}

// Judgement is what a kind judges by: the plan, and the state it starts from.
type Judgement struct {
	Config, Prior, Planned tree.Value
	Changes                []change.Change // of the definition
	Live                   []change.Change // of the running guest alone
	Guest                  tree.Value      // what runs, as of the last refresh; as Definition if nothing else is known
	Definition             tree.Value      // the whole of it, as of the last refresh
	Waiting                []tree.Path     // where the guest waits for its next start to be as its definition
}

// Update is what a kind needs to change an object: the plan, and what it was
// made from.
type Update struct {
	Config, Prior, Planned tree.Value
	Owned                  tree.Value      // configuration of the last apply, null if there was none
	Changes                []change.Change // of the definition
	Live                   []change.Change // of the running guest alone
	Waiting                []tree.Path     // what the guest waited for, and a restart brings
	Effect                 change.Effect   // what the plan announced
}

// Done is what an apply did. It is meaningful beside an error too: then it is
// what is true now.
type Done struct {
	Facts    Facts
	Steps    []Step
	Warnings []Problem
	Exists   bool // the object is on the host
}

// Kind is one kind of object.
type Kind interface {
	// Noun is what people call it: domain, network, pool, volume.
	Noun() string
	// Type is the whole schema of the resource.
	Type() *tree.Type
	// Rules are those of its comparison.
	Rules() *change.Rules
	// Secret says that a path is kept out of records.
	Secret(pattern string) bool
	// Validate checks a configuration by itself, offline.
	Validate(config tree.Value) []Problem
	// Identity reads from a state what finds the object on the host; "" if the
	// state holds nothing to find it by.
	Identity(state tree.Value) string
	// Read asks the host. If and only if libvirt says that there is no such
	// object, the error satisfies IsGone.
	Read(ctx context.Context, state tree.Value) (Facts, error)
	// Find resolves what a person gives to import into a state that Read understands.
	Find(ctx context.Context, id string) (tree.Value, error)
	// Judge is pure: what do these changes do to the running object?
	Judge(j Judgement) Verdict
	// Create makes the object. Done.Exists tells whether there is now one.
	Create(ctx context.Context, planned, config tree.Value) (Done, error)
	// Update changes it.
	Update(ctx context.Context, u Update) (Done, error)
	// Delete removes it, and says what a person should know of it. An object that
	// is gone already is success.
	Delete(ctx context.Context, state tree.Value) (warnings []Problem, err error)
	// NeverUsed says that an object was made but has nothing to lose yet, so
	// that protection need not keep it from being made again.
	NeverUsed(state tree.Value) bool
}

// Rereader is a Kind that need not look at everything again if it is told what
// it read last: the definition, null if there is none.
type Rereader interface {
	Reread(ctx context.Context, state, last tree.Value) (Facts, error)
}

// GoneError says that libvirt itself answered "no such object".
type GoneError struct {
	Noun, Name string
	Err        error
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("%s %q does not exist: %v", e.Noun, e.Name, e.Err)
}
func (e *GoneError) Unwrap() error { return e.Err }

// ProblemError carries problems that say everything themselves, with their
// paths, through a function that returns an error. Err is what led to them, if a
// caller may have to tell it from other reasons.
type ProblemError struct {
	Problems []Problem
	Err      error
}

func (e *ProblemError) Error() string {
	if len(e.Problems) == 0 {
		return "no problem"
	}
	return e.Problems[0].Summary + ": " + e.Problems[0].Detail
}

func (e *ProblemError) Unwrap() error { return e.Err }

// Refuse is a ProblemError of one problem.
func Refuse(p Problem) error { return &ProblemError{Problems: []Problem{p}} }

// NotFound is a ProblemError of one problem for a look-up that libvirt answered
// with err.
func NotFound(p Problem, err error) error { return &ProblemError{Problems: []Problem{p}, Err: err} }

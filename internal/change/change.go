// Package change decides what a plan changes. It compares three trees path by
// path: desired (the configuration), baseline (the definition as last agreed)
// and actual (the definition on the host), and says for each difference
// whether somebody wants it (intent), whether somebody did it behind our back
// (drift), or both (conflict).
//
// The package is pure: it knows neither libvirt nor the plugin protocol.
// What it must know of a field comes in as Rules. Three functions do the work:
//
//	Plan     configuration, prior state and records → planned state and changes
//	Patch    prior and planned state, definition    → the definition wanted
//	Project  definition, state                      → the state after a read
//
// Two rules hold everywhere. Omission changes nothing: what the configuration
// does not name and never named stays as the host has it. And a planned value
// is the configuration's or exactly the prior one, as the core accepts no
// third.
package change

import (
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Class says what it takes to change a path, at best.
type Class uint8

// The classes, in rising order of what they ask of a running guest.
const (
	ClassNone     Class = iota // nothing on the host changes
	ClassLive                  // libvirt changes the running guest
	ClassNextBoot              // the definition takes it, the guest at its next start
	ClassOffline               // only while the guest is off
	ClassReplace               // only by another object
)

var classNames = [...]string{"none", "live", "next_boot", "offline", "replace"}

func (c Class) String() string { return classNames[c] }

// Effect says what an apply does to the guest.
type Effect uint8

// The effects, in rising order.
const (
	EffectNone     Effect = iota // the guest is not touched, and nothing waits for it
	EffectLive                   // the running guest changes without interruption
	EffectNextBoot               // the guest is not touched; the change waits for its next start
	EffectRestart                // the guest is restarted
	EffectShutdown               // the guest is shut down, and stays off
	EffectReplace                // the object is replaced by another
)

var effectNames = [...]string{"none", "live", "next_boot", "restart", "shutdown", "replace"}

func (e Effect) String() string { return effectNames[e] }

// Tier says how drift in a path is treated. It never matters for intent.
type Tier uint8

// The tiers.
const (
	TierRoutine      Tier = iota // put back as an ordinary change
	TierModification             // held until somebody approves
	TierAddition                 // something owned is missing: added again, with a warning
	TierLocked                   // held, and cannot be approved
)

var tierNames = [...]string{"routine", "modification", "addition", "locked"}

func (t Tier) String() string { return tierNames[t] }

// Kind says why a path changes.
type Kind uint8

// The kinds of change.
const (
	Intent     Kind = iota // the configuration asks for another value
	Drift                  // the host was changed, and is put back
	Conflict               // both: the configuration wins, with a warning
	Withdrawal             // the configuration named it, and does so no more
	Addition               // an element of a list is added
	Removal                // an element of a list is removed from the object
)

var kindNames = [...]string{"intent", "drift", "conflict", "withdrawal", "addition", "removal"}

func (k Kind) String() string { return kindNames[k] }

// Change is one path that the plan changes on the host.
type Change struct {
	Path     tree.Path
	Unit     string // of the values, if they are scaled
	Kind     Kind
	Desired  tree.Value // null for withdrawals and removals
	Actual   tree.Value // of the definition; of the guest if Live
	Baseline tree.Value
	Guest    tree.Value // of the running guest, null if it has none
	// Live says that the definition is as desired, and that only the running
	// guest is not.
	Live bool
	// Reached says that the running guest is already as the change makes the
	// definition: nothing waits for its next start.
	Reached bool
}

// Held is drift that the plan leaves as it is.
type Held struct {
	Path    tree.Path
	Tier    Tier
	Unit    string // of the values, if they are scaled
	Desired tree.Value
	Actual  tree.Value
	Digest  string // approves exactly this drift
	Live    bool   // it is the running guest that differs, not the definition
}

// Rules is what the comparison must know of a kind of object.
type Rules struct {
	// Equal says whether two values of a path mean the same; called only for
	// values that differ to the letter. Either may be null.
	Equal func(pattern string, a, b tree.Value) bool
	// Keys are the identities of a list element, one for each way in which
	// elements of this list are known, best first; "" where the element does not
	// say. Two elements are compared by the first that both have.
	Keys func(pattern string, elem tree.Value) []string
	// Ordered says that the place of an element in this list is its identity, as
	// with boot devices. nil: in no list.
	Ordered func(pattern string) bool
	// Unit names the attribute that holds the unit of a numeric attribute, and
	// the unit that counts when it is absent; "" if the number has no unit.
	Unit func(pattern string) (attr, standard string)
	// Tier of a path.
	Tier func(pattern string) Tier
	// Setting says that a path speaks to the provider and is not on the host.
	Setting func(pattern string) bool
	// Chosen says that libvirt chooses a value when none is given, and that
	// people refer to it: planned unknown when it is new.
	Chosen func(pattern string) bool
	// Kept says that a path which the configuration named and names no more
	// stays as it is: the machine type, an address. nil: none does.
	Kept func(pattern string) bool
	// Alternatives names the attributes beside one of which the host has no two:
	// the other kinds of a source. nil: there are none.
	Alternatives func(pattern string) []string
	// Present says that an object says something even with nothing in it. One of
	// several alternatives always does. nil: no other does.
	Present func(pattern string) bool
	// Covers compares where the host may have more than the configuration asks
	// for, as with metadata of other namespaces: whether actual has all of
	// desired, and nothing that only owned still has. applies is false for
	// ordinary paths. nil: there are only those.
	Covers func(pattern string, desired, actual, owned tree.Value) (covers, applies bool)
	// Follows lists what the host adapts by itself when a path changes, beside
	// what stands in the same object. nil: nothing.
	Follows func(pattern string) []string
	// Sticky says that a path which the configuration leaves out is kept as
	// last agreed: a network that was started stays started. nil: none is.
	Sticky func(pattern string) bool
	// Once says that a path acts at creation and never again: another value is
	// planned as the prior one. nil: none is.
	Once func(pattern string) bool
	// Remakes says that the configuration asks for another object where a path that
	// acts once has another value, or one that is not known yet. nil: it never does.
	Remakes func(pattern string, desired tree.Value) bool
	// Decides names, of a path that acts once, the leaf that Remakes goes by, and
	// that means nothing where the rest has the same value. nil: none does.
	Decides func(pattern string) (leaf tree.Path)
	// Renewal names, for a path that acts once, the leaf of it that the host tells
	// and that can be brought about in an object which is there: then the whole is
	// compared by this leaf, and planned as prior where it is as desired. It is nil
	// where what is there is of no such kind. nil: it always is.
	Renewal func(pattern string, desired, baseline, actual tree.Value) (leaf tree.Path)
	// Measured says that a path is a figure which moves by itself: it is read,
	// and never compared. nil: none is.
	Measured func(pattern string) bool
	// Noise says that a path differs between a guest and its definition though
	// nobody changed anything. nil: none does.
	Noise func(pattern string) bool
	// Late says that a guest which can be corrected may get there by itself, as
	// one that has not given back all memory yet. Until the user asks for all
	// drift to be reverted, it waits and is no drift. nil: none does.
	Late func(c Change) bool
	// Floats says that a running guest moves a value by itself. nil: none does.
	Floats func(pattern string) bool
	// Correctable says whether a running guest that is not as its definition can
	// be made so without a restart; guest is the whole of it. If it can, the
	// difference is drift, else it waits for the next start. nil: nothing can.
	Correctable func(c Change, guest tree.Value) bool
}

// Policy is what the user decided about drift.
type Policy struct {
	Revert   bool            // put all drift of tier modification back
	Approved map[string]bool // digests of approved drift
}

// Input is what a plan is made from.
type Input struct {
	Type     *tree.Type
	Object   string // identity of the object, part of every digest
	Config   tree.Value
	Prior    tree.Value // null on create
	Baseline tree.Value // null if there is none yet
	Actual   tree.Value // the whole definition as read last
	Owned    tree.Value // the configuration of the last apply, as Identify returns it; null if there was none
	// Guest is what runs, in the form of a definition; null if nothing runs, or
	// if it is as its definition.
	Guest tree.Value
	// Lagging are the paths in which the guest was not yet as its definition at
	// the end of the last apply: there it is late, and nobody changed it.
	Lagging map[string]bool
	Policy  Policy
}

// Result is a plan.
type Result struct {
	Planned tree.Value
	Changes []Change // of the definition
	Live    []Change // of the running guest alone
	Held    []Held
	// Approved are the digests of the policy that approved something.
	Approved []string
	Unknown  []tree.Path // configuration values that are not known yet
	Left     []tree.Path // list elements that leave the state and stay on the host
	Ignored  []tree.Path // paths that act once, and have another value now
	Clashes  []Clash
	// Postponed is drift that would be put back, in a list that is held as a
	// whole because of other drift in it.
	Postponed []tree.Path
	// Undecided are lists that hold unknown values and that state has in
	// another order or length: no plan made now is sure to stay true.
	Undecided []tree.Path
	// Unresolved are paths that act once and have another value, or may have one,
	// while it is not known whether that asks for another object: no plan made now
	// is sure to stay true.
	Unresolved []tree.Path
}

// Clash is a hold and an intent in one list that no plan can express.
type Clash struct {
	List tree.Path
	Held Held
}

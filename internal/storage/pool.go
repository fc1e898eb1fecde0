package storage

import (
	"context"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Pool is the kind of object "pool".
type Pool struct {
	host  func() *virt.Host
	typ   *tree.Type
	rules *change.Rules
}

var _ kind.Kind = (*Pool)(nil)

// poolMeasured are figures that libvirt measures; they are never compared.
var poolMeasured = map[string]bool{"capacity": true, "allocation": true, "available": true}

// poolSettings speak to the provider. The units are those of measured figures.
var poolSettings = map[string]bool{
	"create": true, "destroy": true, "protect": true, "change": true, "status": true,
	"capacity_unit": true, "allocation_unit": true, "available_unit": true,
}

// NewPool returns the kind. host is asked at each call.
func NewPool(host func() *virt.Host) *Pool {
	k := &Pool{host: host, typ: poolType()}
	k.rules = &change.Rules{
		Equal: func(pattern string, a, b tree.Value) bool {
			return pattern != "autostart" && pattern != "active" && spec.Pool().Equal(pattern, a, b)
		},
		Keys: poolKeys,
		Unit: func(string) (string, string) { return "", "" },
		Tier: func(pattern string) change.Tier {
			if pattern == "uuid" || pattern == "type" || pattern == "target.path" || isPermission(pattern) {
				return change.TierLocked
			}
			return change.TierRoutine
		},
		Setting: func(pattern string) bool { return poolSettings[pattern] },
		Chosen: func(pattern string) bool {
			return pattern == "id" || pattern == "uuid" || pattern == "active" || pattern == "autostart" || poolMeasured[pattern]
		},
		Sticky:   func(pattern string) bool { return pattern == "active" },
		Kept:     func(pattern string) bool { return pattern == "autostart" },
		Measured: func(pattern string) bool { return poolMeasured[pattern] },

		Alternatives: spec.Pool().Alternatives,
	}
	return k
}

// isPermission says whether a path is about the pool's directory. libvirt sets
// these when it builds the directory, and never again: when the pool starts, it
// writes what it finds over what the definition says.
func isPermission(pattern string) bool {
	return pattern == "target.permissions" || strings.HasPrefix(pattern, "target.permissions.")
}

func poolKeys(pattern string, elem tree.Value) []string {
	switch pattern {
	case "source.device[]":
		return []string{elem.Attr("path").Str()}
	case "source.host[]":
		return []string{elem.Attr("name").Str()}
	}
	return nil
}

// Noun is what people call it.
func (k *Pool) Noun() string { return "pool" }

// Type is the whole schema of the resource.
func (k *Pool) Type() *tree.Type { return k.typ }

// Rules are those of the comparison.
func (k *Pool) Rules() *change.Rules { return k.rules }

// Secret says that a path is kept out of records; a pool names secrets only.
func (k *Pool) Secret(string) bool { return false }

// NeverUsed is false: a pool may hold files from before.
func (k *Pool) NeverUsed(tree.Value) bool { return false }

// Identity finds the pool: its UUID, else its id, which is the same, else its
// name.
func (k *Pool) Identity(state tree.Value) string { return firstOf(state, "uuid", "id", "name") }

func poolType() *tree.Type {
	root := spec.Pool().Type()
	attrs := make([]*tree.Attribute, 0, len(root.Attrs)+10)
	for name, a := range root.Attrs {
		switch {
		case name == "name", name == "type":
			a = required(a)
		case poolMeasured[name]:
			a = reported(name, a.Type, "Bytes, as libvirt measures it while the pool is started.")
		case poolSettings[name]:
			a = optional(name, a.Type, "Accepted for configurations of the incumbent provider. The figure is in bytes, as libvirt measures it.")
		}
		attrs = append(attrs, a)
	}
	onHost := func(name, text string) *tree.Attribute {
		return &tree.Attribute{Name: name, Type: tree.BoolType, Optional: true, Computed: true, Description: text}
	}
	attrs = append(attrs,
		reported("id", tree.StringType, "The UUID."),
		onHost("autostart", "Whether the host starts the pool when it boots. Read from the host."),
		onHost("active", "Whether the pool is started. Unset: it is started at creation and kept as last agreed; one that somebody stopped is started again. `false` stops it, which is refused while running guests use its volumes."),
		optional("create", tree.ObjectOf(
			optional("build", tree.BoolType, "Make the storage: a directory, a file system, a volume group. What is there already is kept, and not overwritten. Standard: true for pools of type dir, else false."),
			optional("overwrite", tree.BoolType, "With `build`: make a file system, volume group or partition table even if there is one already, whose data is lost then. Standard: false."),
			optional("start", tree.BoolType, "Start the pool. Standard: true. `active` is the same and is kept up afterwards."),
			optional("autostart", tree.BoolType, "Start the pool with the host. `autostart` is the same and is kept up afterwards."),
		), "What is done at creation, once."),
		optional("destroy", tree.ObjectOf(
			optional("delete", tree.BoolType, "Also delete the storage: the directory, the volume group. Refused while there are volumes or other files in it. Standard: false."),
		), "What is done at the end, beside stopping and undefining the pool."),
		optional("protect", tree.BoolType, protectText),
		reported("change", kind.ChangeType(), "What the last plan that changed something does. Meaningful where the action is not a no-op."),
		reported("status", tree.ObjectOf(
			reported("state", tree.StringType, "settled, pending (the definition was changed, and is read when the pool is started the next time), or degraded (the definition is missing)."),
			reported("settled", tree.BoolType, "Nothing is missing, and nothing waits."),
			reported("pending", tree.ListOf(tree.StringType), "Paths of the definition that wait for the pool's next start."),
			reported("active", tree.BoolType, "Whether the pool is started."),
			reported("persistent", tree.BoolType, "Whether there is a definition."),
			reported("last_steps", kind.StepsType(), "What the last apply did, step by step."),
		), "What the host says, as of the last refresh."),
	)
	return tree.ObjectOf(attrs...)
}

// Validate checks what can be known without the host.
func (k *Pool) Validate(config tree.Value) []kind.Problem {
	problems := kind.ValidateFit(spec.Pool(), config)
	create, typ := config.Attr("create"), config.Attr("type")
	if create.Attr("overwrite").Bool() && typ.IsKnown() && !formatted[typ.Str()] {
		problems = append(problems, kind.Problem{
			Path: tree.ParsePath("create.overwrite"), Summary: fmt.Sprintf("A pool of type %s has nothing to overwrite", typ.Str()),
			Detail: "create.overwrite is for pools whose storage is formatted when it is built: fs, logical, disk. Leave it out.",
		})
	}
	if build := create.Attr("build"); create.Attr("overwrite").Bool() && !build.IsUnknown() && !build.Bool() {
		problems = append(problems, kind.Problem{
			Path: tree.ParsePath("create.overwrite"), Summary: "create.overwrite without create.build",
			Detail: "Nothing is overwritten unless the storage is made: add build = true, or leave overwrite out.",
		})
	}
	return problems
}

// Judge says what the changes of a plan do. A pool's definition is read when it
// is started: what changes there waits for that, and nothing running notices.
func (k *Pool) Judge(j kind.Judgement) kind.Verdict {
	v := kind.Verdict{Outcome: "update"}
	name := j.Prior.Attr("name").Str()
	for _, c := range j.Changes {
		effect := change.EffectNone
		switch p := c.Path.Pattern(); {
		case p == "name", p == "type", p == "target.path":
			v.Refusals = append(v.Refusals, kind.Problem{
				Path: c.Path, Summary: fmt.Sprintf("Cannot change %s of pool %q", p, name),
				Detail: fmt.Sprintf("It is %s on the host; the configuration has %s. Volumes and machines name the pool and its files by it, so libvirt has no way to change it. Nothing was changed. Take the change back; or write a second pool beside it, move the volumes over, and remove the first.", told(c.Actual), told(c.Desired)),
			})
		case isPermission(p) && c.Kind != change.Withdrawal:
			v.Refusals = append(v.Refusals, kind.Problem{
				Path: c.Path, Summary: fmt.Sprintf("Cannot change %s of pool %q", p, name),
				Detail: fmt.Sprintf("It is %s on the host; the configuration has %s. libvirt sets it only when it builds the directory, and takes over what it finds at every start. Nothing was changed. Change the directory on the host (chmod, chown; then virsh pool-refresh %s), or take the change back.", told(c.Actual), told(c.Desired), name),
			})
		case p == "uuid":
			v.Replace, v.Outcome, effect = append(v.Replace, c.Path), "recreate", change.EffectReplace
		}
		v.Effect = max(v.Effect, effect)
		v.Fields = append(v.Fields, kind.Describe(c, effect))
	}
	return v
}

// Find resolves a UUID or a name for an import.
func (k *Pool) Find(ctx context.Context, id string) (tree.Value, error) {
	pool, err := k.find(ctx, id)
	if virt.IsNotFound(err) && kind.IsUUID(id) {
		pool, err = k.host().LookupPoolByName(ctx, id) // a name can look like a UUID
	}
	if virt.IsNotFound(err) {
		return tree.NullValue, kind.NotFound(kind.Problem{
			Summary: fmt.Sprintf("There is no pool %q", id),
			Detail:  fmt.Sprintf("The host %s has no pool of that UUID or name. An import takes the UUID (virsh pool-uuid NAME) or the name, as `virsh pool-list --all` shows it.", k.host().Display()),
		}, err)
	}
	if err != nil {
		return tree.NullValue, err
	}
	uuid := tree.StringValue(pool.UUID())
	return tree.ObjectValue(map[string]tree.Value{"id": uuid, "uuid": uuid, "name": tree.StringValue(pool.Name())}), nil
}

func (k *Pool) find(ctx context.Context, identity string) (*virt.Pool, error) {
	if kind.IsUUID(identity) {
		return k.host().LookupPool(ctx, identity)
	}
	return k.host().LookupPoolByName(ctx, identity)
}

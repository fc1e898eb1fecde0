package kind

import (
	"errors"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// EffectOf is the table of classes against the state of the object: what does
// a change do to what runs now?
func EffectOf(class change.Class, active bool) change.Effect {
	switch {
	case class == change.ClassReplace:
		return change.EffectReplace
	case class == change.ClassNone || !active:
		return change.EffectNone
	case class == change.ClassLive:
		return change.EffectLive
	}
	return change.EffectNextBoot
}

// Describe is the line of a change in the computed attribute change.fields.
func Describe(c change.Change, effect change.Effect) string {
	verb := map[change.Kind]string{change.Addition: "added ", change.Removal: "removed ", change.Withdrawal: "unset "}[c.Kind]
	if c.Kind == change.Drift && c.Actual.IsNull() && c.Path[len(c.Path)-1].Attr == "" {
		verb = "added " // a device that somebody took out
	}
	return fmt.Sprintf("%s: %s%s", c.Path, verb, effect)
}

// ChangeType is the type of the computed attribute change.
func ChangeType() *tree.Type {
	return tree.ObjectOf(
		reported("outcome", tree.StringType, "What the plan does: create, update, resize, restart, shutdown or recreate."),
		reported("effect", tree.StringType, "The greatest effect on what runs now: none, live, next_boot, restart, shutdown or replace."),
		reported("fields", tree.ListOf(tree.StringType), "Every field that changes, with its effect."),
	)
}

// StepsType is the type of the computed attribute status.last_steps.
func StepsType() *tree.Type {
	return tree.ListOf(tree.ObjectOf(
		reported("name", tree.StringType, "The step."),
		reported("outcome", tree.StringType, "updated, already_configured or deferred."),
	))
}

func reported(name string, typ *tree.Type, text string) *tree.Attribute {
	return &tree.Attribute{Name: name, Type: typ, Computed: true, Description: text}
}

// ValidateFit finds values that have no place in the XML: fractions, negative
// sizes, control characters.
func ValidateFit(root *spec.Root, config tree.Value) []Problem {
	_, err := root.Encode(config)
	var value *spec.ValueError
	if !errors.As(err, &value) {
		return nil
	}
	return []Problem{{Path: value.Path, Summary: fmt.Sprintf("Invalid value for %s", value.Path), Detail: value.Reason + "."}}
}

// IsUUID says whether a text is a UUID as libvirt prints it, in any case.
func IsUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if hyphen != (c == '-') || !hyphen && !hex {
			return false
		}
	}
	return true
}

// Unmet says, as problems, what libvirt accepted and did not do of the changes
// of a plan; prior is null for a creation.
func Unmet(k Kind, name string, prior, planned, definition tree.Value) error {
	var problems []Problem
	for _, p := range k.Rules().Unmet(k.Type(), prior, planned, definition) {
		problems = append(problems, Problem{
			Path: p, Summary: fmt.Sprintf("libvirt did not take %s of %s %q", p, k.Noun(), name),
			Detail: fmt.Sprintf("It accepted the definition, but holds %s where %s was asked for. Write what it holds into the configuration, or leave the attribute out.",
				shown(k, p, definition.Get(p)), shown(k, p, planned.Get(p))),
		})
	}
	if len(problems) == 0 {
		return nil
	}
	return &ProblemError{Problems: problems}
}

func shown(k Kind, p tree.Path, v tree.Value) string {
	switch {
	case v.IsNull():
		return "nothing"
	case k.Secret(p.Pattern()):
		return "(sensitive)"
	}
	return HideCredentials(v.String())
}

// Order is the plan of an update, as it is carried out.
func Order(k Kind, u Update) change.Order {
	return change.Order{Rules: k.Rules(), Type: k.Type(), Config: u.Config, Prior: u.Prior, Planned: u.Planned, Owned: u.Owned}
}

// RefuseMoved refuses an update if somebody changed what it is about to change
// since the plan was made: the plan shows another old value, and nobody has
// agreed to overwrite this one. What has become as desired is no such thing.
func RefuseMoved(k Kind, name string, u Update, definition tree.Value) error {
	seen := map[string]change.Change{}
	for _, c := range u.Changes {
		seen[c.Path.String()] = c
	}
	now := k.Rules().Plan(change.Input{Type: k.Type(), Config: u.Config, Prior: definition, Actual: definition, Owned: u.Owned})
	for _, c := range now.Changes {
		was, there := seen[c.Path.String()]
		if !there || k.Rules().Same(c.Path.Pattern(), was.Actual, c.Actual) {
			continue
		}
		return Refuse(Problem{
			Path: c.Path, Summary: fmt.Sprintf("%s of %s %q was changed on the host after the plan was made", c.Path, k.Noun(), name),
			Detail: fmt.Sprintf("The plan saw %s, the host has %s now, and the configuration wants %s. Nothing was changed. Plan again, and decide with the new value before you.",
				shown(k, c.Path, was.Actual), shown(k, c.Path, c.Actual), shown(k, c.Path, c.Desired)),
		})
	}
	return nil
}

// Exists is the refusal to take over an object that is there already.
func Exists(noun, name, uuid, host string) error {
	return Refuse(Problem{
		Path: tree.Root.Attr("name"), Summary: fmt.Sprintf("%s%s %q exists already", string(noun[0]-'a'+'A'), noun[1:], name),
		Detail: fmt.Sprintf("The host %s has it with the UUID %s. It was not touched. To manage it, import it: `import ADDRESS %s`. To have another one, choose another name; what create_before_destroy makes needs one, too.", host, uuid, uuid),
	})
}

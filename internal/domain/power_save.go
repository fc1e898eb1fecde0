package domain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A start from a managed save brings back the guest as it was, with the
// definition of that time. What the domain has got since is not in it: to such a
// guest a change is what it is to one that runs already, and nothing of it is
// made live. Only a start after that, or a restart in the same apply, brings it.

// resuming is the situation of a plan that starts a guest from its managed save.
func resuming(changes []change.Change, saved bool, now situation) situation {
	now.saved = saved && !now.active && !now.ends
	now.resumes = now.saved && slices.ContainsFunc(changes, func(c change.Change) bool {
		return c.Path.Pattern() == "running" && c.Desired.Bool()
	})
	return now
}

// effectOnSaved is the effect of a change on a guest that is started from its
// managed save.
func effectOnSaved(allow allowance) change.Effect {
	if allow == allowRestart {
		return change.EffectRestart
	}
	return change.EffectNextBoot
}

// refuseRename says that libvirt renames no domain that has a saved guest.
func refuseRename(path tree.Path, name string) kind.Problem {
	return kind.Problem{
		Path: path, Summary: fmt.Sprintf("Cannot change %s of domain %q, which has a managed save", path, name),
		Detail: fmt.Sprintf("The saved guest has the old name, and libvirt renames no such domain. Let the guest go on and shut it down (virsh start %s, virsh shutdown %s), or drop it with what it has in its memory (virsh managedsave-remove %s); then apply again. Nothing was changed.", name, name, name),
	}
}

// warnAboutSave says what a start from a managed save does not bring.
func warnAboutSave(changes []change.Change, effects []change.Effect, now situation, name string) []kind.Problem {
	var texts []string
	for i, c := range changes {
		if now.resumes && effects[i] == change.EffectNextBoot {
			texts = append(texts, c.Path.String())
		}
	}
	if len(texts) == 0 {
		return nil
	}
	slices.Sort(texts)
	return []kind.Problem{{
		Summary: fmt.Sprintf("Domain %q is started from its managed save, which has an older definition", name),
		Detail: fmt.Sprintf("The guest goes on where it was saved. What changes now waits for its next start, and status.pending lists it: %s. To boot with it at once, drop the saved guest with all it has in its memory before this apply (virsh managedsave-remove %s), or set update.allow to \"restart\": the guest is then resumed, shut down in order and started again.",
			strings.Join(texts, ", "), name),
	}}
}

// resumes says whether this update starts the guest from a managed save.
func (a *apply) resumes() bool {
	return a.before.managedSave && !a.before.active() && a.changed("running") && a.wanted.Attr("running").Bool()
}

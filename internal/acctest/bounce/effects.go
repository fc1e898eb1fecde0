package bounce

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Effects is the table of a documentation page: what the rows change, and what
// that does to a running guest under each policy. It says what the rows want,
// which is what happened if they pass.
func Effects(rows []Row) string {
	var b strings.Builder
	b.WriteString("| change | attributes | `next_boot` (standard) | `live` | `restart` |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		if r.Unavailable != "" {
			fmt.Fprintf(&b, "| %s | | not tried: %s | | |\n", r.words(), strings.ReplaceAll(r.Unavailable, "|", "\\|"))
			continue
		}
		if attrs := r.attributes(); attrs != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.words(), attrs, r.effects(AllowNextBoot), r.effects(AllowLive), r.effects(AllowRestart))
		}
	}
	return b.String()
}

func (r *Row) words() string { return strings.ReplaceAll(r.Name, "-", " ") }

// attributes are those that the steps change in the configuration.
func (r *Row) attributes() string {
	seen := map[string]bool{}
	for _, s := range r.Steps {
		for attr := range s.Change {
			seen["`"+attr+"`"] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
}

// effects are those of the steps that change the configuration, one word if all
// are the same.
func (r *Row) effects(p Policy) string {
	if !r.runs(p) {
		return "–"
	}
	var all []string
	for _, s := range r.Steps {
		w, said := s.Want[p]
		effect := w.Effect
		switch {
		case !said || len(s.Change) == 0:
			continue
		case w.Refused != "":
			effect = refusedWord
		case effect == "":
			effect = "nothing"
		}
		if len(all) == 0 || all[len(all)-1] != effect {
			all = append(all, effect)
		}
		if w.Refused != "" {
			break
		}
	}
	return strings.Join(all, ", then ")
}

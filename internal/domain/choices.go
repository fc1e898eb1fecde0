package domain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// choice asks the host what it has. It is asked only for a message, so what
// cannot be asked is left out of it.
type choice func(ctx context.Context, host hostView) choices

// choices are what an attribute could have said.
type choices struct {
	title string // what they are; "" if nobody could tell
	names []string
}

// few is how many choices a message shows.
const few = 6

// sentence shows those that are nearest to what was written.
func (c choices) sentence(written string) string {
	names := slices.Clone(c.names)
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case c.title == "":
		return ""
	case len(names) == 0:
		return fmt.Sprintf("%s: none. ", c.title)
	}
	more := ""
	if len(names) > few {
		slices.SortStableFunc(names, func(a, b string) int { return distance(a, written) - distance(b, written) })
		more = fmt.Sprintf(" and %d more", len(names)-few)
		names = names[:few]
	}
	return fmt.Sprintf("%s: %s%s. ", c.title, strings.Join(names, ", "), more)
}

// distance is how many letters have to be changed, added or left out to make one
// name of another, whatever their case.
func distance(a, b string) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j, s := range y {
			cost := 1
			if r == s {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(y)]
}

// namesOf are the keys of an answer, none if there was none.
func namesOf[V any](title string, answer map[string]V, err error) choices {
	if err != nil {
		return choices{}
	}
	return choices{title, slices.Collect(maps.Keys(answer))}
}

func someNetwork(ctx context.Context, host hostView) choices {
	all, err := host.Networks(ctx)
	return namesOf("Networks of the host", all, err)
}

func somePool(ctx context.Context, host hostView) choices {
	all, err := host.Pools(ctx)
	return namesOf("Pools of the host", all, err)
}

func volumesOf(pool string) choice {
	return func(ctx context.Context, host hostView) choices {
		all, err := host.Volumes(ctx, pool)
		if err != nil {
			return choices{}
		}
		return choices{fmt.Sprintf("Volumes of pool %q", pool), all}
	}
}

func someFilter(ctx context.Context, host hostView) choices {
	all, err := host.Filters(ctx)
	return namesOf("Network filters of the host", all, err)
}

func someLink(ctx context.Context, host hostView) choices {
	all, err := host.Links(ctx)
	return namesOf("Network devices of the host", all, err)
}

func someBridge(ctx context.Context, host hostView) choices {
	all, err := host.Links(ctx)
	bridges := maps.Clone(all)
	maps.DeleteFunc(bridges, func(_, kind string) bool { return kind != "bridge" })
	return namesOf("Bridges of the host", bridges, err)
}

// someMachine are the machine types of an emulator.
func someMachine(o virt.Offer) choice {
	return func(ctx context.Context, host hostView) choices {
		all, err := host.Machines(ctx, o)
		if err != nil {
			return choices{}
		}
		return choices{"Machine types of the emulator", all}
	}
}

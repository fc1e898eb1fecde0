package domain

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
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

// sentence shows those that are nearest to what was written.
func (c choices) sentence(written string) string {
	if c.title == "" {
		return ""
	}
	return kind.Choices(c.title, c.names, written)
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

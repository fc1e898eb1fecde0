package kind

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestRollBack(t *testing.T) {
	failed := errors.New("step three failed")
	var order []string
	step := func(name string, err error) func(context.Context) error {
		return func(context.Context) error { order = append(order, name); return err }
	}
	cases := map[string]struct {
		steps map[string]error
		says  string
	}{
		"nothing done": {nil, "Nothing was changed"},
		"all undone":   {map[string]error{"one": nil, "two": nil}, "The previous definition is in force again"},
		"one stays":    {map[string]error{"one": nil, "two": errors.New("lost")}, "could not be taken back (lost): compare `virsh dumpxml x`"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var u Undo
			order = nil
			for _, s := range []string{"one", "two"} {
				if err, there := c.steps[s]; there {
					u.Add(step(s, err))
				}
			}
			err := u.RollBack(context.Background(), failed, "virsh dumpxml x")
			if !errors.Is(err, failed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if len(c.steps) > 0 && strings.Join(order, " ") != "two one" {
				t.Errorf("undone in the order %v", order)
			}
		})
	}
}

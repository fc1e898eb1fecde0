package kind

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A daemon that restarts is gone for some seconds, and so is not what ends an
// undo; one that stays away is, once for all steps.
func TestRollBackWaitsForTheDaemon(t *testing.T) {
	lost, refused := errors.New("nobody answers"), errors.New("no")
	cases := map[string]struct {
		fails func(n int) error // the nth time that a step is asked for
		asked int
		takes time.Duration
		says  string
	}{
		"back in time": {func(n int) error {
			if n < 3 {
				return lost
			}
			return nil
		}, 4, 500 * time.Millisecond, "The previous definition is in force again"},
		"refused":       {func(int) error { return refused }, 2, 0, "could not be taken back (no; no)"},
		"gone for good": {func(int) error { return lost }, 123, returnTime + 250*time.Millisecond, "could not be taken back (nobody answers; nobody answers)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // with a clock of its own
				asked := 0
				u := Undo{Lost: func(err error) bool { return errors.Is(err, lost) }}
				for range 2 {
					u.Add(func(context.Context) error { asked++; return c.fails(asked) })
				}
				begin := time.Now()
				err := u.RollBack(context.Background(), errors.New("failed"), "look")
				if took := time.Since(begin); !strings.Contains(err.Error(), c.says) || asked != c.asked || took != c.takes {
					t.Errorf("asked %d times in %s: %v", asked, took, err)
				}
			})
		})
	}
}

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

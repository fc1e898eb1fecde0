package kind

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Undo remembers how the steps of an update are taken back.
type Undo struct {
	steps []func(context.Context) error
}

// undoTime is how long taking back may take, also after the user gave up.
const undoTime = 5 * time.Minute

// Add remembers how the step is taken back that is made next.
func (u *Undo) Add(f func(context.Context) error) { u.steps = append(u.steps, f) }

// AddLast remembers what is done after all else was taken back.
func (u *Undo) AddLast(f func(context.Context) error) {
	u.steps = append([]func(context.Context) error{f}, u.steps...)
}

// RollBack takes the steps back, last first, and adds to the error what is in
// force now. look is the command that shows it.
func (u *Undo) RollBack(ctx context.Context, failed error, look string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	var kept []string
	for i := len(u.steps) - 1; i >= 0; i-- {
		if err := u.steps[i](ctx); err != nil {
			kept = append(kept, err.Error())
		}
	}
	switch {
	case len(u.steps) == 0:
		return fmt.Errorf("%w. Nothing was changed", failed)
	case len(kept) == 0:
		return fmt.Errorf("%w. The previous definition is in force again, and what ran runs", failed)
	}
	return fmt.Errorf("%w. Some of it could not be taken back (%s): compare `%s` with the configuration before the next apply",
		failed, strings.Join(kept, "; "), look)
}

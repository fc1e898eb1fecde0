package kind

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Undo remembers how the steps of an update are taken back. A step may be taken
// back though it was never made, as its answer was lost, and more than once.
type Undo struct {
	// Lost says of an error that nobody was there to be asked: what took a step
	// away may be a daemon that restarts, and it is waited for. nil: nothing is.
	Lost  func(error) bool
	steps []func(context.Context) error
}

// undoTime is how long taking back may take, also after the user gave up.
const undoTime = 5 * time.Minute

// returnTime is how long a daemon that is gone is waited for, once for all steps.
const returnTime = 30 * time.Second

// Add remembers how the step is taken back that is made next.
func (u *Undo) Add(f func(context.Context) error) { u.steps = append(u.steps, f) }

// AddLast remembers what is done after all else was taken back.
func (u *Undo) AddLast(f func(context.Context) error) {
	u.steps = append([]func(context.Context) error{f}, u.steps...)
}

// RollBack takes the steps back, last first, and adds to the error what is in
// force now. look is the command that shows it.
func (u *Undo) RollBack(ctx context.Context, failed error, look string) error {
	kept := u.TakeBack(ctx)
	switch {
	case len(u.steps) == 0:
		return fmt.Errorf("%w. Nothing was changed", failed)
	case len(kept) == 0:
		return fmt.Errorf("%w. The previous definition is in force again, and what ran runs", failed)
	}
	return fmt.Errorf("%w. Some of it could not be taken back (%s): compare `%s` with the configuration before the next apply",
		failed, strings.Join(kept, "; "), look)
}

// TakeBack takes the steps back, last first, and says what could not be.
func (u *Undo) TakeBack(ctx context.Context) (kept []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	back := time.Now().Add(returnTime)
	for i := len(u.steps) - 1; i >= 0; i-- {
		if err := u.patiently(ctx, back, u.steps[i]); err != nil {
			kept = append(kept, err.Error())
		}
	}
	return kept
}

// patiently makes a step, again and again while nobody is there to be asked.
func (u *Undo) patiently(ctx context.Context, until time.Time, step func(context.Context) error) error {
	for {
		err := step(ctx)
		if err == nil || u.Lost == nil || !u.Lost(err) || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(250 * time.Millisecond):
		}
	}
}

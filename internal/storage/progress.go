package storage

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// often is the time between two lines of the log about something that lasts.
var often = 5 * time.Second

// telling writes a line to the log every now and then, also while nothing moves,
// until stop is called. about is asked for what the line says beside its text.
func telling(ctx context.Context, text string, about func() map[string]any) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	begin := time.Now()
	all.Go(func() {
		tick := time.NewTicker(often)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				fields := about()
				fields["seconds"] = int(time.Since(begin).Seconds())
				tflog.Info(ctx, text, fields)
			}
		}
	})
	return func() { close(done); all.Wait() }
}

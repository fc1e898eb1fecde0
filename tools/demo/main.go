// Command demo shows on a real, private libvirtd what the provider does to
// running machines and what it refuses: it applies examples/two-machines,
// changes the machines in several ways, adopts one that was made by hand, asks the
// guests themselves whether they were touched, and ends with a table of what was
// proved.
//
// Every statement it prints was checked a moment before: a proof that fails
// ends the demo with an error. It touches nothing of the machine's own
// libvirt, and leaves nothing behind.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	core := flag.String("core", "", "path of tofu or terraform; the standard is tofu on the PATH, then ./bin/tofu")
	keep := flag.Bool("keep", false, "leave the host and the working directory for a look; prints how to remove them")
	flag.Parse()
	if err := run(*core, *keep); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

func run(core string, keep bool) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	begin := time.Now()
	d, err := prepare(ctx, core, keep)
	if d != nil {
		defer func() {
			if cleanErr := d.cleanUp(); err == nil {
				err = cleanErr
			}
		}()
	}
	if err != nil {
		return err
	}
	for _, act := range []struct {
		title string
		play  func(context.Context) error
	}{
		{"Two machines from a configuration", d.create},
		{"Somebody changes the host behind our back", d.outOfBand},
		{"A change that the guest can take, and one that has to wait", d.liveAndPending},
		{"Memory and CPUs while the guest runs, and a machine type that waits", d.powerCycle},
		{"A block is removed by mistake", d.removedBlock},
		{"The way out, if it was no mistake", d.wayOut},
		{"A machine that somebody made by hand is adopted", d.adopt},
	} {
		d.act(act.title)
		if err := act.play(ctx); err != nil {
			return fmt.Errorf("%s: %w", act.title, err)
		}
	}
	if err := d.tearDown(ctx); err != nil {
		return err
	}
	d.table(time.Since(begin))
	return nil
}

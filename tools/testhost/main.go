// Testhost runs throwaway libvirt hosts for tests, demonstrations and people.
//
//	testhost up [--dir DIR]          start one; prints its directory and its URI
//	testhost exec [--dir DIR] -- CMD run a command inside it (virsh just works)
//	testhost uri [--dir DIR]         print its URI
//	testhost guest                   print the files of the tiny guest
//	testhost list                    print the directories of all that run
//	testhost restart [--dir DIR]     restart libvirtd; guests keep running
//	testhost down [--dir DIR]        stop it and leave nothing behind
//	testhost packages                install what it needs, nothing else
//
// Without --dir, "up" makes a temporary directory and the others take the one
// host that runs; TESTHOST_DIR is a default for both. Package host says how it
// works.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/debian"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/guest"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testhost:", err)
		os.Exit(1)
	}
}

const usage = "usage: testhost up|exec|uri|guest|list|restart|down|packages [--dir DIR] [-- COMMAND…]"

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("testhost "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("dir", os.Getenv("TESTHOST_DIR"), "directory of the host")
	if err := flags.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() > 0 && args[0] != "exec" {
		return fmt.Errorf("unexpected argument %q; %s", flags.Arg(0), usage)
	}
	switch args[0] {
	case "up":
		return up(ctx, *dir, stdout, stderr)
	case "packages":
		return (&debian.Archive{Log: stderr}).Ensure(ctx, host.Requirements)
	case "list":
		for _, d := range host.List() {
			fmt.Fprintln(stdout, d)
		}
		return nil
	case "guest":
		if err := (&debian.Archive{Log: stderr}).Ensure(ctx, host.Requirements); err != nil {
			return err
		}
		image, err := guest.Ensure(ctx, stderr)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "kernel=%s\nbzimage=%s\ninitrd=%s\ndisk=%s\ncmdline=%s\n",
			image.Kernel, image.BzImage, image.Initrd, image.Disk, image.Cmdline)
		return nil
	case "exec", "uri", "restart", "down":
		return with(ctx, args[0], *dir, flags.Args(), stdout)
	}
	return fmt.Errorf("unknown command %q; %s", args[0], usage)
}

func up(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	h, err := host.Start(ctx, host.Options{Dir: dir, Log: stderr, Detach: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "dir=%s\nuri=%s\n", h.Dir(), h.URI())
	return nil
}

// with runs a command on a host that exists.
func with(ctx context.Context, command, dir string, args []string, stdout io.Writer) error {
	if dir == "" {
		running := host.List()
		if len(running) != 1 {
			return fmt.Errorf("%d hosts run here (%s): name one with --dir", len(running), strings.Join(running, ", "))
		}
		dir = running[0]
	}
	h, err := host.Attach(dir)
	if command == "down" && (err == nil || errors.Is(err, host.ErrNotRunning)) {
		return h.Stop()
	}
	if err != nil {
		return err
	}
	switch command {
	case "uri":
		fmt.Fprintln(stdout, h.URI())
		return nil
	case "restart":
		return h.RestartDaemon(ctx)
	}
	if len(args) == 0 {
		return errors.New("exec: no command; " + usage)
	}
	argv, env := h.Command(args[0], args[1:]...)
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	return fmt.Errorf("exec: %w", syscall.Exec(path, argv, env))
}

// Command adopt takes over what lives: it reads machines, volumes, pools and
// networks from a libvirt host and writes a configuration of them as a person
// would, with import blocks; then it has OpenTofu or Terraform make a plan of it
// and says whether that is empty apart from the imports, or what differs.
//
// It reads with the provider's own code, so that it sees what an import sees. It
// never writes to the host: every call that would change something is refused
// before it is made. It overwrites no file, and it writes nothing that libvirt
// knows to be secret.
//
//	adopt                                 list what there is, write nothing
//	adopt -out infra domain/web           one machine
//	adopt -out infra -uses 'domain/*'     all machines, with the volumes, pools and networks that they use
//	adopt -out infra -all                 everything
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// options are the command line.
type options struct {
	uri    string
	out    string   // directory to write to
	chosen []string // selectors: domain/web, volume/default/*.qcow2
	all    bool
	uses   bool // also what the chosen domains use
	core   string
	prove  bool
}

// errDiffers is the end of a run whose plan is not empty.
var errDiffers = errors.New("the plan is not empty")

// Exit codes.
const (
	exitError   = 1
	exitDiffers = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = run(ctx, o, os.Stdout)
	}
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errDiffers):
		os.Exit(exitDiffers)
	default:
		fmt.Fprintln(os.Stderr, "adopt:", err)
		os.Exit(exitError)
	}
}

func parse(args []string, messages io.Writer) (options, error) {
	o := options{}
	set := flag.NewFlagSet("adopt", flag.ContinueOnError)
	set.SetOutput(messages)
	set.Usage = func() {
		fmt.Fprint(messages, usage)
		set.PrintDefaults()
	}
	set.StringVar(&o.uri, "uri", "", "libvirt's connection `URI`; unset: LIBVIRT_DEFAULT_URI from the environment, else qemu:///system")
	set.StringVar(&o.out, "out", "", "`directory` to write to; it is made if it is not there, and no file in it is overwritten")
	set.BoolVar(&o.all, "all", false, "choose everything that has a definition")
	set.BoolVar(&o.uses, "uses", false, "choose the volumes, pools and networks that the chosen domains use, too")
	set.StringVar(&o.core, "core", "", "`path` of tofu or terraform for the proof; unset: the first of both on the PATH")
	set.BoolVar(&o.prove, "prove", true, "make a plan of what was written")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	o.chosen = set.Args()
	if o.uri == "" {
		o.uri = os.Getenv("LIBVIRT_DEFAULT_URI")
	}
	if o.uri == "" {
		o.uri = "qemu:///system"
	}
	if (o.all || len(o.chosen) > 0) && o.out == "" {
		return o, errors.New("-out is missing: the directory to write to")
	}
	for _, s := range o.chosen {
		if _, err := parseSelector(s); err != nil {
			return o, err
		}
	}
	return o, nil
}

const usage = `adopt [flags] [KIND/NAME …]

Writes a configuration with import blocks for what lives on a libvirt host, and
proves by a plan that nothing would change. KIND/NAME is domain/NAME, network/NAME,
pool/NAME or volume/POOL/NAME; * and ? stand for any text. Without any, it lists
what there is.

Exit code 0: written, and the plan is empty. 2: written, and the plan is not
empty, or cannot be made. 1: nothing was done.

`

// run does it all.
func run(ctx context.Context, o options, out io.Writer) error {
	host := open(o.uri)
	defer func() { _ = host.close() }()
	if !o.all && len(o.chosen) == 0 {
		return host.list(ctx, out)
	}
	var prover *prover
	if o.prove {
		var err error
		if prover, err = findCore(ctx, o.core); err != nil {
			return err
		}
	}
	objects, notes, err := host.choose(ctx, o)
	if err != nil {
		return err
	}
	return write(ctx, compose(objects, o.uri, host.Display()), notes, o, prover, out)
}

// write writes a configuration down, says what a person should know of it, and
// proves it if there is a prover.
func write(ctx context.Context, project *project, notes []string, o options, prover *prover, out io.Writer) error {
	files, err := project.files()
	if err != nil {
		return err
	}
	if err := writeNew(o.out, files); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(out, "wrote %s/%s\n", strings.TrimSuffix(o.out, "/"), f.name)
	}
	for _, note := range append(notes, project.mayBeSecret()...) {
		fmt.Fprintln(out, "note:", note)
	}
	if prover == nil {
		return nil
	}
	return prover.prove(ctx, project, files, out)
}

// Package debian gets what a throwaway host needs out of Debian's archive.
//
// Two ways, with different reach. A Requirement is a program that must be on
// this machine (libvirtd, QEMU, dnsmasq …): it is found by the files it
// consists of, not by a package database, so a machine that has them from
// elsewhere is as good; what is missing is installed with apt-get when we are
// root and reported with the exact apt-get line when we are not. A package that
// only lends us a few files (the guest's kernel, busybox) is fetched with
// apt-get download and unpacked: nothing of it is installed.
//
// Installing never starts a service: while our own apt-get runs, a policy-rc.d
// forbids it, so a machine's own libvirtd stays as it was.
package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Archive runs apt. The zero value talks to the machine's own sources and says
// nothing; Log, when set, gets one line for each step.
type Archive struct {
	Log io.Writer

	// updated is set once apt-get update ran: one refresh per process is all
	// that can help.
	updated bool
}

func (a *Archive) logf(format string, args ...any) {
	if a.Log != nil {
		fmt.Fprintf(a.Log, format+"\n", args...)
	}
}

// geteuid is what tests replace to be somebody else.
var geteuid = os.Geteuid

// Update fetches the package lists. Only root can. While another apt holds the
// lists, it waits for up to two minutes.
func (a *Archive) Update(ctx context.Context) error {
	if a.updated {
		return nil
	}
	if geteuid() != 0 {
		return fmt.Errorf("update the package lists: needs root: run apt-get update")
	}
	a.logf("apt-get update")
	for deadline := time.Now().Add(2 * time.Minute); ; {
		_, err := run(ctx, "", "apt-get", "update", "-q")
		if err == nil {
			a.updated = true
			return nil
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "Could not get lock") || time.Now().After(deadline) {
			return fmt.Errorf("update the package lists: %w", err)
		}
		time.Sleep(time.Second)
	}
}

// known tells whether the package lists offer a version of the package.
func (a *Archive) known(ctx context.Context, name string) bool {
	out, err := run(ctx, "", "apt-cache", "policy", name)
	if err != nil {
		return false
	}
	for _, line := range strings.Split(out, "\n") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "Candidate:"); ok {
			return strings.TrimSpace(v) != "(none)"
		}
	}
	return false
}

// Resolve follows a metapackage (linux-image-amd64) to the package that it
// depends on and that begins with prefix (linux-image-).
func (a *Archive) Resolve(ctx context.Context, meta, prefix string) (string, error) {
	var stale error
	for attempt := 0; ; attempt++ {
		out, err := run(ctx, "", "apt-cache", "depends", "--important", meta)
		if err == nil {
			for _, line := range strings.Split(out, "\n") {
				if p, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); ok && strings.HasPrefix(p, prefix) {
					return p, nil
				}
			}
			err = fmt.Errorf("no dependency %s…", prefix)
		}
		if attempt > 0 {
			return "", fmt.Errorf("resolve package %s: %w", meta, errors.Join(err, stale))
		}
		stale = a.Update(ctx)
	}
}

// Unpack downloads the packages and unpacks them below dir, without installing
// anything. A package that is unknown, or whose version has left the archive
// since the lists were fetched, is tried once more with fresh lists.
func (a *Archive) Unpack(ctx context.Context, dir string, packages ...string) error {
	tmp, err := os.MkdirTemp(dir, "deb-")
	if err != nil {
		return fmt.Errorf("unpack packages: %w", err)
	}
	defer os.RemoveAll(tmp)
	a.logf("apt-get download %s", strings.Join(packages, " "))
	args := append([]string{"download", "-q"}, packages...)
	if _, err := run(ctx, tmp, "apt-get", args...); err != nil {
		stale := a.Update(ctx)
		if _, err = run(ctx, tmp, "apt-get", args...); err != nil {
			return fmt.Errorf("download packages: %w", errors.Join(err, stale))
		}
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil || len(debs) < len(packages) {
		return fmt.Errorf("download packages %s: got %d files", strings.Join(packages, " "), len(debs))
	}
	for _, deb := range debs {
		if _, err := run(ctx, "", "dpkg-deb", "--extract", deb, dir); err != nil {
			return fmt.Errorf("unpack %s: %w", filepath.Base(deb), err)
		}
	}
	return nil
}

// run runs a command without a terminal and returns its output; an error
// carries the end of what it said.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "APT_LISTCHANGES_FRONTEND=none")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		said := strings.TrimSpace(errs.String())
		if len(said) > 800 {
			said = "… " + said[len(said)-800:]
		}
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said)
	}
	return out.String(), nil
}

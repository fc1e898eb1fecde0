package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Requirement is something that must be on the machine.
type Requirement struct {
	// What names it for people: "libvirtd".
	What string
	// Files are alternatives; a name without a slash is looked for in the
	// directories for programs, anything else may be a glob pattern.
	Files []string
	// Packages are alternatives too: the first that the archive has. Releases
	// move files between packages.
	Packages []string
}

// programDirs are searched whatever PATH says: sbin is often not in a user's.
var programDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// present tells whether one of the requirement's files exists below root.
func (r Requirement) present(root string) bool {
	for _, f := range r.Files {
		if strings.Contains(f, "/") {
			if m, _ := filepath.Glob(filepath.Join(root, f)); len(m) > 0 {
				return true
			}
			continue
		}
		for _, dir := range programDirs {
			if _, err := os.Stat(filepath.Join(root, dir, f)); err == nil {
				return true
			}
		}
	}
	return false
}

// Missing returns the requirements that this machine does not meet.
func Missing(reqs []Requirement) []Requirement { return missingBelow("/", reqs) }

func missingBelow(root string, reqs []Requirement) []Requirement {
	var missing []Requirement
	for _, r := range reqs {
		if !r.present(root) {
			missing = append(missing, r)
		}
	}
	return missing
}

// MissingError says what is missing and how to get it.
type MissingError struct {
	Missing []Requirement
	// Packages to install, in the order of Missing, each once.
	Packages []string
}

// Command is the line that installs the packages.
func (e *MissingError) Command() string {
	return "apt-get install -y --no-install-recommends " + strings.Join(e.Packages, " ")
}

func (e *MissingError) Error() string {
	parts := make([]string, len(e.Missing))
	for i, r := range e.Missing {
		parts[i] = fmt.Sprintf("%s (package %s)", r.What, strings.Join(r.Packages, " or "))
	}
	return fmt.Sprintf("missing on this machine: %s; install with: %s", strings.Join(parts, ", "), e.Command())
}

// Ensure installs what is missing when we are root; otherwise, or when there is
// no apt-get, it returns a *MissingError. A second call does nothing.
func (a *Archive) Ensure(ctx context.Context, reqs []Requirement) error {
	missing := Missing(reqs)
	if len(missing) == 0 {
		return nil
	}
	if _, err := os.Stat("/usr/bin/apt-get"); err != nil || geteuid() != 0 {
		return &MissingError{Missing: missing, Packages: firstPackages(missing)}
	}
	began := time.Now()
	packages, err := a.choose(ctx, missing)
	if err != nil {
		return err
	}
	if err := a.install(ctx, packages); err != nil {
		// Lists can be older than the archive: the versions they name are gone.
		stale := a.Update(ctx)
		if err := a.install(ctx, packages); err != nil {
			return errors.Join(err, stale)
		}
	}
	if still := Missing(reqs); len(still) > 0 {
		return fmt.Errorf("install packages: apt-get succeeded, yet: %w",
			&MissingError{Missing: still, Packages: firstPackages(still)})
	}
	a.logf("installed in %.0f s", time.Since(began).Seconds())
	return nil
}

// choose picks for each requirement the first package that the archive knows,
// with one refresh of the lists if one isn't known.
func (a *Archive) choose(ctx context.Context, missing []Requirement) ([]string, error) {
	var stale error
	for attempt := 0; ; attempt++ {
		packages, unknown := pick(missing, func(p string) bool { return a.known(ctx, p) })
		if len(unknown) == 0 {
			return packages, nil
		}
		if attempt > 0 {
			return nil, fmt.Errorf("choose packages: the archive has none for %s: %w", strings.Join(unknown, ", "),
				errors.Join(&MissingError{Missing: missing, Packages: firstPackages(missing)}, stale))
		}
		// A list that cannot be fetched, of a source we need nothing from, does
		// not matter if all is known afterwards.
		stale = a.Update(ctx)
	}
}

// pick returns the chosen packages, each once, and the requirements for which
// none is known.
func pick(missing []Requirement, known func(string) bool) (packages, unknown []string) {
	seen := map[string]bool{}
	for _, r := range missing {
		found := false
		for _, p := range r.Packages {
			if !seen[p] && !known(p) {
				continue
			}
			found = true
			if !seen[p] {
				seen[p] = true
				packages = append(packages, p)
			}
			break
		}
		if !found {
			unknown = append(unknown, r.What)
		}
	}
	return packages, unknown
}

func firstPackages(missing []Requirement) []string {
	packages, _ := pick(missing, func(string) bool { return true })
	return packages
}

// install runs apt-get install. A machine that runs systemd could be made to
// start or enable a service of a package that comes along, so a policy-rc.d
// forbids that for the time of this one call, unless the machine has its own.
func (a *Archive) install(ctx context.Context, packages []string) error {
	a.logf("apt-get install %s", strings.Join(packages, " "))
	undo, err := forbidServices("/usr/sbin/policy-rc.d")
	if err != nil {
		return fmt.Errorf("install packages: %w", err)
	}
	defer undo()
	args := append([]string{"install", "-y", "-q", "--no-install-recommends",
		"-o", "Dpkg::Options::=--force-confold", "-o", "DPkg::Lock::Timeout=300"}, packages...)
	if _, err := run(ctx, "", "apt-get", args...); err != nil {
		return fmt.Errorf("install packages: %w", err)
	}
	return nil
}

const servicePolicy = "#!/bin/sh\n# Installing packages for a throwaway libvirt host starts no service.\nexit 101\n"

// forbidServices writes a policy-rc.d that answers "forbidden by policy" (101)
// and returns how to take it away again. The machine's own policy is respected;
// ours, left by a run that was killed, is taken over.
func forbidServices(path string) (undo func(), err error) {
	if old, err := os.ReadFile(path); err == nil && string(old) != servicePolicy {
		return func() {}, nil
	}
	if err := os.WriteFile(path, []byte(servicePolicy), 0o755); err != nil {
		return nil, err
	}
	return func() { os.Remove(path) }, nil
}

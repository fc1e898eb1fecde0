package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// moment is a guest at one moment: what shows later that nobody touched it.
type moment struct {
	machine host.Machine
	report  host.Report
}

func (d *demo) observe(ctx context.Context, name string) (m moment, err error) {
	if m.report, err = d.host.GuestReport(ctx, name, 2*time.Minute); err != nil {
		return m, err
	}
	m.machine, err = d.host.Domain(ctx, name)
	return m, err
}

// untouched proves that a guest is the one of an earlier moment.
func (d *demo) untouched(ctx context.Context, name string, before moment, after string) error {
	now, err := d.observe(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case now.machine != before.machine:
		return fmt.Errorf("%s was touched: %+v, then %+v", name, before.machine, now.machine)
	case now.report.BootID != before.report.BootID, now.report.Uptime <= before.report.Uptime:
		return fmt.Errorf("%s was touched: boot %s up %.1f s, then boot %s up %.1f s", name, before.report.BootID, before.report.Uptime, now.report.BootID, now.report.Uptime)
	}
	d.proved(fmt.Sprintf("%s: the guest %s was not touched", after, name),
		fmt.Sprintf("QEMU's pid %d, domain id %d, guest's uptime %.1f s, then %.1f s", now.machine.PID, now.machine.ID, before.report.Uptime, now.report.Uptime))
	return nil
}

// plan runs a plan and says whether it has changes.
func (d *demo) plan(ctx context.Context) (out string, changes bool, err error) {
	out, err = d.run(ctx, nil, "plan", "-detailed-exitcode")
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 {
		return out, true, nil
	}
	return out, false, err
}

func (d *demo) emptyPlan(ctx context.Context, when string) error {
	return d.step("plan again", func() (string, error) {
		out, changes, err := d.plan(ctx)
		if err != nil {
			return "", err
		}
		if changes {
			return "", fmt.Errorf("the plan is not empty:\n%s", out)
		}
		d.proofs = append(d.proofs, [2]string{when + ": the next plan is empty", "plan -detailed-exitcode = 0"})
		return "no changes", nil
	})
}

func (d *demo) apply(ctx context.Context, what string) error {
	return d.step(what, func() (string, error) {
		out, err := d.run(ctx, nil, "apply", "-auto-approve")
		for _, line := range strings.Split(out, "\n") {
			if strings.HasPrefix(line, "Apply complete!") {
				return strings.TrimPrefix(line, "Apply complete! "), err
			}
		}
		return lastLine(out), err
	})
}

// machines writes the variable of the example; an empty text leaves the
// example's own.
func (d *demo) machines(text string) error {
	file := filepath.Join(d.dir, "two-machines", "demo.auto.tfvars")
	if text == "" {
		return os.Remove(file)
	}
	return os.WriteFile(file, []byte("machines = {\n"+text+"}\n"), 0o600)
}

func (d *demo) create(ctx context.Context) error {
	fmt.Println("   examples/two-machines: a pool, a NAT network, and two machines with disks, seeds and autostart.")
	if err := d.apply(ctx, "apply, and wait for the machines' addresses"); err != nil {
		return err
	}
	for _, name := range []string{"router", "database"} {
		err := d.step("ask "+name+" itself", func() (string, error) {
			address := ""
			report, err := d.host.WaitReport(ctx, name, 2*time.Minute, func(r host.Report) bool {
				for mac, ip := range r.NICs {
					address = ip + " on " + mac
					return ip != ""
				}
				return false
			})
			if err != nil {
				return "", err
			}
			if report.Hostname != name {
				return "", fmt.Errorf("its host name is %q: the seed was not read", report.Hostname)
			}
			d.proofs = append(d.proofs, [2]string{name + " runs, read its seed and has an address", fmt.Sprintf("host name %s, %s", report.Hostname, address)})
			return fmt.Sprintf("host name %s, %s, up %.1f s", report.Hostname, address, report.Uptime), nil
		})
		if err != nil {
			return err
		}
	}
	return d.emptyPlan(ctx, "after the first apply")
}

func (d *demo) outOfBand(ctx context.Context) error {
	before, err := d.observe(ctx, "router")
	if err != nil {
		return err
	}
	err = d.step("virsh autostart --disable router", func() (string, error) {
		_, err := d.host.Virsh(ctx, "autostart", "--disable", "router")
		return "", err
	})
	if err != nil {
		return err
	}
	if err := d.expectPlan(ctx, "router", "autostart", "effect", "fields"); err != nil {
		return err
	}
	if err := d.apply(ctx, "apply it"); err != nil {
		return err
	}
	info, err := d.host.Virsh(ctx, "dominfo", "router")
	if err != nil {
		return err
	}
	if !strings.Contains(info, "Autostart:      enable") {
		return fmt.Errorf("autostart is still off:\n%s", info)
	}
	d.proved("autostart, changed by hand, was seen and put back", "virsh dominfo: Autostart: enable")
	return d.untouched(ctx, "router", before, "autostart")
}

// expectPlan runs a plan that must have changes and prints the lines of it
// that have one of the words.
func (d *demo) expectPlan(ctx context.Context, object string, words ...string) error {
	var lines []string
	err := d.step("plan", func() (string, error) {
		out, changes, err := d.plan(ctx)
		if err != nil {
			return "", err
		}
		if !changes {
			return "", fmt.Errorf("the plan is empty, though %s was changed", object)
		}
		lines = pick(out, words)
		for _, line := range strings.Split(out, "\n") {
			if strings.HasPrefix(line, "Plan:") {
				return line, nil
			}
		}
		return "", nil
	})
	quote(lines)
	return err
}

// pick returns the changed lines of a plan that have one of the words; of a
// list it takes what is added.
func pick(plan string, words []string) []string {
	var out []string
	inFields := false
	for _, line := range strings.Split(plan, "\n") {
		text := strings.TrimSpace(line)
		if inFields {
			if strings.HasPrefix(text, "]") {
				inFields = false
			} else if strings.HasPrefix(text, "+") {
				out = append(out, "      "+text)
			}
			continue
		}
		for _, w := range words {
			if (strings.HasPrefix(text, "~ "+w) || strings.HasPrefix(text, "+ "+w)) && strings.Contains(text, "=") {
				out = append(out, text)
				inFields = strings.HasSuffix(text, "[")
				break
			}
		}
	}
	return out
}

func (d *demo) liveAndPending(ctx context.Context) error {
	before, err := d.observe(ctx, "database")
	if err != nil {
		return err
	}
	fmt.Println("   The database gets another title and more memory.")
	if err := d.machines("  router   = { title = \"Router of the lab\" }\n  database = { title = \"Database, second floor\", memory = 320 }\n"); err != nil {
		return err
	}
	if err := d.expectPlan(ctx, "database", "title", "memory", "effect", "fields"); err != nil {
		return err
	}
	if err := d.apply(ctx, "apply it"); err != nil {
		return err
	}
	xml, err := d.host.Virsh(ctx, "dumpxml", "database")
	if err != nil {
		return err
	}
	if !strings.Contains(xml, "<title>Database, second floor</title>") {
		return fmt.Errorf("the running guest has no new title:\n%s", xml)
	}
	d.proved("the title is in the running guest", "virsh dumpxml, live")
	state, err := d.run(ctx, nil, "state", "show", `libvirt_domain.machine["database"]`)
	if err != nil {
		return err
	}
	if !strings.Contains(state, `state               = "pending"`) || !strings.Contains(state, `"memory",`) {
		return fmt.Errorf("the memory is not pending:\n%s", state)
	}
	d.proved("the memory waits for a power cycle, and says so", `status.state = "pending", status.pending = ["memory"]`)
	if err := d.untouched(ctx, "database", before, "title and memory"); err != nil {
		return err
	}
	return d.emptyPlan(ctx, "while the memory is pending")
}

func (d *demo) removedBlock(ctx context.Context) error {
	before, err := d.observe(ctx, "database")
	if err != nil {
		return err
	}
	fmt.Println("   The database's line is deleted from the configuration.")
	if err := d.machines("  router = { title = \"Router of the lab\" }\n"); err != nil {
		return err
	}
	var message []string
	err = d.step("plan", func() (string, error) {
		out, err := d.run(ctx, nil, "plan")
		if err == nil {
			return "", fmt.Errorf("the plan would destroy a protected machine:\n%s", out)
		}
		message = refusal(out, "Refusing to destroy protected")
		if message == nil {
			return "", err
		}
		return "refused", nil
	})
	if err != nil {
		return err
	}
	quote(message)
	d.proved("a removed block destroys nothing", "the plan fails, and names the object and the ways out")
	return d.untouched(ctx, "database", before, "removed block")
}

// whereabouts are the lines in which a core says where an error comes from.
var whereabouts = regexp.MustCompile(`^(with |on .* line \d+|\d+: )`)

// refusal cuts one error out of what a core printed.
func refusal(out, summary string) []string {
	var lines []string
	for _, line := range strings.Split(out, "\n") {
		text := strings.TrimSpace(strings.Trim(line, "│╷╵ "))
		switch {
		case strings.Contains(text, summary):
			lines = []string{text}
		case lines != nil && (strings.HasPrefix(text, "Error:") || strings.HasPrefix(text, "Warning:")):
			return lines
		case lines != nil && text != "" && !whereabouts.MatchString(text):
			lines = append(lines, text)
		}
	}
	return lines
}

func (d *demo) wayOut(ctx context.Context) error {
	database, err := d.observe(ctx, "database")
	if err != nil {
		return err
	}
	router, err := d.observe(ctx, "router")
	if err != nil {
		return err
	}
	line := strings.Replace(settled, " }", ", protect = false }", 1)
	if err := d.machines("  router   = { title = \"Router of the lab\" }\n" + line); err != nil {
		return err
	}
	if err := d.apply(ctx, "put the line back with protect = false, and apply"); err != nil {
		return err
	}
	if err := d.untouched(ctx, "database", database, "protect = false"); err != nil {
		return err
	}
	if err := d.machines("  router = { title = \"Router of the lab\" }\n"); err != nil {
		return err
	}
	if err := d.apply(ctx, "remove the line, and apply"); err != nil {
		return err
	}
	list, err := d.host.Virsh(ctx, "list", "--all", "--name")
	if err != nil {
		return err
	}
	if strings.Contains(list, "database") {
		return fmt.Errorf("the database is still there:\n%s", list)
	}
	d.proved("released, the machine goes when its block goes", "virsh list --all")
	return d.untouched(ctx, "router", router, "removing the other machine")
}

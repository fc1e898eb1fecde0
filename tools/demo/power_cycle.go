package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// How the database is written after each part of this act. Its 320 MiB wait
// from the act before.
const (
	router  = "  router   = { title = \"Router of the lab\" }\n"
	live    = "  database = { title = \"Database, second floor\", memory = 320, balloon = 192, cpus = 2 }\n"
	settled = "  database = { title = \"Database, second floor\", memory = 320, balloon = 192, cpus = 2, machine_type = \"pc-q35-7.1\" }\n"
)

func (d *demo) powerCycle(ctx context.Context) error {
	before, err := d.observe(ctx, "database")
	if err != nil {
		return err
	}
	fmt.Println("   The database gives some memory back and gets a second CPU.")
	if err := d.machines(router + live); err != nil {
		return err
	}
	if err := d.expectPlan(ctx, "database", "current_memory", "vcpu_current", "effect", "fields"); err != nil {
		return err
	}
	if err := d.apply(ctx, "apply it"); err != nil {
		return err
	}
	err = d.step("ask the database itself", func() (string, error) {
		report, err := d.host.WaitReport(ctx, "database", time.Minute, func(r host.Report) bool {
			return r.CPUs == 2 && r.MemKiB < before.report.MemKiB-30<<10
		})
		if err != nil {
			return "", err
		}
		d.proofs = append(d.proofs, [2]string{"memory and CPUs changed in the running guest",
			fmt.Sprintf("it has %d CPUs and %d MiB; before, %d and %d", report.CPUs, report.MemKiB>>10, before.report.CPUs, before.report.MemKiB>>10)})
		return fmt.Sprintf("%d CPUs, %d MiB", report.CPUs, report.MemKiB>>10), nil
	})
	if err != nil {
		return err
	}
	fmt.Println("   It is to have an older machine type, which no running guest can take.")
	if err := d.machines(router + settled); err != nil {
		return err
	}
	if err := d.expectPlan(ctx, "database", "type_machine", "effect", "fields"); err != nil {
		return err
	}
	if err := d.apply(ctx, "apply it"); err != nil {
		return err
	}
	if err := d.status(ctx, "database", "the machine type waits too", `state\s+= "pending"`, `pending\s+= \[\s+"memory",\s+"os.type_machine",\s+\]`); err != nil {
		return err
	}
	if err := d.untouched(ctx, "database", before, "memory, CPUs and machine type"); err != nil {
		return err
	}
	return d.cycle(ctx, "database")
}

// cycle has somebody switch a machine off and on, and shows what the next
// refresh says.
func (d *demo) cycle(ctx context.Context, name string) error {
	err := d.step("virsh shutdown, then start: somebody uses a maintenance window", func() (string, error) {
		if _, err := d.host.Virsh(ctx, "shutdown", name); err != nil {
			return "", err
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			state, err := d.host.Virsh(ctx, "domstate", name)
			if err != nil || time.Now().After(deadline) {
				return "", fmt.Errorf("%s does not shut down: %w", name, err)
			}
			if strings.Contains(state, "shut off") {
				break
			}
		}
		_, err := d.host.Virsh(ctx, "start", name)
		return "", err
	})
	if err != nil {
		return err
	}
	err = d.step("ask "+name+" itself", func() (string, error) {
		report, err := d.host.WaitReport(ctx, name, time.Minute, func(r host.Report) bool { return r.CPUs == 2 && r.MemKiB < 192<<10 })
		return fmt.Sprintf("up %.1f s, %d CPUs, %d MiB", report.Uptime, report.CPUs, report.MemKiB>>10), err
	})
	if err != nil {
		return err
	}
	if err := d.emptyPlan(ctx, "after the power cycle"); err != nil {
		return err
	}
	if err := d.apply(ctx, "refresh (an apply that changes nothing)"); err != nil {
		return err
	}
	return d.status(ctx, name, "the power cycle, made by somebody else, settled it", `state\s+= "settled"`, `pending\s+= \[\]`, `settled\s+= true`)
}

// status proves what the state says of a machine.
func (d *demo) status(ctx context.Context, name, statement string, patterns ...string) error {
	state, err := d.run(ctx, nil, "state", "show", fmt.Sprintf("libvirt_domain.machine[%q]", name))
	if err != nil {
		return err
	}
	var found []string
	for _, p := range patterns {
		line := regexp.MustCompile(p).FindString(state)
		if line == "" {
			return fmt.Errorf("the status of %s does not say %s:\n%s", name, p, state)
		}
		found = append(found, strings.Join(strings.Fields(line), " "))
	}
	d.proved(statement, "status: "+strings.Join(found, ", "))
	return nil
}

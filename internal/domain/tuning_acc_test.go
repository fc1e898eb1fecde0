package domain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// The host's processor has no counter cmt, which libvirt finds out last of all.
func TestAccDomain_tuningIsTakenBack(t *testing.T) {
	acctest.Case(t, "an update of a running guest's tuning that fails in the end leaves guest and definition with what they had: CPU time, pins, I/O threads, limits of memory and disks")
	if why := two(t, "nodecpumap", `CPUs present: *(\d+)`, "CPU"); why != "" {
		acctest.Unavailable(t, why)
	}
	const name = "tuned"
	before := machine{name: name, more: `
  io_thread_i_ds = { io_threads = [{ id = 1, pool_min = 1, pool_max = 8 }, { id = 2, pool_min = 2, pool_max = 9 }] }
  cpu_tune = {
    shares = 512, period = 50000, quota = 40000, global_quota = 90000
    vcpu_pin = [{ vcpu = 0, cpu_set = "0" }], emulator_pin = { cpu_set = "0" }, io_thread_pin = [{ io_thread = 2, cpu_set = "0" }]
  }
  memory_tune   = { soft_limit = 524288 }
  block_io_tune = { weight = 200 }
  perf          = { events = [{ name = "page_faults", enabled = "yes" }] }`}.config(t)
	after := machine{name: name, more: `
  io_thread_i_ds = { io_threads = [{ id = 1, pool_min = 3, pool_max = 7 }, { id = 3 }] }
  cpu_tune = {
    shares = 2048, period = 90000, quota = 20000, global_quota = 50000
    vcpu_pin = [{ vcpu = 0, cpu_set = "1" }], emulator_pin = { cpu_set = "0-1" }, io_thread_pin = [{ io_thread = 3, cpu_set = "1" }]
  }
  memory_tune   = { soft_limit = 262144 }
  block_io_tune = { weight = 300 }
  perf          = { events = [{ name = "page_faults", enabled = "no" }, { name = "cmt", enabled = "yes" }] }`}.config(t)
	documents := func() string { return lab.Virsh(t, "dumpxml", name) + lab.Virsh(t, "dumpxml", "--inactive", name) }
	var guest *lab.Guest
	var was string
	lab.Steps(t, lab.Apply(before), resource.TestStep{
		PreConfig:   func() { guest, was = lab.Observe(t, name), documents() },
		Config:      after,
		ExpectError: lab.Says("cmt", "The previous definition is in force again, and what ran runs"),
	}, resource.TestStep{
		PreConfig: func() {
			guest.Untouched(t, name)
			if now := documents(); now != was {
				t.Errorf("guest and definition lost %q and got %q", missing(was, now), missing(now, was))
			}
			if !strings.Contains(was, "<shares>512</shares>") || strings.Count(was, "<iothreadpin iothread='2' cpuset='0'/>") != 2 {
				t.Errorf("the guest was not tuned:\n%s", was)
			}
		},
		Config: before, PlanOnly: true,
	})
}

// missing are the lines of a text that another lacks.
func missing(of, in string) (lines []string) {
	there := strings.Split(in, "\n")
	for _, line := range strings.Split(of, "\n") {
		if !slices.Contains(there, line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

package domain_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

const seaBIOS = "/usr/share/seabios/bios-256k.bin"

// firmwareRows are what the guest starts from before there is a system: the
// firmware, its variables, its menu, the tables that it shows, and the command
// line of a kernel that needs none of them.
func firmwareRows(t testing.TB) []bounce.Row {
	one, two := copyOf(t, seaBIOS, "one.bin"), copyOf(t, seaBIOS, "two.bin")
	dir := t.TempDir()
	blank := filepath.Join(dir, "blank.fd")
	if err := os.WriteFile(blank, make([]byte, 128<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := func(file string) string {
		return fmt.Sprintf(`{ template = %q, nv_ram = %q }`, blank, filepath.Join(dir, file))
	}
	efi := bounce.Fields{"os.firmware": `"efi"`, "os.firmware_info": `{ features = [{ name = "secure-boot", enabled = "no" }] }`}
	serial := func(number string) string {
		return `[{ smbios = { system = { entry = [{ name = "serial", value = "` + number + `" }] } } }]`
	}
	kernel := lab.Host(t).Guest().Cmdline
	return withACPI([]bounce.Row{
		{
			// The BIOS has no use for variables, and starts from flash as UEFI does.
			Name: "loader-and-kernel",
			Base: bounce.Fields{
				"os.loader": fmt.Sprintf("%q", one), "os.loader_type": `"pflash"`, "os.loader_readonly": `"yes"`, "os.nv_ram": variables("one.fd"),
				"os.sm_bios": `{ mode = "sysinfo" }`, "sys_info": serial("LAB-1"),
			},
			Steps: []bounce.Step{{
				Change: bounce.Fields{
					"os.loader": fmt.Sprintf("%q", two), "os.nv_ram": variables("two.fd"), "os.cmdline": fmt.Sprintf("%q", kernel+" lab.row=1"), "sys_info": serial("LAB-2"),
					"os.boot_menu": `{ enable = "yes", timeout = "500" }`, "os.bios": `{ use_serial = "yes", reboot_timeout = 500 }`,
				},
				Boot: bounce.Leaves{
					"os/loader": two, "os/nvram": filepath.Join(dir, "two.fd"), "os/cmdline": kernel + " lab.row=1", "sysinfo/system/entry": "LAB-2",
					"os/bootmenu/@enable": "yes", "os/bootmenu/@timeout": "500", "os/bios/@useserial": "yes", "os/bios/@rebootTimeout": "500",
				},
				Want: bounce.Waits(
					"os.loader", "os.nv_ram.nv_ram", "os.cmdline", "os.boot_menu.enable", "os.boot_menu.timeout", "os.bios.use_serial", "os.bios.reboot_timeout",
					"sys_info[0].smbios.system.entry[0].value",
				),
			}},
		},
		{
			// Taken out of the configuration, the firmware stays: an installed system
			// may not boot with another. The kernel that all have is of the BIOS.
			Name: "firmware", Only: []bounce.Policy{bounce.AllowLive, bounce.AllowNextBoot},
			Steps: []bounce.Step{{
				Change: efi, Boot: bounce.Leaves{"os/@firmware": "efi", "os/firmware/feature/@name": "secure-boot", "os/firmware/feature/@enabled": "no"},
				Want: bounce.Waits("os.firmware", "os.firmware_info.features[secure-boot]"),
			}},
			Back: bounce.Wants{bounce.AllowLive: {}, bounce.AllowNextBoot: {Effect: "none", Pending: []string{"os.firmware"}}}, Stays: []string{"os/@firmware"},
		},
	})
}

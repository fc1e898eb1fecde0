package storage_test

import (
	"os"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

func TestAccVolume_notListed(t *testing.T) {
	core := acctest.Case(t, "a volume that its pool does not list leaves the state only if it is gone: not if the pool of that name is another one now, not if its file is there; a plan refreshes no pool, an apply makes what is gone and deletes what is there")
	dir, other := vault(t, "absent"), t.TempDir()
	p := lab.StartProject(t, core, in(t, "absent", "v", "capacity = 65536"), "LIBVIRT_PROTECT=false")
	p.Must(0, "apply", "-auto-approve")
	move := func(target string) {
		lab.Virsh(t, "pool-destroy", "absent")
		lab.Virsh(t, "pool-undefine", "absent")
		lab.Virsh(t, "pool-define-as", "absent", "dir", "--target", target)
		lab.Virsh(t, "pool-start", "absent")
	}
	rename := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(other)
	p.Refuses([]string{`Pool "absent" of volume "v" is another one now`, dir + "/v", other}, "plan")
	move(dir)
	p.Must(0, "plan", "-detailed-exitcode")

	rename(dir+"/v", other+"/v")
	lab.Virsh(t, "pool-refresh", "absent")
	rename(other+"/v", dir+"/v")
	p.Tells([]string{`Pool "absent" does not list volume "v"`, "virsh pool-refresh absent"}, "plan", "-detailed-exitcode")
	p.Must(0, "destroy", "-auto-approve")
	if _, err := os.Stat(dir + "/v"); !os.IsNotExist(err) {
		t.Errorf("the volume is still there: %v", err)
	}

	p.Must(0, "apply", "-auto-approve")
	if err := os.Remove(dir + "/v"); err != nil { // libvirt still lists it
		t.Fatal(err)
	}
	p.Must(2, "plan", "-detailed-exitcode")
	p.Must(0, "apply", "-auto-approve")
	if _, err := os.Stat(dir + "/v"); err != nil {
		t.Error(err)
	}
	p.Must(0, "destroy", "-auto-approve")
}

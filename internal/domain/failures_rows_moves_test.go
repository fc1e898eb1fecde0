package domain_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// moving is a pool of a case with an old volume that holds data, and names of
// volumes that a disk is moved to.
type moving struct{ pool, dir string }

func newMoving(t testing.TB, pool string) moving {
	t.Helper()
	m := moving{pool, hosted(t)}
	virsh("pool-define-as "+pool+" dir --target "+m.dir, "pool-start "+pool, "vol-create-as "+pool+" old.raw 2M --format raw")(t, "")
	t.Cleanup(func() { virsh("pool-destroy "+pool, "pool-undefine "+pool)(t, "") })
	fill(t, m.path("old.raw"), 2<<20)
	return m
}

func (m moving) path(name string) string { return m.dir + "/" + name }

// file and volume are disks vda by the two ways to name a volume.
func (m moving) file(name, format string) string {
	return m.disk("vda", fmt.Sprintf("file = { file = %q }", m.path(name)), format)
}

func (m moving) volume(name, format string) string {
	return m.disk("vda", fmt.Sprintf("volume = { pool = %q, volume = %q }", m.pool, name), format)
}

func (m moving) disk(target, source, format string) string {
	return fmt.Sprintf(`{ source = { %s }, driver = { name = "qemu", type = %q }, target = { dev = %q, bus = "virtio" } }`, source, format, target)
}

// create makes an empty volume.
func (m moving) create(name, format string) action {
	return virsh("vol-create-as " + m.pool + " " + name + " 2M --format " + format)
}

// convert writes the data of the old volume to another one.
func (m moving) convert(name, format string) action {
	return func(t testing.TB, _ string) {
		t.Helper()
		if out, err := lab.Host(t).Exec(context.Background(), "qemu-img", "convert", "-U", "-f", "raw", "-O", format, m.path("old.raw"), m.path(name)); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		virsh("pool-refresh "+m.pool)(t, "")
	}
}

func (m moving) to(disk string) func(machine) machine {
	return func(on machine) machine {
		on.devices = "disks = [" + disk + "]"
		return on
	}
}

// rows are moves of the disk that are refused until the data are there, by any
// way to name it.
func (m moving) rows() []failure {
	refused := func(name string) []string {
		return []string{`Disk vda of domain "`, `would be empty`, "devices.disks[vda]", m.path("old.raw") + ", which holds data", m.path(name) + ", which is empty", "Nothing was changed", "create.content", "in one apply"}
	}
	return []failure{
		{what: "a disk is led to nothing", change: m.to(m.file("nothing.raw", "raw")), mend: m.convert("nothing.raw", "raw"),
			says: []string{"file " + m.path("nothing.raw") + " does not exist", "devices.disks[vda].source.file.file"}},
		{what: "a disk is led to an empty file", prepare: m.create("empty.raw", "raw"), change: m.to(m.file("empty.raw", "raw")), says: refused("empty.raw"), mend: m.convert("empty.raw", "raw")},
		{what: "a disk is led to an empty volume", prepare: m.create("empty.qcow2", "qcow2"), change: m.to(m.volume("empty.qcow2", "qcow2")), says: refused("empty.qcow2"), mend: m.convert("empty.qcow2", "qcow2")},
	}
}

func TestAccFailures_movedDisks(t *testing.T) {
	core := acctest.Case(t, "a disk of a running guest is not led away from its data: neither to nothing nor to an empty volume; to one that holds data it is")
	m := newMoving(t, "moves")
	then := map[string]string{"status.state": "pending"}
	rows := m.rows()
	for i := range rows {
		rows[i].then = then
	}
	failures{on: m.to(m.file("old.raw", "raw"))(machine{name: "moving", more: pluggable}), rows: rows}.run(t, core)
}

func TestAccFailures_movedDisksOfRestarts(t *testing.T) {
	core := acctest.Case(t, "a disk of a guest that an apply may restart is not led away from its data")
	m := newMoving(t, "moves-restart")
	failures{on: m.to(m.volume("old.raw", "raw"))(machine{name: "moving-restart", more: pluggable + "\n" + mayRestart}), rows: m.rows()[:2]}.run(t, core)
}

func TestAccDomain_emptyDisksThatAreMeant(t *testing.T) {
	acctest.Case(t, "an empty disk can be had in two applies, two disks can change places, and a volume can be named in another way")
	const name = "meant"
	m := newMoving(t, name)
	m.create("empty.raw", "raw")(t, name)
	on := func(disks ...string) string {
		off := machine{name: name, off: true}
		for i, d := range disks {
			if i > 0 {
				off.devices += ", "
			}
			off.devices += d
		}
		off.devices = "disks = [" + off.devices + "]"
		return off.config(t)
	}
	file := func(target, volume string) string {
		return m.disk(target, fmt.Sprintf("file = { file = %q }", m.path(volume)), "raw")
	}
	lab.Steps(t,
		lab.Apply(on(file("vda", "old.raw"), file("vdb", "empty.raw"))),
		lab.Apply(on(file("vda", "empty.raw"), file("vdb", "old.raw"))), // they change places
		lab.Apply(on(file("vda", "old.raw"))),                           // from an empty one to data
		lab.Apply(on(m.volume("old.raw", "raw"))),                       // the same by another name
		lab.Apply(on()),
		lab.Apply(on(file("vda", "empty.raw"))),
	)
	if got, err := os.ReadFile(m.path("old.raw")); err != nil || string(got[:4]) != "data" {
		t.Errorf("the old volume: %.4q, %v", got, err)
	}
}

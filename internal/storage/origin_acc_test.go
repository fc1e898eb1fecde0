package storage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func TestAccVolume_otherImage(t *testing.T) {
	core := acctest.Case(t, "another image URL for ten machines that exist is a warning each and no change; with on_change = \"replace\" it is a replacement, which protect refuses")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte(r.URL.Path), 10000))
	}))
	defer server.Close()
	const n = 10
	config := func(image, more string, count int) string {
		return lab.Config(t, fmt.Sprintf(`
resource "libvirt_volume" "root" {
  count  = %[3]d
  name   = "root-${count.index}"
  pool   = "default"
  create = { content = { url = "%[1]s" } %[2]s }
}
resource "libvirt_domain" "machine" {
  count   = %[3]d
  name    = "machine-${count.index}"
  type    = "qemu"
  memory  = 32768
  vcpu    = 1
  running = false
  os      = { type = "hvm", type_arch = "x86_64" }
  devices = {
    disks = [{ source = { volume = { pool = "default", volume = libvirt_volume.root[count.index].name } }, target = { dev = "vda", bus = "virtio" } }]
  }
}`, server.URL+image, more, count))
	}
	holds := func(text string) {
		t.Helper()
		got, err := os.ReadFile(volumeFile(t, "root-0"))
		if err != nil || !bytes.HasPrefix(got, []byte(text)) {
			t.Errorf("the volume begins with %.20q, %v", got, err)
		}
	}
	p := lab.StartProject(t, core, config("/one", "", n))
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")

	p.Write(config("/two", "", n))
	out := p.Must(0, "plan", "-detailed-exitcode")
	for i := range n {
		if told := fmt.Sprintf(`The plan for volume "root-%d" needs a second look`, i); strings.Count(out, told) != 1 {
			t.Errorf("it does not say once: %s\n%s", told, out)
		}
	}
	if !lab.Says("create acts once", "on_change = \"replace\"").MatchString(out) || !strings.Contains(out, "No changes") {
		t.Errorf("another plan:\n%s", out)
	}
	holds("/one")

	p.Write(config("/two", `, on_change = "replace"`, n))
	p.Refuses([]string{`Refusing to replace protected volume "root-`, "create"}, "plan")
	lax := p.With("LIBVIRT_PROTECT=false")
	if out := lax.Must(2, "plan", "-detailed-exitcode"); !lab.Says("create", "forces replacement").MatchString(out) || !lab.Says("10 to add", "10 to destroy").MatchString(out) ||
		!lab.Says(`Volume "root-7" is to be replaced, and is in use`, "domain machine-7 (defined), disk vda", "its destruction is refused").MatchString(out) {
		t.Errorf("another plan:\n%s", out)
	}
	// The machines need their volumes: nothing is taken away under them.
	lax.Refuses([]string{`Refusing to destroy volume "root-`, "domain machine-"}, "apply", "-auto-approve")
	holds("/one")

	p.Write(config("/one", "", n))
	p.Must(0, "plan", "-detailed-exitcode") // taken back, all is as it was
	lax.Must(0, "destroy", "-auto-approve")

	alone := func(image, more string) string {
		return volumeConfig(t, "root-0", fmt.Sprintf("create = { content = { url = %q } %s }", server.URL+image, more))
	}
	p.Write(alone("/one", ""))
	p.Must(0, "apply", "-auto-approve")
	p.Write(alone("/two", `, on_change = "replace"`))
	lax.Must(0, "apply", "-auto-approve")
	holds("/two")
	p.Must(0, "plan", "-detailed-exitcode")
	lax.Must(0, "destroy", "-auto-approve")
}

// onDisk is how many bytes a file takes.
func onDisk(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

func TestAccVolume_clone(t *testing.T) {
	acctest.Case(t, "the host copies a volume: whole, sparse, in the format asked for, larger; not while a running guest writes to it, and never into a half volume")
	dir := vault(t, "golden")
	data := append(make([]byte, 24<<20), []byte("the end of it")...)
	copy(data[8<<20:], bytes.Repeat([]byte("data"), 10000))
	put := func(name string, content []byte) {
		if err := os.WriteFile(dir+"/"+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(dir+"/"+name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		for at := 0; at < len(content); at += 4096 { // what is zero stays a hole
			block := content[at:min(at+4096, len(content))]
			if len(bytes.Trim(block, "\x00")) > 0 {
				if _, err := f.WriteAt(block, int64(at)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := f.Truncate(int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	clone := func(from, more string) string {
		return volumeConfig(t, "copy", "create = { clone = { "+from+" } }\n  "+more)
	}
	const golden = `pool = "golden", volume = "golden"`
	holds := func(format string, size int) resource.TestCheckFunc {
		return func(*terraform.State) error {
			raw := t.TempDir() + "/raw"
			if _, err := lab.Host(t).Exec(context.Background(), "qemu-img", "convert", "-f", format, "-O", "raw", volumeFile(t, "copy"), raw); err != nil {
				return err
			}
			got, err := os.ReadFile(raw)
			if err == nil && (len(got) < size || len(got) >= size+512 || !bytes.Equal(got[:len(data)], data) || len(bytes.Trim(got[len(data):], "\x00")) > 0) {
				err = fmt.Errorf("%d bytes, or other content", len(got))
			}
			if used := onDisk(t, volumeFile(t, "copy")); used > 4<<20 {
				err = fmt.Errorf("it takes %d bytes on the disk", used)
			}
			return err
		}
	}
	none := func() { absent(t, "vol-list default", "copy") }
	lab.Steps(t,
		resource.TestStep{PreConfig: func() { put("golden", data) }, Config: clone(`pool = "golden", volume = "other"`, ""), ExpectError: lab.Says(`There is no volume "other"`, "No volume was made")},
		// A file that libvirt has not seen yet.
		resource.TestStep{PreConfig: none, Config: clone(golden, ""), ConfigPlanChecks: lab.EmptyAfterwards, Check: resource.ComposeAggregateTestCheckFunc(holds("raw", len(data)), resource.TestCheckResourceAttr(vol, "status.capacity", fmt.Sprint(len(data))))},
		// It acts once.
		behind(t, planned(clone(`pool = "golden", volume = "other"`, "")), "vol-create-as golden busy 1M"),
		resource.TestStep{Config: clone(`pool = "golden", volume = "other"`, ""), Destroy: true},

		lab.Apply(clone(`path = "`+dir+`/golden"`, `capacity = 33554432`), holds("raw", 32<<20)),
		resource.TestStep{Config: clone(golden, ""), Destroy: true},
		lab.Apply(clone(golden, "capacity = 33554432\n  target = { format = { type = \"qcow2\" } }"), holds("qcow2", 32<<20)),
		resource.TestStep{Config: clone(golden, ""), Destroy: true},
		// An overlay is copied with all that is below it.
		behind(t, lab.Apply(clone(`pool = "golden", volume = "over"`, ""), holds("qcow2", 25166848), shows(t, "vol-dumpxml copy default", "<format type='qcow2'/>"), func(*terraform.State) error {
			if xml := lab.Virsh(t, "vol-dumpxml", "copy", "default"); strings.Contains(xml, "backingStore") {
				return fmt.Errorf("it lies over something: %s", xml)
			}
			return nil
		}), "vol-create-as golden over 25166848 --format qcow2 --backing-vol golden --backing-vol-format raw"),
		resource.TestStep{Config: clone(golden, ""), Destroy: true},

		resource.TestStep{PreConfig: func() {
			define(t, "scribe", "", disk(dir+"/golden", "raw", "vda"))
			lab.Virsh(t, "start", "scribe")
		}, Config: clone(golden, ""), ExpectError: lab.Says(`Refusing to clone volume "copy": a running guest writes to what it is cloned from`, "domain scribe (running), disk vda")},
		resource.TestStep{PreConfig: func() {
			none()
			lab.Virsh(t, "destroy", "scribe")
		}, Config: clone(golden, ""), ConfigPlanChecks: lab.EmptyAfterwards, Check: holds("raw", len(data))},
		resource.TestStep{Config: clone(golden, ""), Destroy: true},
		// The backing file is gone: what the host began is not left.
		behind(t, resource.TestStep{Config: clone(`pool = "golden", volume = "over"`, ""), ExpectError: lab.Says(`Could not create volume "copy"`, "Clone to volume", "qemu-img")}, "undefine scribe", "vol-delete golden golden"),
	)
	none()
	if _, err := os.Stat(volumeFile(t, "copy")); err == nil {
		t.Error("a half volume is left behind")
	}
}

func TestAccVolume_cloneOfWhatChanges(t *testing.T) {
	acctest.Case(t, "what was written to while the host copied it is no clone; what was only given another mode is one")
	h := connect(t)
	k := storage.NewVolume(func() *virt.Host { return h })
	ctx := context.Background()
	dir := vault(t, "golden")
	file := dir + "/golden"
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "pool-refresh", "golden")
	planned := object(map[string]any{"name": "copy", "pool": "golden", "create.clone.pool": "golden", "create.clone.volume": "golden"})
	for _, c := range []struct {
		meanwhile func() error
		says      []string
	}{
		{func() error {
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte("late"), 4096)
			}
			return errors.Join(err, f.Close())
		}, []string{`Volume "copy" was cloned from what was written to meanwhile`, "the time of its last change was", "No volume was left behind"}},
		{func() error { return os.Chmod(file, 0o640) }, nil},
	} {
		remove := virttest.Install(h, virttest.Observe(virttest.Op("clone to volume"), func(virt.Call) {
			if err := c.meanwhile(); err != nil {
				t.Error(err)
			}
		}))
		done, err := k.Create(ctx, planned, tree.NullValue)
		remove()
		if c.says != nil {
			says(t, err, c.says...)
			absent(t, "vol-list golden", "copy")
		} else if err != nil || !done.Exists {
			t.Error(err)
		}
	}
}

func TestAccVolume_misbehavingServers(t *testing.T) {
	acctest.Case(t, "a server that cuts off and goes on from there, or announces less than the image has: the volume is right, or there is none")
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	var asked []string
	mux := http.NewServeMux()
	mux.HandleFunc("/resumes", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"one"`)
		asked = append(asked, r.Header.Get("Range"))
		if r.Header.Get("Range") == "" {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:len(data)/2])
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", len(data)/2, len(data)-1, len(data)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(data[len(data)/2:])
	})
	mux.HandleFunc("/lies", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(data)-5000, data)
			_ = conn.Close()
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	body := func(path string) string {
		return volumeConfig(t, "served", content(server.URL+path, fmt.Sprintf(", checksum = %q", sum)))
	}
	lab.Steps(t,
		resource.TestStep{Config: body("/lies"), ExpectError: lab.Says("has the checksum", "not "+sum)},
		resource.TestStep{PreConfig: func() { absent(t, "vol-list default", "served") }, Config: body("/resumes"), ConfigPlanChecks: lab.EmptyAfterwards, Check: func(*terraform.State) error {
			got, err := os.ReadFile(volumeFile(t, "served"))
			if err == nil && !bytes.Equal(got, data) || len(asked) != 2 || asked[1] != fmt.Sprintf("bytes=%d-", len(data)/2) {
				err = fmt.Errorf("%d bytes after %q", len(got), asked)
			}
			return err
		}},
		// The same content from another mirror is no change, whatever is to be done about one.
		resource.TestStep{Config: strings.Replace(body("/elsewhere"), "create = {", `create = { on_change = "replace",`, 1), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
	)
}

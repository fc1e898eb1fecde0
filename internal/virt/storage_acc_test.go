package virt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// volume makes a volume in the host's own pool that is gone after the test.
func volume(t testing.TB, h *virt.Host, xml string) *virt.Volume {
	t.Helper()
	ctx := context.Background()
	p := got(h.LookupPoolByName(ctx, "default"))(t)
	v := got(p.CreateVolume(ctx, xml, virt.CreateFlags{}))(t)
	t.Cleanup(func() {
		if err := v.Delete(ctx, virt.DeleteFlags{}); err != nil && !virt.IsNotFound(err) {
			t.Error(err)
		}
	})
	return v
}

// image is a file of a size in bytes, all hole but for three pieces of data.
func image(t testing.TB, size int64) (f *os.File, sum uint32) {
	t.Helper()
	f = got(os.CreateTemp(t.TempDir(), "image"))(t)
	t.Cleanup(func() { _ = f.Close() })
	try(t, f.Truncate(size))
	r := rand.New(rand.NewSource(1))
	piece := make([]byte, size/64)
	for _, at := range []int64{0, size/3 + 12345, size - size/16} {
		r.Read(piece)
		got(f.WriteAt(piece, at))(t)
	}
	rewind(t, f)
	h := checksum()
	got(io.Copy(h, f))(t)
	rewind(t, f)
	return f, h.Sum32()
}

func rewind(t testing.TB, f *os.File) {
	t.Helper()
	got(f.Seek(0, io.SeekStart))(t)
}

// allocated is how many bytes a file takes on the disk.
func allocated(t testing.TB, path string) int64 {
	t.Helper()
	info := got(os.Stat(path))(t)
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

// checksum is a fast one: a gibibyte of zeros has to pass.
func checksum() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

func sum(t testing.TB, v *virt.Volume, length uint64) uint32 {
	t.Helper()
	h := checksum()
	try(t, v.Download(context.Background(), h, 0, length))
	return h.Sum32()
}

func TestAccVolume_sparseUpload(t *testing.T) {
	acctest.Case(t, "a sparse image of 1 GiB is uploaded and downloaded within seconds and stays sparse on the disk")
	ctx := context.Background()
	h := shared(t)
	f, wanted := image(t, 1<<30)
	for name, src := range map[string]io.Reader{"file": f, "reader": struct{ io.Reader }{f}} {
		rewind(t, f)
		v := volume(t, h, volumeXML("sparse-"+name, 1<<30, ""))
		start := time.Now()
		var done uint64
		try(t, v.Upload(ctx, src, 0, 1<<30, virt.Sparse, virt.Progress(func(n uint64) { done = n })))
		took := time.Since(start)
		t.Logf("%s: uploaded in %s, %d KiB on the disk", name, took, allocated(t, v.Path())/1024)
		if took > 20*time.Second { // without holes it takes about ten times that of a reader
			t.Errorf("%s: the upload took %s", name, took)
		}
		if done != 1<<30 {
			t.Errorf("%s: the progress ended at %d", name, done)
		}
		if n := allocated(t, v.Path()); n > 64<<20 {
			t.Errorf("%s: %d bytes on the disk for 48 MiB of data", name, n)
		}
		if got := sum(t, v, 0); got != wanted {
			t.Errorf("%s: another content", name)
		}
	}
	v := got(got(h.LookupPoolByName(ctx, "default"))(t).LookupVolume(ctx, "sparse-file"))(t)
	copied := got(os.CreateTemp(t.TempDir(), "copy"))(t)
	defer copied.Close()
	start := time.Now()
	try(t, v.Download(ctx, copied, 0, 0, virt.Sparse))
	t.Logf("downloaded in %s", time.Since(start))
	if n := allocated(t, copied.Name()); n > 64<<20 {
		t.Errorf("%d bytes on the disk for 48 MiB of data", n)
	}
	rewind(t, copied)
	sum := checksum()
	if n := got(io.Copy(sum, copied))(t); n != 1<<30 || sum.Sum32() != wanted {
		t.Errorf("%d bytes, or another content", n)
	}
}

// libvirt skips holes: what was under them would stay, and the file would end
// with the last one.
func TestAccVolume_sparseUploadOverOldContent(t *testing.T) {
	acctest.Case(t, "a sparse upload onto a volume that holds something leaves nothing of it under the holes, and its capacity as it was")
	ctx := context.Background()
	h := shared(t)
	f, wanted := image(t, 16<<20)
	full := `<volume><name>full</name><capacity>16777216</capacity></volume>` // allocated at once
	qcow2 := volumeXML("qcow2", 16<<20, `<target><format type="qcow2"/></target>`)
	for name, c := range map[string]struct {
		xml      string
		old      int
		capacity uint64
	}{
		"new, larger":          {volumeXML("larger", 64<<20, ""), 0, 64 << 20},
		"new, smaller":         {volumeXML("smaller", 1<<20, ""), 0, 16 << 20},
		"old content":          {volumeXML("old", 16<<20, ""), 16 << 20, 16 << 20},
		"old content, larger":  {volumeXML("older", 32<<20, ""), 32 << 20, 32 << 20},
		"allocated":            {full, 0, 16 << 20},
		"metadata of an image": {qcow2, 0, 16 << 20},
	} {
		v := volume(t, h, c.xml)
		if c.old > 0 {
			try(t, v.Upload(ctx, bytes.NewReader(bytes.Repeat([]byte("old!"), c.old/4)), 0, 0))
		}
		before := allocated(t, v.Path())
		rewind(t, f)
		try(t, v.Upload(ctx, f, 0, 0, virt.Sparse))
		if got := sum(t, v, 16<<20); got != wanted {
			t.Errorf("%s: something of the old content is left", name)
		}
		if got := uint64(got(os.Stat(v.Path()))(t).Size()); got != c.capacity {
			t.Errorf("%s: the file has %d bytes, want %d", name, got, c.capacity)
		}
		if name == "allocated" && allocated(t, v.Path()) < before {
			t.Errorf("what was allocated at once is not any more")
		}
	}
}

func TestAccVolume_uploadParts(t *testing.T) {
	acctest.Case(t, "a part of a volume is written and read, and the rest stays")
	ctx := context.Background()
	v := volume(t, shared(t), volumeXML("parts", 1<<20, ""))
	try(t, v.Upload(ctx, strings.NewReader(strings.Repeat("a", 1<<20)), 0, 0))
	for _, options := range [][]virt.StreamOption{nil, {virt.Sparse}} {
		try(t, v.Upload(ctx, strings.NewReader("bbbb and more"), 1000, 4, options...))
		try(t, v.Upload(ctx, bytes.NewReader(make([]byte, 300<<10)), 400<<10, 0, options...))
		wanted := bytes.Repeat([]byte("a"), 1<<20)
		copy(wanted[1000:], "bbbb")
		copy(wanted[400<<10:], make([]byte, 300<<10))
		var whole, part bytes.Buffer
		try(t, v.Download(ctx, &whole, 0, 0))
		try(t, v.Download(ctx, &part, 998, 8))
		if !bytes.Equal(whole.Bytes(), wanted) || part.String() != "aabbbbaa" {
			t.Errorf("got %d bytes, and %q", whole.Len(), part.String())
		}
	}
}

func TestAccVolume_streamsFail(t *testing.T) {
	acctest.Case(t, "a stream that breaks, for whatever reason, is an error that says which, and the connection goes on")
	ctx := context.Background()
	h := shared(t)
	v := volume(t, h, volumeXML("broken", 64<<20, ""))
	torn := errors.New("torn")
	err := v.Upload(ctx, io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), tearing{torn}), 0, 0)
	want(t, err, `upload to volume "broken"`, "read the content", "torn")
	if !errors.Is(err, torn) {
		t.Error("the reader's error is lost")
	}
	want(t, v.Upload(ctx, strings.NewReader("short"), 0, 100), `upload to volume "broken"`, "ended after 5 of 100 bytes")
	ended, cancel := context.WithCancel(ctx)
	err = v.Upload(ended, endless{}, 0, 0, virt.Progress(func(done uint64) {
		if done > 8<<20 {
			cancel()
		}
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	err = v.Download(ctx, refusingWriter{torn}, 0, 0)
	want(t, err, `download volume "broken"`, "write the content")
	if !errors.Is(err, torn) {
		t.Error("the writer's error is lost")
	}
	try(t, v.Upload(ctx, strings.NewReader("fine"), 0, 0))
	if n := h.Connections(); n != 1 {
		t.Errorf("%d connections, want the one that was there before", n)
	}
	try(t, v.Delete(ctx, virt.DeleteFlags{}))
	if err := v.Upload(ctx, strings.NewReader("late"), 0, 0); !virt.IsNotFound(err) {
		t.Errorf("to a volume that is gone: %v", err)
	}
}

type tearing struct{ err error }

func (r tearing) Read([]byte) (int, error) { return 0, r.err }

type refusingWriter struct{ err error }

func (w refusingWriter) Write([]byte) (int, error) { return 0, w.err }

type endless struct{}

func (endless) Read(b []byte) (int, error) { b[0] = 1; return len(b), nil }

func TestAccVolume_diskFull(t *testing.T) {
	acctest.Case(t, "a disk of the host that is full is an error of the upload")
	ctx := context.Background()
	there := lab.Host(t)
	h := shared(t)
	dir := filepath.Join(there.Dir(), "small")
	got(there.Exec(ctx, "mkdir", dir))(t)
	got(there.Exec(ctx, "mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", dir))(t)
	p := got(h.DefinePool(ctx, poolXML("small", dir)))(t)
	defer func() {
		try(t, p.Stop(ctx))
		try(t, p.Undefine(ctx))
		got(there.Exec(ctx, "umount", dir))(t)
	}()
	try(t, p.Start(ctx))
	for _, options := range [][]virt.StreamOption{nil, {virt.Sparse}} {
		v := got(p.CreateVolume(ctx, volumeXML("too-big", 16<<20, ""), virt.CreateFlags{}))(t)
		err := v.Upload(ctx, bytes.NewReader(bytes.Repeat([]byte("x"), 16<<20)), 0, 0, options...)
		want(t, err, `upload to volume "too-big"`, "No space left on device")
		if virt.IsLost(err) || virt.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
		try(t, v.Delete(ctx, virt.DeleteFlags{}))
	}
}

func TestAccVolume_daemonKilledDuringAnUpload(t *testing.T) {
	acctest.Case(t, "a daemon that is killed during an upload is an error, and the upload is not begun again by itself")
	ctx := context.Background()
	there := own(t)
	h := open(t, virt.Options{URI: there.URI()})
	v := volume(t, h, volumeXML("half", 64<<20, ""))
	var once sync.Once
	var uploads atomic.Int32
	defer h.AddHook(virt.Hook{Before: func(c virt.Call) error {
		if c.Op == "upload to volume" {
			uploads.Add(1)
		}
		return nil
	}})()
	err := v.Upload(ctx, endless{}, 0, 0, virt.Progress(func(done uint64) {
		if done > 16<<20 {
			once.Do(func() { signal(t, there, "KILL") })
		}
	}))
	want(t, err, `upload to volume "half"`, "lost during the call")
	if !virt.IsLost(err) || uploads.Load() != 1 {
		t.Errorf("lost %v, %d uploads: %v", virt.IsLost(err), uploads.Load(), err)
	}
	answers(t, h)
	p := got(h.LookupPoolByName(ctx, "default"))(t)
	if !got(p.IsActive(ctx))(t) {
		try(t, p.Start(ctx))
	}
	got(v.XML(ctx))(t)
}

func TestAccPool_busy(t *testing.T) {
	acctest.Case(t, "a pool in which another client makes a volume is waited for")
	ctx := context.Background()
	there := lab.Host(t)
	h := shared(t)
	h.SetPatience(5*time.Second, time.Minute, time.Minute)
	p := got(h.LookupPoolByName(ctx, "default"))(t)
	source := volume(t, h, volumeXML("source", 256<<20, ""))
	random := make([]byte, 64<<20)
	rand.New(rand.NewSource(2)).Read(random)
	try(t, source.Upload(ctx, bytes.NewReader(random), 0, 0))
	t.Cleanup(func() {
		if v, err := p.LookupVolume(ctx, "converted"); err == nil {
			try(t, v.Delete(ctx, virt.DeleteFlags{}))
		}
	})
	file := filepath.Join(t.TempDir(), "volume.xml")
	try(t, os.WriteFile(file, []byte(volumeXML("converted", 256<<20, `<target><format type="qcow2"/></target>`)), 0o600))
	caught := stopping(t, there, "qemu-img")
	cloned := make(chan error)
	go func() {
		_, err := there.Virsh(ctx, "vol-create-from", "default", file, "source", "--inputpool", "default")
		cloned <- err
	}()
	pid := caught()
	var busy atomic.Int32
	defer h.AddHook(virt.Hook{After: func(_ virt.Call, err error) error {
		if err != nil && busy.Add(1) == 3 {
			_, contErr := there.Exec(ctx, "sh", "-c", "kill -CONT "+pid)
			if contErr != nil {
				t.Error(contErr)
			}
		}
		return err
	}})()
	rec := virttest.Record(h)
	defer rec.Stop()
	try(t, p.Refresh(ctx))
	try(t, <-cloned)
	if n := len(rec.Writes()); busy.Load() < 3 || n != int(busy.Load())+1 {
		t.Errorf("libvirt refused %d times, and was asked %d times", busy.Load(), n)
	}
}

// stopping waits inside the host for a program, and stops it as soon as it
// runs. The loop is one process in there: asked for from outside, each look
// takes longer than a short program on a busy machine.
func stopping(t testing.TB, there *host.Host, program string) (pid func() string) {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		const loop = `i=0; while [ $i -lt 60000 ]; do p=$(pidof "$1") && kill -STOP $p && echo $p && exit 0; i=$((i+1)); done; exit 1`
		out, err := there.Exec(context.Background(), "sh", "-c", loop, "sh", program)
		if err != nil {
			out = ""
		}
		found <- strings.TrimSpace(out)
	}()
	return func() string {
		t.Helper()
		p := <-found
		if p == "" {
			t.Fatalf("%s did not run", program)
		}
		return p
	}
}

func TestAccPool_parallel(t *testing.T) {
	acctest.Case(t, "many volumes are made, filled and removed at once in one pool, while another client refreshes it")
	ctx := context.Background()
	there := lab.Host(t)
	h := shared(t)
	p := got(h.LookupPoolByName(ctx, "default"))(t)
	stop := make(chan struct{})
	var other sync.WaitGroup
	refreshes := 0
	other.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := there.Virsh(ctx, "pool-refresh", "default"); err == nil { // it may be refused, too
					refreshes++
				}
			}
		}
	})
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			name := fmt.Sprintf("seed-%d", i)
			content := bytes.Repeat([]byte{byte('a' + i)}, 2<<20)
			v, err := p.CreateVolume(ctx, volumeXML(name, 2<<20, ""), virt.CreateFlags{})
			if err == nil {
				err = v.Upload(ctx, bytes.NewReader(content), 0, 2<<20)
			}
			var back bytes.Buffer
			if err == nil {
				err = v.Download(ctx, &back, 0, 0)
			}
			if err == nil && !bytes.Equal(back.Bytes(), content) {
				err = errors.New("another content")
			}
			if err == nil {
				err = v.Delete(ctx, virt.DeleteFlags{})
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	close(stop)
	other.Wait()
	if refreshes == 0 {
		t.Error("the other client never got a word in")
	}
}

func TestAccPool_ofQEMUsHost(t *testing.T) {
	acctest.Case(t, "pools and volumes of a real daemon: what is missing, what is not started, what exists already")
	ctx := context.Background()
	h := shared(t)
	dir := filepath.Join(t.TempDir(), "deep", "pool")
	p := got(h.DefinePool(ctx, poolXML("life", dir)))(t)
	defer func() { _ = p.Stop(ctx); try(t, p.Undefine(ctx)) }()
	err := p.Start(ctx)
	want(t, err, `start pool "life"`, "No such file or directory")
	try(t, p.Build(ctx, virt.BuildFlags{}))
	try(t, p.Start(ctx))
	v := got(p.CreateVolume(ctx, volumeXML("disk", 1<<20, ""), virt.CreateFlags{}))(t)
	if _, err := p.CreateVolume(ctx, volumeXML("disk", 1<<20, ""), virt.CreateFlags{}); !virt.HasCode(err, virt.ErrVolumeExists) {
		t.Errorf("the same name again: %v", err)
	}
	if v.Path() != filepath.Join(dir, "disk") || v.Key() != v.Path() {
		t.Errorf("path %q, key %q", v.Path(), v.Key())
	}
	try(t, v.Resize(ctx, 2<<20, virt.ResizeFlags{}))
	if i := got(v.Info(ctx))(t); i.Capacity != 2<<20 || i.Allocation > 1<<20 {
		t.Errorf("got %+v", i)
	}
	if err := v.Resize(ctx, 1<<20, virt.ResizeFlags{}); err == nil {
		t.Error("it shrank without being told")
	}
	try(t, v.Resize(ctx, 4<<20, virt.ResizeFlags{Allocate: true}))
	if i := got(v.Info(ctx))(t); i.Allocation < 2<<20 {
		t.Errorf("got %+v", i)
	}
	clone := got(p.CloneVolume(ctx, volumeXML("clone", 4<<20, ""), v, virt.CreateFlags{}))(t)
	for _, inactive := range []bool{true, false} {
		if xml := got(p.XML(ctx, inactive))(t); !strings.Contains(xml, dir) {
			t.Errorf("inactive %v: %s", inactive, xml)
		}
	}
	try(t, p.Stop(ctx))
	for what, err := range map[string]error{
		"by name": second(p.LookupVolume(ctx, "disk")), "by key": second(h.LookupVolume(ctx, v.Key())), "by path": second(h.LookupVolumeByPath(ctx, v.Path())),
		"XML": second(v.XML(ctx)), "delete": v.Delete(ctx, virt.DeleteFlags{}), "upload": v.Upload(ctx, strings.NewReader("x"), 0, 0),
	} {
		if virt.IsNotFound(err) || !virt.HasCode(err, virt.ErrOperationInvalid) || !strings.Contains(fmt.Sprint(err), "not active") {
			t.Errorf("%s, with the pool stopped: %v", what, err)
		}
	}
	if _, err := os.Stat(v.Path()); err != nil {
		t.Error(err)
	}
	try(t, p.Start(ctx))
	try(t, clone.Delete(ctx, virt.DeleteFlags{}))
	try(t, v.Delete(ctx, virt.DeleteFlags{}))
	try(t, p.Stop(ctx))
	try(t, p.Delete(ctx))
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

package guest

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCpio(t *testing.T) {
	var b bytes.Buffer
	c := &cpioWriter{w: &b}
	c.add("dir", modeDir|0o755, nil)
	c.add("dir/hello", modeFile|0o644, []byte("hello"))
	c.add("link", modeLink|0o777, []byte("dir/hello"))
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if b.Len()%4 != 0 {
		t.Errorf("%d bytes are no multiple of four", b.Len())
	}
	// An independent reader: name, mode and data of each entry.
	var got []string
	for data := b.Bytes(); len(data) > 0; {
		var f [13]uint32
		if string(data[:6]) != "070701" {
			t.Fatalf("no magic at %d", b.Len()-len(data))
		}
		for i := range f {
			if _, err := fmt.Sscanf(string(data[6+8*i:14+8*i]), "%x", &f[i]); err != nil {
				t.Fatal(err)
			}
		}
		nameEnd := 110 + int(f[11])
		name := string(data[110 : nameEnd-1])
		start := (nameEnd + 3) &^ 3
		end := start + int(f[6])
		got = append(got, fmt.Sprintf("%s %o %s", name, f[1], data[start:end]))
		data = data[(end+3)&^3:]
	}
	want := []string{"dir 40755 ", "dir/hello 100644 hello", "link 120777 dir/hello", "TRAILER!!! 0 "}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestCpio_firstErrorSticks(t *testing.T) {
	c := &cpioWriter{w: fullDisk{}}
	c.add("a", modeFile, []byte("x"))
	c.add("b", modeFile, []byte("y"))
	if err := c.close(); err == nil || err.Error() != "disk full" {
		t.Errorf("got %v", err)
	}
}

func TestPack_sameInputSameBytes(t *testing.T) {
	files := map[string][]byte{"bin/a": []byte("a"), "lib/x/y": []byte("y"), "init": []byte("#!")}
	first, err := pack(files, map[string]bool{"init": true})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := pack(files, map[string]bool{"init": true})
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("differs, %v", err)
		}
	}
}

func TestClosure(t *testing.T) {
	index := map[string]string{}
	graph := map[string]module{
		"virtio":      {},
		"virtio_ring": {depends: []string{"virtio"}},
		"virtio_net":  {depends: []string{"virtio_ring", "failover"}, aliases: []string{"virtio:d00000001v*"}},
		"failover":    {},
		"sd_mod":      {softdeps: []string{"crc", "not_built"}},
		"crc":         {},
		"broken":      {depends: []string{"absent"}},
	}
	for name := range graph {
		index[name] = name + ".ko"
	}
	load := func(path string) (module, error) { return graph[strings.TrimSuffix(path, ".ko")], nil }

	mods, err := closure([]string{"virtio_net", "built_in", "sd_mod"}, index, load)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, m := range mods {
		order = append(order, m.name)
	}
	if got, want := strings.Join(order, " "), "virtio virtio_ring failover virtio_net crc sd_mod"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
	deps := string(depFile(mods))
	for _, line := range []string{"virtio_net.ko: failover.ko virtio_ring.ko virtio.ko\n", "virtio.ko:\n"} {
		// Either order of the direct ones is right; virtio must come last.
		alt := strings.Replace(line, "failover.ko virtio_ring.ko", "virtio_ring.ko failover.ko", 1)
		if !strings.Contains(deps, line) && !strings.Contains(deps, alt) {
			t.Errorf("no line %q in\n%s", line, deps)
		}
	}
	if got := string(aliasFile(mods)); got != "alias virtio:d00000001v* virtio_net\n" {
		t.Errorf("aliases %q", got)
	}

	if _, err := closure([]string{"broken"}, index, load); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("a missing dependency gives %v", err)
	}
	fail := func(string) (module, error) { return module{}, errors.New("unreadable") }
	if _, err := closure([]string{"crc"}, index, fail); err == nil || !strings.Contains(err.Error(), "crc: unreadable") {
		t.Errorf("an unreadable module gives %v", err)
	}
}

func TestModuleIndex(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"a/virtio-rng.ko", "b/xhci_pci.ko.xz", "b/README"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755)
		os.WriteFile(filepath.Join(dir, f), nil, 0o644)
	}
	index, err := moduleIndex(dir)
	want := map[string]string{"virtio_rng": dir + "/a/virtio-rng.ko", "xhci_pci": dir + "/b/xhci_pci.ko.xz"}
	if err != nil || !reflect.DeepEqual(index, want) {
		t.Errorf("got %v, %v", index, err)
	}
	for _, bad := range []string{t.TempDir(), filepath.Join(dir, "absent")} {
		if _, err := moduleIndex(bad); err == nil {
			t.Errorf("no error for %s", bad)
		}
	}
}

func TestParseModinfo_notADriver(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseModinfo(self); err == nil || !strings.Contains(err.Error(), ".modinfo") {
		t.Errorf("a program gives %v", err)
	}
	if _, err := parseModinfo([]byte("text")); err == nil {
		t.Error("text gives no error")
	}
}

// bzImage makes a file with the fields of the boot protocol that we read.
func bzImage(version uint16, payload []byte, offset uint32) []byte {
	bz := make([]byte, 1024+int(offset))
	bz[0x1f1] = 1
	copy(bz[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(bz[0x206:], version)
	binary.LittleEndian.PutUint32(bz[0x248:], offset)
	binary.LittleEndian.PutUint32(bz[0x24c:], uint32(len(payload)))
	return append(bz, payload...)
}

func TestBzImagePayload(t *testing.T) {
	payload := []byte("compressed kernel")
	got, err := bzImagePayload(bzImage(0x20f, payload, 64))
	if err != nil || !bytes.Equal(got, payload) {
		t.Errorf("got %q, %v", got, err)
	}
	for name, bad := range map[string][]byte{
		"not a bzImage": []byte("text"),
		"too old":       bzImage(0x207, payload, 64),
		"outside":       bzImage(0x20f, payload, 64)[:1024+64+4],
	} {
		if _, err := bzImagePayload(bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// elfKernel makes an ELF file of one segment.
func elfKernel(paddr, entry uint64, content []byte, memsz uint64) []byte {
	var b bytes.Buffer
	head := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1,
		Entry: entry, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1}
	copy(head.Ident[:], "\x7fELF\x02\x01\x01")
	binary.Write(&b, binary.LittleEndian, head)
	binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_LOAD), Off: 120, Paddr: paddr, Filesz: uint64(len(content)), Memsz: memsz})
	return append(b.Bytes(), content...)
}

func TestFlatKernel(t *testing.T) {
	bz := bzImage(0x20f, []byte("compressed"), 64)
	content := []byte("kernel code")
	flat, err := flatKernel(bz, elfKernel(0x1000000, 0x1000000, content, 0x2000))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	memory := flat[1024:]
	if got := memory[0x1000000-flatBase:][:len(content)]; !bytes.Equal(got, content) {
		t.Errorf("the kernel's place holds %q", got)
	}
	if got := int(le.Uint32(flat[0x1f4:])) * 16; got != len(memory) {
		t.Errorf("syssize says %d of %d bytes", got, len(memory))
	}
	if got := le.Uint32(flat[0x260:]); got != 0x1002000-flatBase {
		t.Errorf("init_size %#x", got)
	}
	// The page tables map every 2 MiB to themselves.
	for _, at := range []uint64{0, 0x1000000, 3<<30 + 0x200000} {
		entry := le.Uint64(memory[flatPML4-flatBase:])
		entry = le.Uint64(memory[entry&^0xfff-flatBase+8*(at>>30):])
		entry = le.Uint64(memory[entry&^0xfff-flatBase+8*(at>>21&511):])
		if entry != at|0x83 {
			t.Errorf("%#x is mapped by %#x", at, entry)
		}
	}
	for name, bad := range map[string][]byte{
		"no ELF":             []byte("text"),
		"over our own pages": elfKernel(flatBase, flatBase, content, 0x2000000),
		"entry outside":      elfKernel(0x1000000, 0x100, content, 0x2000),
		"huge":               elfKernel(0x1000000, 0x1000000, content, 1<<40),
		"cut":                elfKernel(0x1000000, 0x1000000, content, 0x2000)[:125],
		"too small a memory": elfKernel(0x1000000, 0x1000000, content, 4),
	} {
		if _, err := flatKernel(bz, bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMasterBootRecord(t *testing.T) {
	mbr, err := masterBootRecord([]byte("code"), 2048, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if len(mbr) != 512 || mbr[510] != 0x55 || mbr[511] != 0xaa || string(mbr[:4]) != "code" {
		t.Errorf("bad sector % x", mbr)
	}
	if mbr[446] != 0x80 || mbr[450] != 0xef || binary.LittleEndian.Uint32(mbr[454:]) != 2048 || binary.LittleEndian.Uint32(mbr[458:]) != 1000 {
		t.Errorf("bad partition % x", mbr[446:462])
	}
	if _, err := masterBootRecord(make([]byte, 441), 1, 1); err == nil {
		t.Error("boot code over the partition table")
	}
}

func TestWriteSparse(t *testing.T) {
	data := make([]byte, 300<<10)
	copy(data, "begin")
	copy(data[200<<10:], "middle")
	copy(data[len(data)-3:], "end")
	path := filepath.Join(t.TempDir(), "f")
	if err := writeSparse(path, data); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("content differs, %v", err)
	}
	if err := writeSparse(filepath.Join(path, "x"), data); err == nil {
		t.Error("no error below a file")
	}
}

func TestLibraries(t *testing.T) {
	sh, err := exec.LookPath("ls")
	if err != nil {
		t.Fatal(err)
	}
	libs, err := libraries(sh, "/")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(libs, " ")
	for _, want := range []string{"libc.so.6", "ld-linux"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not in %s", want, all)
		}
	}
	if _, err := libraries(sh, t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not on this machine") {
		t.Errorf("a missing library gives %v", err)
	}
	if _, err := libraries("/etc/passwd", "/"); err == nil {
		t.Error("text has libraries")
	}
}

// The guest's scripts are run by busybox; any POSIX shell can check their
// syntax.
func TestScripts(t *testing.T) {
	for _, name := range []string{"init", "etc/udhcpc.sh", "sbin/shutdown", "etc/acpi/PWRF/00000080"} {
		if out, err := exec.Command("sh", "-n", filepath.Join("rootfs", name)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	var mu sync.Mutex
	holders, most := 0, 0
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			unlock, err := lock(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			holders++
			most = max(most, holders)
			mu.Unlock()
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			holders--
			mu.Unlock()
			unlock()
		})
	}
	wg.Wait()
	if most != 1 {
		t.Errorf("%d at once", most)
	}

	unlock, err := lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a held lock gives %v", err)
	}
	if _, err := lock(ctx, filepath.Join(path, "x")); err == nil {
		t.Error("no error below a file")
	}
}

// A failed build leaves nothing in the cache, neither an image nor a lock.
func TestEnsure_failureLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("PATH", t.TempDir()) // no apt-get, no qemu-img
	if _, err := Ensure(context.Background(), nil); err == nil {
		t.Fatal("built without any program")
	}
	left, err := filepath.Glob(filepath.Join(cache, "*/*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestForgetOld(t *testing.T) {
	cache := t.TempDir()
	long := time.Now().Add(-2 * keep)
	for _, name := range []string{"testhost-old", "testhost-used", "other-old"} {
		dir := filepath.Join(cache, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if !use(filepath.Join(cache, "testhost-used")) || use(filepath.Join(cache, "testhost-absent")) {
		t.Error("wrong answer")
	}
	forgetOld(cache, time.Now().Add(-keep))
	left, _ := filepath.Glob(filepath.Join(cache, "*"))
	if got := fmt.Sprint(left); got != fmt.Sprintf("[%s/other-old %s/testhost-used]", cache, cache) {
		t.Errorf("left %s", got)
	}
}

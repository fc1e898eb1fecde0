package seed

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// everyKind has a content of each kind; the last is as binary as can be.
func everyKind() map[string]Content {
	network := "version: 2\nethernets: {}\n"
	return map[string]Content{
		"cloud-init": CloudInit("#cloud-config\n", "instance-id: a\n", &network), "ignition drive": IgnitionDrive(`{}`), "combustion drive": CombustionDrive("#!/bin/sh\n"),
		"ignition": Ignition(`{}`), "combustion": Combustion("#!/bin/sh\n"), "binary": CloudInit(string(noise(64<<10)), "instance-id: a\n", nil),
	}
}

// noise returns bytes of every value, the same each time.
func noise(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

const (
	storeToFill = "SEED_TEST_STORE"
	maskToUse   = "SEED_TEST_UMASK"
)

// TestFillStore is the other machine of TestSameBytesEverywhere.
func TestFillStore(t *testing.T) {
	dir := os.Getenv(storeToFill)
	if dir == "" {
		return // it is nobody's other machine
	}
	if os.Getenv(maskToUse) == "none" {
		syscall.Umask(0)
	} else {
		syscall.Umask(0o077)
	}
	for name, c := range everyKind() {
		if _, err := open(t, dir).Put(name, c); err != nil {
			t.Error(err)
		}
	}
}

// The same inputs give the same names, bytes and modes, whatever the environment
// is like; that the day makes no difference is TestGolden's to show, whose bytes
// are those of the day on which it was written.
func TestSameBytesEverywhere(t *testing.T) {
	stores := []string{}
	for i, env := range [][]string{
		{"TZ=UTC", "LANG=C", maskToUse + "=none", "HOME=/root", "GOMAXPROCS=1"},
		{"TZ=Pacific/Kiritimati", "LANG=tr_TR.UTF-8", "LC_ALL=tr_TR.UTF-8", maskToUse + "=tight", "HOME=/nonexistent", "SOURCE_DATE_EPOCH=1", "GOMAXPROCS=8", "USER=somebody"},
	} {
		dir := t.TempDir()
		store := filepath.Join(dir, "store")
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFillStore$", "-test.count=1")
		cmd.Dir = dir
		cmd.Env = append(env, storeToFill+"="+store, "TMPDIR="+t.TempDir(), "PATH="+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("environment %d: %v\n%s", i, err, out)
		}
		stores = append(stores, store)
	}
	files, err := os.ReadDir(stores[0])
	if err != nil || len(files) != len(everyKind()) {
		t.Fatalf("%v, %v", files, err)
	}
	if others, err := os.ReadDir(stores[1]); err != nil || len(others) != len(files) {
		t.Errorf("%v, %v", others, err)
	}
	for _, f := range files {
		one, err := os.ReadFile(filepath.Join(stores[0], f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(filepath.Join(stores[1], f.Name()))
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s differs: %v", f.Name(), err)
		}
		for _, store := range stores {
			if m := mode(t, filepath.Join(store, f.Name())); m != 0o600 {
				t.Errorf("%s in %s has the mode %v", f.Name(), store, m)
			}
		}
	}
}

// Content of any bytes, up to the largest, is read back as it is.
func TestAnyBytes(t *testing.T) {
	for name, s := range map[string]Seed{
		"binary":           CloudInit(string(noise(64<<10)), "instance-id: a\n", nil),
		"the largest":      CloudInit(string(noise(MaxContent-len(sampleMeta))), sampleMeta, nil),
		"the largest text": CombustionDrive(string(noise(MaxContent))),
	} {
		got := read(t, mustISO(t, s))
		if got.Digest() != s.Digest() {
			t.Errorf("%s: read back otherwise", name)
		}
		for _, f := range s.Files {
			if data, _ := got.File(f.Name); !bytes.Equal(data, f.Data) {
				t.Errorf("%s: %s differs", name, f.Name)
			}
		}
	}
}

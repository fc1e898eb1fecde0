package seed

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestOpenStore(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		configured string
		env        map[string]string
		want       string // "error: …" for an error that contains …
	}{
		"configured":                  {"/srv/seeds", map[string]string{"XDG_STATE_HOME": "/state", "HOME": "/home/a"}, "/srv/seeds"},
		"configured, not clean":       {"/srv//seeds/", nil, "/srv/seeds"},
		"configured, relative":        {"seeds", nil, filepath.Join(here, "seeds")},
		"configured, home":            {"~/seeds", nil, `error: pathexpand("~/seeds")`},
		"configured, home itself":     {"~", nil, "error: pathexpand"},
		"configured, tilde in name":   {"/srv/~/seeds", nil, "/srv/~/seeds"},
		"state directory":             {"", map[string]string{"XDG_STATE_HOME": "/state", "HOME": "/home/a"}, "/state/terraform-provider-libvirt/seeds"},
		"state directory, relative":   {"", map[string]string{"XDG_STATE_HOME": "state", "HOME": "/home/a"}, "/home/a/.local/state/terraform-provider-libvirt/seeds"},
		"home":                        {"", map[string]string{"HOME": "/home/a"}, "/home/a/.local/state/terraform-provider-libvirt/seeds"},
		"neither":                     {"", nil, "error: set one of them, or seed_store"},
		"neither, home is not a path": {"", map[string]string{"HOME": "."}, "error: set one of them, or seed_store"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := OpenStore(tc.configured, func(name string) string { return tc.env[name] })
			if says, failure := strings.CutPrefix(tc.want, "error: "); failure {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("error %v, want one with %q", err, says)
				}
			} else if err != nil || s.Dir() != tc.want {
				t.Errorf("%q, %v, want %q", s.Dir(), err, tc.want)
			}
		})
	}
}

func TestFileName(t *testing.T) {
	d := sample().Digest()
	long := strings.Repeat("ä", 200)
	seen := map[string]string{}
	for name, want := range map[string]string{
		"web-1":                  "web-1",
		"Web_1.iso@a+b":          "Web_1.iso@a+b",
		"a/b":                    "a=2Fb",
		"../../etc/passwd":       "=2E./../etc/passwd",
		".hidden":                "=2Ehidden",
		"a b":                    "a=20b",
		"a=2Fb":                  "a=3D2Fb",
		"a%2Fb?c#d":              "a=252Fb=3Fc=23d",
		"ä":                      "=C3=A4",
		"a\nb":                   "a=0Ab",
		"-":                      "-",
		strings.Repeat("x", 160): strings.Repeat("x", 160),
		strings.Repeat("x", 161): "",
		long:                     "",
		long + "x":               "",
	} {
		got := FileName(name, sample())
		want = strings.ReplaceAll(want, "/", "=2F")
		if want != "" && got != want+"-sha256-"+d.String()+".iso" {
			t.Errorf("FileName(%q) = %q", name, got)
		}
		if len(got) > 255 || strings.ContainsAny(got, "/%?# \n") {
			t.Errorf("FileName(%q) = %q, of %d bytes", name, got, len(got))
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q share %q", name, other, got)
		}
		seen[got] = name
		back, digest, ok := ParsePath("/srv/seeds/" + got)
		if !ok || digest != d || want != "" && back != name {
			t.Errorf("ParsePath(%q) = %q, %v, %v", got, back, digest, ok)
		}
	}
}

func TestParsePathRefuses(t *testing.T) {
	hex := sample().Digest().String()
	for _, path := range []string{
		"", "/", "web-1.iso", "-sha256-" + hex + ".iso", "web-1-sha256-" + hex, "web-1-sha256-" + hex[1:] + ".iso",
		"web-1-sha256-" + strings.ToUpper(hex) + ".iso", "web-1-sha256-" + hex + ".iso/", "web 1-sha256-" + hex + ".iso",
		"/web-1-sha256-" + hex + ".iso/x", "web-1-sha256-" + hex + ".iso\n", "cloudinit-0123456789abcdef.iso",
	} {
		if name, _, ok := ParsePath(path); ok {
			t.Errorf("ParsePath(%q) = %q", path, name)
		}
	}
	if _, _, ok := ParsePath("web-1-sha256-" + hex + ".iso"); !ok {
		t.Error("a bare file name is refused")
	}
}

func open(t testing.TB, dir string) Store {
	t.Helper()
	s, err := OpenStore(dir, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, s Store, name string, seed Seed) Placed {
	t.Helper()
	p, err := s.Put(name, seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mode(t testing.TB, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestPut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "seeds")
	s, iso := open(t, dir), mustISO(t, sample())
	p := put(t, s, "web-1", sample())
	if want := filepath.Join(dir, "web-1-sha256-"+sample().Digest().String()+".iso"); p.Path != want || !p.Written || p.Size != int64(len(iso)) {
		t.Errorf("%+v, want path %s, %d bytes, written", p, want, len(iso))
	}
	intactNow := func(t *testing.T) {
		t.Helper()
		if b, err := os.ReadFile(p.Path); err != nil || !bytes.Equal(b, iso) {
			t.Errorf("%d bytes, %v, want the image", len(b), err)
		}
		if m := mode(t, p.Path); m != 0o600 {
			t.Errorf("file mode %v, want 0600", m)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("the store holds %v, %v, want one file", entries, err)
		}
	}
	intactNow(t)
	if m := mode(t, dir); m != os.ModeDir|0o700 {
		t.Errorf("directory mode %v, want 0700", m)
	}
	if m := mode(t, filepath.Dir(dir)); m != os.ModeDir|0o700 {
		t.Errorf("mode of the directory above %v, want 0700", m)
	}

	other := filepath.Join(t.TempDir(), "other")
	for name, tc := range map[string]struct {
		spoil   func() error
		written bool
	}{
		"intact":        {func() error { return nil }, false},
		"gone":          {func() error { return os.Remove(p.Path) }, true},
		"store gone":    {func() error { return os.RemoveAll(dir) }, true},
		"empty":         {func() error { return os.Truncate(p.Path, 0) }, true},
		"longer":        {func() error { return os.Truncate(p.Path, p.Size+1) }, true},
		"other content": {func() error { return os.WriteFile(p.Path, at(iso, 50000, 1), 0o600) }, true},
		"public":        {func() error { return os.Chmod(p.Path, 0o644) }, false},
		"link": {func() error {
			return errors.Join(os.WriteFile(other, iso, 0o600), os.Remove(p.Path), os.Symlink(other, p.Path))
		}, true},
		"FIFO": {func() error { return errors.Join(os.Remove(p.Path), syscall.Mkfifo(p.Path, 0o600)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.spoil(); err != nil {
				t.Fatal(err)
			}
			again := put(t, s, "web-1", sample())
			if again.Written != tc.written || again.Path != p.Path || again.Size != p.Size {
				t.Errorf("%+v, want written %v", again, tc.written)
			}
			intactNow(t)
		})
	}
	if b, err := os.ReadFile(other); err != nil || !bytes.Equal(b, iso) {
		t.Errorf("the file that a link pointed to was touched: %v", err)
	}
}

// Two seeds of equal content have a file each, so the end of one leaves the
// other's.
func TestPutKeepsNamesApart(t *testing.T) {
	s := open(t, t.TempDir())
	a, b := put(t, s, "a", sample()), put(t, s, "b", sample())
	if err := Remove(a.Path); err != nil {
		t.Fatal(err)
	}
	if again := put(t, s, "b", sample()); again.Written || again.Path != b.Path {
		t.Errorf("%+v", again)
	}
}

func TestPutTogether(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "seeds"))
	iso := mustISO(t, sample())
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			p, err := s.Put("web-1", sample())
			if err != nil {
				t.Error(err)
				return
			}
			if b, err := os.ReadFile(p.Path); err != nil || !bytes.Equal(b, iso) {
				t.Errorf("%d bytes, %v", len(b), err)
			}
		})
	}
	wait.Wait()
	if entries, err := os.ReadDir(s.Dir()); err != nil || len(entries) != 1 {
		t.Errorf("the store holds %v, %v", entries, err)
	}
}

func TestPutRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if err := os.Mkdir(s.Path("taken", sample()), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		store Store
		name  string
		seed  Seed
		want  []string
	}{
		"directory in the way":     {s, "taken", sample(), []string{s.Path("taken", sample()), "a directory is in the way: remove " + dir}},
		"file instead of a store":  {open(t, file), "a", sample(), []string{file, "no directory: remove it, or set seed_store"}},
		"file on the way to store": {open(t, file+"/seeds"), "a", sample(), []string{file + "/seeds", "no directory: remove it, or set seed_store"}},
		"nowhere":                  {open(t, "/proc/seeds"), "a", sample(), []string{"/proc/seeds", "set seed_store"}},
		"seed that is too large":   {s, "a", CloudInit(strings.Repeat("#", MaxContent+1), "", nil), []string{"larger than 10 MiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.store.Put(tc.name, tc.seed)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
			}
		})
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the failures left %v, %v", entries, err)
	}
}

func TestRemove(t *testing.T) {
	s := open(t, t.TempDir())
	p := put(t, s, "web-1", sample())
	if err := Remove(p.Path); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(p.Path); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if err := Remove(p.Path); err != nil {
		t.Errorf("removing it again: %v", err)
	}
	if err := Remove(filepath.Join(s.Dir(), "file-sha256-x", filepath.Base(p.Path))); err != nil {
		t.Errorf("removing it from a directory that is gone: %v", err)
	}

	foreign := filepath.Join(s.Dir(), "precious.iso")
	if err := os.WriteFile(foreign, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Remove(foreign); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), foreign) {
		t.Errorf("error %v, want ErrForeign", err)
	}
	if err := Remove(filepath.Join(foreign, filepath.Base(p.Path))); err != nil {
		t.Errorf("removing it from below a file: %v", err)
	}
	if _, err := os.Lstat(foreign); err != nil {
		t.Errorf("a foreign file is gone: %v", err)
	}
	if err := os.Mkdir(p.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Remove(p.Path); err == nil || !strings.Contains(err.Error(), "it is a directory") {
		t.Errorf("error %v for a directory", err)
	}
}

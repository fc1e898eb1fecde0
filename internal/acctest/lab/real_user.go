package lab

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Account is another user of this machine than the one who tests: it may read
// neither the files of that one nor speak to the host, unless it is let.
type Account struct{ uid, gid int }

// Nobody is the account without rights that every system has.
func Nobody(t testing.TB) Account {
	t.Helper()
	found, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, uidErr := strconv.Atoi(found.Uid)
	gid, gidErr := strconv.Atoi(found.Gid)
	if uidErr != nil || gidErr != nil {
		t.Fatalf("the user nobody is %+v", found)
	}
	return Account{uid, gid}
}

// Owns makes the account the owner of what is at the paths, and of all below.
func (a Account) Owns(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(name, a.uid, a.gid)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Run runs the core on a project as this user, who is let to speak to the host
// for as long as it runs. The directory of the project is the account's
// afterwards. The other directories that the settings name are the caller's
// business.
func (a Account) Run(p *Project, args ...string) (out string, code int) {
	p.t.Helper()
	h := Host(p.t)
	// A directory that may only be passed does not tell what is in it. The core
	// wants to list that of the provider.
	for dir, mode := range map[string]os.FileMode{h.Dir(): 0o711, filepath.Dir(h.Socket()): 0o711, filepath.Dir(filepath.Dir(p.dir)): 0o711, built.dir: 0o755} {
		defer allow(p.t, dir, mode)()
	}
	a.Owns(p.t, p.dir, h.Socket())
	mine := Account{os.Getuid(), os.Getgid()}
	defer mine.Owns(p.t, h.Socket())
	as := *p
	as.attributes = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
	as.core.Path = copiedCore(p)
	return as.Run(args...)
}

// allow sets the mode of a directory until back is called.
func allow(t testing.TB, dir string, mode os.FileMode) (back func()) {
	t.Helper()
	before, err := os.Stat(dir)
	if err == nil {
		err = os.Chmod(dir, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = os.Chmod(dir, before.Mode().Perm()) }
}

// copiedCore is the core of a project where everybody may run it: it may be
// installed in the home of the one who tests.
func copiedCore(p *Project) string {
	p.t.Helper()
	to := filepath.Join(built.dir, "core-"+p.core.Name)
	if _, err := os.Stat(to); err == nil {
		return to
	}
	content, err := os.ReadFile(p.core.Path)
	if err == nil {
		err = os.WriteFile(to, content, 0o755)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return to
}

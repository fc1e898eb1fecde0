package virt

import (
	"context"
	"crypto/rand"
	"encoding/xml"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

// Presence is what is known of a file of the host.
type Presence int

// The presences. Unknown is the answer to whatever could not be asked.
const (
	Unknown Presence = iota
	Present
	Gone
)

// file is what is known of one.
type file struct {
	presence Presence
	volume   *Volume // nil if no pool that was asked lists it
	below    layer   // as the pool saw it at its last refresh
}

// File says whether a file, block device or directory is there. It is Gone only
// on the word of the host's own daemon, or, where that cannot say, of two things
// that this process sees. The witnesses, from the cheapest to the one that is
// asked last:
//
//  1. This process, if the daemon is on this machine (local). What it sees is
//     taken for there, though the daemon may live in another mount namespace
//     and not see it: then nothing is said, which is better than a false alarm.
//     What it does not see is only suspected.
//  2. The pool in whose directory the file lies, if it is active. Reading the XML
//     of a volume makes libvirt look at the storage, so a file that somebody
//     removed is found. But the list of volumes is that of the pool's last
//     refresh: a file that is not in it may be new (a snapshot's overlay, an
//     image made by hand), so it is only suspected. To refresh the pool would be
//     a write, and can stop it.
//  3. The daemon opens a suspected file (opens). Others are not tried in this way,
//     as each try of a file that is there leaves an error in the daemon's log:
//     of files outside all pools of another machine nothing is known.
//  4. Where the daemon cannot open files on request, a file that this process
//     does not see is gone if it does see the directory.
func (v *View) File(ctx context.Context, name string) Presence {
	return v.file(ctx, name, false).presence
}

// Suspect is File of a file that something else says is not there: the daemon is
// asked if nobody else knows.
func (v *View) Suspect(ctx context.Context, name string) Presence {
	return v.file(ctx, name, true).presence
}

func (v *View) file(ctx context.Context, name string, suspect bool) file {
	if !path.IsAbs(name) {
		return file{}
	}
	at := place{path.Clean(name), suspect}
	f, _ := v.files.get(at, v.writes.Load(), func() (file, error) {
		return patiently(ctx, v, func() file { return v.find(ctx, at.name, suspect) })
	})
	return f
}

// place is what is asked about: a path, or pool:volume.
type place struct {
	name    string
	suspect bool
}

func (v *View) find(ctx context.Context, name string, suspect bool) file {
	unseen := false
	if v.local(ctx) {
		_, err := os.Stat(name)
		if err == nil {
			return file{presence: Present}
		}
		unseen = errors.Is(err, fs.ErrNotExist)
		suspect = suspect || unseen
	}
	listed, volume := v.inPool(ctx, name)
	if volume != nil {
		return v.look(ctx, volume)
	}
	if !suspect && !listed {
		return file{}
	}
	answer, asked := v.opens(ctx, name)
	if !asked && unseen {
		if info, err := os.Stat(path.Dir(name)); err == nil && info.IsDir() {
			answer = Gone
		}
	}
	return file{presence: answer}
}

// FileID tells files of this machine apart, whatever names they have. It can be
// compared.
type FileID struct {
	device, inode, node uint64 // node alone is that of a device
	isDevice            bool
}

// FileID returns what stands at a path, links followed. ok is false if that
// cannot be known: on another machine, or of a path that leads nowhere.
func (v *View) FileID(ctx context.Context, name string) (id FileID, ok bool) {
	if !path.IsAbs(name) || !v.local(ctx) {
		return FileID{}, false
	}
	info, err := patiently(ctx, v, func() fs.FileInfo {
		info, err := os.Stat(name)
		if err != nil {
			return nil
		}
		return info
	})
	if err != nil || info == nil {
		return FileID{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return FileID{}, false
	case info.Mode()&fs.ModeDevice != 0:
		// Two nodes of one device are one.
		return FileID{node: stat.Rdev, inode: uint64(info.Mode() & fs.ModeCharDevice), isDevice: true}, true
	}
	return FileID{device: stat.Dev, inode: stat.Ino}, true
}

// Same says whether two paths are those of the same file, directory or device: by
// their text, or, if the daemon is on this machine, because one is a link to the
// other or they are mounted at both places. Of paths on another machine only the
// text is known.
func (v *View) Same(ctx context.Context, a, b string) bool {
	if path.Clean(a) == path.Clean(b) {
		return true
	}
	x, okX := v.FileID(ctx, a)
	y, okY := v.FileID(ctx, b)
	return okX && okY && x == y
}

// look lets libvirt look at the storage of a volume.
func (v *View) look(ctx context.Context, volume *Volume) file {
	document, err := volume.XML(ctx)
	switch {
	case err == nil:
		return file{Present, volume, layerIn(document)}
	case HasCode(err, ErrNoVolume):
		return file{presence: Gone, volume: volume}
	}
	return file{volume: volume}
}

func layerIn(document string) layer {
	var vol struct {
		Path   string `xml:"backingStore>path"`
		Format struct {
			Type string `xml:"type,attr"`
		} `xml:"backingStore>format"`
	}
	if err := xml.Unmarshal([]byte(document), &vol); err != nil || !path.IsAbs(vol.Path) {
		return layer{}
	}
	return layer{path.Clean(vol.Path), vol.Format.Type}
}

// directories are the kinds of pools that are a directory: each file in it is a
// volume, or will be after a refresh.
var directories = map[string]bool{"dir": true, "fs": true, "netfs": true}

// inPool finds the volume of an active pool that a path is. claimed is true also
// without one if the pool is the directory that the file is in.
func (v *View) inPool(ctx context.Context, name string) (claimed bool, volume *Volume) {
	pools, err := v.Pools(ctx)
	if err != nil {
		return false, nil
	}
	for _, p := range pools {
		if !p.Active || p.Target == "" || path.Dir(name) != p.Target {
			continue
		}
		volumes, err := v.volumes(ctx, p.pool)
		if err != nil {
			continue
		}
		if volume := volumes[path.Base(name)]; volume != nil {
			return true, volume
		}
		claimed = claimed || directories[p.Type]
	}
	return claimed, nil
}

// Volume says whether an active pool has a volume. Gone is also one that came
// without the pool's having looked since: a start would not find it either.
func (v *View) Volume(ctx context.Context, pool, name string) Presence {
	pools, err := v.Pools(ctx)
	if err != nil || !pools[pool].Active {
		return Unknown
	}
	f, _ := v.files.get(place{pool + ":" + name, false}, v.writes.Load(), func() (file, error) {
		return patiently(ctx, v, func() file {
			volumes, err := v.volumes(ctx, pools[pool].pool)
			switch {
			case err != nil:
				return file{}
			case volumes[name] == nil:
				return file{presence: Gone}
			}
			return v.look(ctx, volumes[name])
		})
	})
	return f.presence
}

// opens asks the daemon to read a file as if it were a saved guest, which is the
// one question about any path that libvirt answers without changing anything:
// it opens the file for reading and reads its head. asked is false if this
// libvirt cannot.
//
// All that goes wrong with the opening has the same code, and the message is in
// the daemon's language. So it is compared with the one for a file that cannot
// exist.
func (v *View) opens(ctx context.Context, name string) (answer Presence, asked bool) {
	message, err := v.refusal(ctx, name)
	switch {
	case err == nil && message == "":
		return Present, true
	case HasCode(err, ErrNoSupport):
		return Unknown, false
	case err != nil:
		return Unknown, true
	}
	absent, err := v.absent.get(0, func() (string, error) {
		message, err := v.refusal(ctx, "/"+rand.Text())
		if err != nil {
			return "", err
		}
		// A daemon that can open nothing at all (out of descriptors) says the same of
		// every file.
		if other, err := v.refusal(ctx, "/"); err == nil && other != "" {
			return "", errors.New("the daemon opens no files")
		}
		return message, nil
	})
	if err == nil && message == absent {
		return Gone, true
	}
	return Unknown, true
}

// refusal is what the daemon says when it cannot open a file, without the name;
// "" if it is a saved guest. Every other answer is an error.
func (v *View) refusal(ctx context.Context, name string) (string, error) {
	err := v.host.call(ctx, Call{"read the head of file", name, false}, func(s *session) error {
		_, err := s.conn.DomainSaveImageGetXMLDesc(name, 0)
		return err
	})
	var e *Error
	if !errors.As(err, &e) || e.Code != ErrSystem || IsLost(err) {
		return "", err
	}
	return strings.ReplaceAll(e.Message, name, ""), nil
}

// filePatience is how long a question about a file may take. Storage that hangs
// (a file server that is away) answers when it comes back; a plan must not wait
// for it.
const filePatience = 5 * time.Second

var errSilent = errors.New("the storage does not answer")

// IsSilent says whether an error is that storage did not answer in time.
func IsSilent(err error) bool { return errors.Is(err, errSilent) }

// Patiently asks something of libvirt that may hang with the storage that it is
// about, and gives up after a few seconds, with an error that IsSilent. The
// question goes on by itself then: it must not write to what others read.
func Patiently[T any](ctx context.Context, v *View, ask func() T) (T, error) {
	return patiently(ctx, v, ask)
}

// patiently asks about a file. What hangs goes on hanging, each with a
// connection, and cannot be broken off; so only half of the connections may, and
// while they do nothing more is asked. The error keeps such an answer from being
// kept. Questions do not nest.
func patiently[T any](ctx context.Context, v *View, ask func() T) (none T, err error) {
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if int(v.stuck.Load()) >= cap(v.asking) {
		return none, errSilent
	}
	late := time.NewTimer(v.patience)
	defer late.Stop()
	select {
	case v.asking <- struct{}{}:
	case <-late.C:
		return none, errSilent
	case <-ctx.Done():
		return none, ctx.Err()
	}
	answer := make(chan T, 1)
	go func() {
		defer func() { <-v.asking }()
		answer <- ask()
	}()
	select {
	case t := <-answer:
		return t, ctx.Err()
	case <-late.C:
		err = errSilent
	case <-ctx.Done():
		err = ctx.Err()
	}
	v.stuck.Add(1)
	go func() {
		<-answer
		v.stuck.Add(-1)
	}()
	return none, err
}

// local says whether the daemon runs on this machine: it is reached by a socket
// of this machine, and gives the host the name that the machine has. The second
// matters where the socket leads elsewhere, as one that ssh forwards does, and
// where this process is in a container, whose files are others.
func (v *View) local(ctx context.Context) bool {
	yes, err := v.here.get(0, func() (bool, error) {
		versions, err := v.host.Versions(ctx)
		if err != nil {
			return false, err
		}
		own, err := os.Hostname()
		return err == nil && hasLocalSocket(versions.URI) && sameHost(versions.HostName, own), nil
	})
	return err == nil && yes
}

func hasLocalSocket(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Host != "" {
		return false
	}
	_, transport := driver(u)
	return transport == "" || transport == "unix"
}

// sameHost compares names of hosts, of which one may lack its domain.
func sameHost(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a != "" && b != "" && (a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+"."))
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// uploadSizes are the files of a measurement, in MiB; one of 0 is left out.
type uploadSizes struct {
	full  int // of random data
	empty int // with data in a few places only
	data  int // MiB of data in the empty one
}

// uploadRow is one file, uploaded by one program some times.
type uploadRow struct {
	File, Subject string
	Seconds       []float64
	OnDisk        int64 // bytes that the volume takes
	Same          bool  // it holds the file
}

// uploads measures how long it takes to make a volume of a file and fill it, and
// what it takes on the disk: by the provider, and by virsh with and without
// --sparse, in turns.
type uploads struct {
	host *host.Host
	virt *virt.Host
	dir  string
}

// The subjects.
const (
	byProvider    = "provider"
	byVirsh       = "virsh vol-upload"
	byVirshSparse = "virsh vol-upload --sparse"
)

func measureUploads(ctx context.Context, sizes uploadSizes, runs int) (rows []uploadRow, err error) {
	u := &uploads{}
	if u.dir, err = os.MkdirTemp("", "libvirt-bench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(u.dir)
	if u.host, err = host.Start(ctx, host.Options{NoGuest: true, Log: os.Stderr}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, u.host.Stop()) }()
	u.virt = virt.NewHost(virt.Options{URI: u.host.URI()})
	defer func() { err = errors.Join(err, u.virt.Close()) }()
	for _, f := range []struct {
		name       string
		size, data int
	}{{"full", sizes.full, sizes.full}, {"mostly empty", sizes.empty, sizes.data}} {
		if f.size == 0 {
			continue
		}
		file := filepath.Join(u.dir, "source")
		if err := writeSource(file, int64(f.size)<<20, int64(f.data)<<20); err != nil {
			return nil, err
		}
		shown := fmt.Sprintf("%s, %d MiB with %d MiB of data", f.name, f.size, f.data)
		got, err := u.measure(ctx, shown, file, runs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", shown, err)
		}
		rows = append(rows, got...)
	}
	return rows, nil
}

// writeSource writes a file of random data, in eight places with holes between
// them if there is less of it than the file has.
func writeSource(path string, size, data int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := f.Truncate(size); err != nil {
		return err
	}
	random := rand.NewChaCha8([32]byte{1})
	const places = 8
	for i := range int64(places) {
		if _, err := f.Seek(size/places*i, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(f, random, min(data, size)/places); err != nil {
			return err
		}
	}
	return f.Sync()
}

func (u *uploads) measure(ctx context.Context, shown, file string, runs int) ([]uploadRow, error) {
	rows := []uploadRow{{File: shown, Subject: byProvider}, {File: shown, Subject: byVirsh}, {File: shown, Subject: byVirshSparse}}
	for run := range runs {
		for i := range rows {
			r := &rows[i]
			begin := time.Now()
			if err := u.upload(ctx, r.Subject, file); err != nil {
				return nil, fmt.Errorf("%s: %w", r.Subject, err)
			}
			r.Seconds = append(r.Seconds, time.Since(begin).Seconds())
			volume := filepath.Join(u.host.PoolDir(), volumeName)
			info, err := os.Stat(volume)
			if err != nil {
				return nil, err
			}
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				r.OnDisk = stat.Blocks * 512
			}
			if run == 0 {
				if r.Same, err = sameFiles(file, volume); err != nil {
					return nil, err
				}
			}
			if _, err := u.host.Virsh(ctx, "vol-delete", volumeName, "default"); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

const volumeName = "bench"

// upload makes a volume and fills it, as one who has the file and the URI does.
func (u *uploads) upload(ctx context.Context, subject, file string) error {
	if subject == byProvider {
		k := storage.NewVolume(func() *virt.Host { return u.virt })
		planned := tree.NullValue.With("name", tree.StringValue(volumeName)).With("pool", tree.StringValue("default")).
			SetAt("create.content.url", tree.StringValue(file))
		_, err := k.Create(ctx, planned, planned)
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	upload := []string{"vol-upload", volumeName, file, "--pool", "default"}
	if subject == byVirshSparse {
		upload = append(upload, "--sparse")
	}
	for _, args := range [][]string{{"vol-create-as", "default", volumeName, fmt.Sprint(info.Size()), "--allocation", "0"}, upload} {
		cmd := exec.CommandContext(ctx, "virsh", append([]string{"-q", "-c", u.host.URI()}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("virsh %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}

// sameFiles says whether two files have the same content.
func sameFiles(a, b string) (bool, error) {
	x, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer func() { _ = x.Close() }()
	y, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer func() { _ = y.Close() }()
	p, q := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		n, errX := io.ReadFull(x, p)
		m, errY := io.ReadFull(y, q)
		if n != m || !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		if errX != nil || errY != nil {
			end := func(err error) bool {
				return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
			}
			if end(errX) && end(errY) {
				return true, nil
			}
			return false, errors.Join(errX, errY)
		}
	}
}

// checkUploads says which subjects left another content on the host than the
// file has: what they took for it counts for nothing.
func checkUploads(rows []uploadRow) error {
	var wrong []error
	for _, r := range rows {
		if !r.Same {
			wrong = append(wrong, fmt.Errorf("%s: the volume that %s made holds another content", r.File, r.Subject))
		}
	}
	return errors.Join(wrong...)
}

func printUploads(w io.Writer, rows []uploadRow) {
	last := ""
	for _, r := range rows {
		if r.File != last {
			fmt.Fprintf(w, "\n%s\n%-26s %10s %19s %14s  %s\n", r.File, "", "seconds", "min-max", "on the disk", "content")
			last = r.File
		}
		sorted := slices.Sorted(slices.Values(r.Seconds))
		same := "the same"
		if !r.Same {
			same = "ANOTHER"
		}
		fmt.Fprintf(w, "%-26s %10.2f %9.2f-%-9.2f %10.1f MiB  %s\n", r.Subject, sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1], float64(r.OnDisk)/(1<<20), same)
	}
}

package virt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand"
	"os"
	"strings"
	"testing"
)

// daemonFile is a file as libvirt's daemon writes a sparse stream into it: a
// hole skips bytes, which stay what they were, and the file ends after it.
type daemonFile struct {
	content []byte
	at      int
	written int
}

func (f *daemonFile) Send(b []byte) (int, error) {
	b = b[:min(len(b), 100_000)] // a stream may take less than it is given
	if need := f.at + len(b); need > len(f.content) {
		f.content = append(f.content, make([]byte, need-len(f.content))...)
	}
	copy(f.content[f.at:], b)
	f.at += len(b)
	f.written += len(b)
	return len(b), nil
}

func (f *daemonFile) SendHole(n int64, _ uint32) error {
	f.at += int(n)
	if f.at > len(f.content) {
		f.content = append(f.content, make([]byte, f.at-len(f.content))...)
	}
	f.content = f.content[:f.at]
	return nil
}

// patches is content that is mostly zeros, in runs of all lengths.
func patches(r *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for at := 0; at < size; {
		n := min(1+r.Intn(3*grain), size-at)
		switch r.Intn(3) {
		case 0:
			r.Read(b[at : at+n])
		case 1:
			b[at+n-1] = 1
		}
		at += n
	}
	return b
}

// Whatever the volume held before, afterwards it holds the content, and behind
// it what was there, exactly as after an upload without holes.
func TestSparseUploadIsLikeADenseOne(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		before := make([]byte, r.Intn(8*grain))
		used := r.Intn(2) == 0
		if used {
			r.Read(before)
		}
		content := patches(r, r.Intn(8*grain))
		offset := 0
		if r.Intn(3) == 0 {
			offset = r.Intn(len(before) + 1)
		}
		want := append([]byte(nil), before...)
		if need := offset + len(content); need > len(want) {
			want = append(want, make([]byte, need-len(want))...)
		}
		copy(want[offset:], content)

		f := &daemonFile{content: append([]byte(nil), before...), at: offset}
		out := &sender{stream: f, position: uint64(offset), holes: true, length: uint64(len(before))}
		if used {
			out.dense = out.length
		}
		var src io.Reader = bytes.NewReader(content)
		if seed%2 == 0 {
			src = holeyFile(t, content)
		}
		if err := copyTo(context.Background(), out, newSource(src, uint64(len(content))), uint64(len(content)), streamSettings(nil)); err != nil {
			t.Fatal(err)
		}
		if err := out.finish(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f.content, want) {
			t.Fatalf("seed %d: %d bytes at %d over %d (used %v): %d bytes, want %d; first difference at %d",
				seed, len(content), offset, len(before), used, len(f.content), len(want), difference(f.content, want))
		}
	}
}

func difference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// holeyFile holds content, with its zeros as holes of the file system.
func holeyFile(t testing.TB, content []byte) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.Truncate(int64(len(content))); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(content); at += 4096 {
		block := content[at:min(at+4096, len(content))]
		if !bytes.Equal(block, zeros[:len(block)]) {
			if _, err := f.WriteAt(block, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f
}

func TestSparseUploadSendsNoZeros(t *testing.T) {
	content := make([]byte, 64<<20)
	copy(content[32<<20:], "data")
	for name, src := range map[string]io.Reader{"reader": bytes.NewReader(content), "file": holeyFile(t, content)} {
		f := &daemonFile{}
		out := &sender{stream: f, holes: true}
		var steps []uint64
		o := streamSettings([]StreamOption{Progress(func(done uint64) { steps = append(steps, done) })})
		if err := copyTo(context.Background(), out, newSource(src, 0), 0, o); err != nil {
			t.Fatal(err)
		}
		if err := out.finish(); err != nil {
			t.Fatal(err)
		}
		if f.written > 4*grain {
			t.Errorf("%s: %d bytes were sent for 4 bytes of data", name, f.written)
		}
		if !bytes.Equal(f.content, content) {
			t.Errorf("%s: another content", name)
		}
		if len(steps) == 0 || steps[len(steps)-1] != uint64(len(content)) {
			t.Errorf("%s: progress %v", name, steps)
		}
	}
}

func TestSourceErrors(t *testing.T) {
	ctx := context.Background()
	o := streamSettings(nil)
	send := func(r io.Reader, length uint64) (*daemonFile, error) {
		f := &daemonFile{}
		return f, copyTo(ctx, &sender{stream: f}, newSource(r, length), length, o)
	}
	if _, err := send(strings.NewReader("four"), 5); err == nil || !strings.Contains(err.Error(), "ended after 4 of 5 bytes") {
		t.Errorf("content that is too short: %v", err)
	}
	if f, err := send(strings.NewReader("four and more"), 4); err != nil || string(f.content) != "four" {
		t.Errorf("content that is longer than said: %q, %v", f.content, err)
	}
	if f, err := send(strings.NewReader(""), 0); err != nil || len(f.content) != 0 {
		t.Errorf("no content: %q, %v", f.content, err)
	}
	torn := errors.New("torn")
	_, err := send(io.MultiReader(strings.NewReader("four"), failing{torn}), 0)
	if !errors.Is(err, torn) || !strings.Contains(err.Error(), "read the content") {
		t.Errorf("a reader that fails: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := copyTo(ended, &sender{stream: &daemonFile{}}, newSource(strings.NewReader("four"), 0), 0, o); !errors.Is(err, context.Canceled) {
		t.Errorf("the context is not looked at: %v", err)
	}
	full := errors.New("no space left on device")
	if err := copyTo(ctx, &sender{stream: refusing{full}}, newSource(strings.NewReader("four"), 0), 0, o); !errors.Is(err, full) {
		t.Errorf("a host that refuses: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type refusing struct{ err error }

func (r refusing) Send([]byte) (int, error)     { return 0, r.err }
func (r refusing) SendHole(int64, uint32) error { return r.err }

func TestSinkKeepsHoles(t *testing.T) {
	for name, old := range map[string]string{"empty": "", "old content": strings.Repeat("x", 3*grain)} {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(old); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		s := &sink{w: f, file: f}
		for _, step := range []func() error{
			func() error { return s.hole(2 * grain) },
			func() error { _, err := f.WriteString("data"); return err },
			func() error { return s.hole(grain) },
			func() error { return s.hole(1) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		want := append(append(make([]byte, 2*grain), "data"...), make([]byte, grain+1)...)
		got, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if len(got) < len(want) || !bytes.Equal(got[:len(want)], want) {
			t.Errorf("%s: %d bytes, want %d; first difference at %d", name, len(got), len(want), difference(got, want))
		}
	}
}

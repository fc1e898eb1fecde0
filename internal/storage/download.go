package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
)

// attempts is how often a transfer is tried, and pause how long after the
// first failure; it doubles with each.
const attempts = 4

var pause = time.Second

// patience is how long a server may say nothing.
var patience = time.Minute

// client follows redirections, ten at most, and takes a proxy from the environment.
var client = http.DefaultClient

// download is a file that comes over the network. What is there already is
// kept when the transfer breaks off, if the server can go on from there.
type download struct {
	source   string
	shown    string
	file     *os.File
	have     int64        // bytes that are there
	seen     atomic.Int64 // the same while a transfer goes on, for the log
	total    int64        // bytes that the server has announced, -1 if it has not
	limit    uint64       // bytes that it may have, 0 for any number
	entity   string       // what the server calls this very content, "" if it does not
	weakened bool         // a redirection has led from https to http
}

// discreet is an error that may quote a URL: that of a redirection, of a proxy.
type discreet struct{ error }

func (e discreet) Error() string { return kind.HideCredentials(e.error.Error()) }
func (e discreet) Unwrap() error { return e.error }

// finalError is an answer that will not change by asking again.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// fetch downloads into a temporary file, in which long runs of zeros are holes. A
// transfer that breaks off, or a server that has a bad moment, is tried again; a
// clear no is final. weakened says that it was asked for by https, and that a
// redirection has led to http.
func fetch(ctx context.Context, source string, limit uint64) (content *os.File, weakened bool, err error) {
	file, err := os.CreateTemp("", "libvirt-content-")
	if err != nil {
		return nil, false, err
	}
	d := &download{source: source, shown: shown(source), file: file, limit: limit, total: -1}
	defer telling(ctx, "downloading", func() map[string]any {
		return map[string]any{"url": d.shown, "done": mebibytes(uint64(d.seen.Load()))}
	})()
	for i := range attempts {
		if i > 0 {
			tflog.Warn(ctx, "fetching again", map[string]any{"url": d.shown, "after": err.Error(), "have": mebibytes(uint64(d.have))})
			select {
			case <-ctx.Done():
			case <-time.After(pause << (i - 1)):
			}
		}
		if err = d.once(ctx); err == nil {
			if err = d.complete(); err == nil {
				return file, d.weakened, nil
			}
		}
		var final finalError
		if ctx.Err() != nil || errors.As(err, &final) {
			break
		}
		if i == attempts-1 {
			err = fmt.Errorf("%w (tried %d times)", err, attempts)
		}
	}
	_ = file.Close()
	_ = os.Remove(file.Name())
	return nil, false, err
}

// complete gives the file its length, which a hole at its end did not, and goes to
// its beginning.
func (d *download) complete() error {
	if err := d.file.Truncate(d.have); err != nil {
		return err
	}
	_, err := d.file.Seek(0, io.SeekStart)
	return err
}

// once asks for all that is missing.
func (d *download) once(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := fmt.Errorf("%s: the server has said nothing for %s", d.shown, patience)
	watch := time.AfterFunc(patience, func() { cancel(silent) })
	defer watch.Stop()

	resp, err := d.ask(ctx)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, silent) {
			return silent
		}
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.ContentLength > 0 && d.exceeds(d.have+resp.ContentLength) {
		return finalError{tooLarge(d.shown, d.limit)}
	}
	n, err := io.Copy(&sink{d.file}, &listener{from: resp.Body, d: d, watch: watch})
	d.have += n
	var full *writeError
	switch {
	case d.exceeds(d.have):
		return finalError{tooLarge(d.shown, d.limit)}
	case errors.As(err, &full):
		return finalError{fmt.Errorf("%w (TMPDIR in the environment chooses another place)", full.error)}
	case errors.Is(context.Cause(ctx), silent):
		return silent
	case err != nil:
		return fmt.Errorf("%s broke off after %d bytes: %w", d.shown, d.have, err)
	case resp.ContentLength >= 0 && n != resp.ContentLength:
		return fmt.Errorf("%s: %d bytes came, %d were announced", d.shown, n, resp.ContentLength)
	case d.total >= 0 && d.have < d.total:
		return fmt.Errorf("%s: %d of %d bytes came", d.shown, d.have, d.total) // the rest is asked for
	case d.total >= 0 && d.have > d.total:
		d.entity = ""
		return fmt.Errorf("%s: %d bytes came, %d were announced", d.shown, d.have, d.total)
	}
	return nil
}

// exceeds says whether so many bytes are more than there may be.
func (d *download) exceeds(n int64) bool { return d.limit > 0 && uint64(n) > d.limit }

// errEnough ends the transfer of what has too many bytes.
var errEnough = errors.New("more bytes than it may have")

// ask sends the request, for the rest if the server can give it.
func (d *download) ask(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.source, nil)
	if err != nil {
		return nil, finalError{errors.New("the url is not valid")}
	}
	// An image is what the server has, not what a transport makes of it.
	req.Header.Set("Accept-Encoding", "identity")
	if d.have > 0 && d.entity != "" {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.have))
		req.Header.Set("If-Range", d.entity)
	}
	resp, err := client.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %w", d.shown, discreet{failed.Err}) // without the URL, which may hold secrets
	}
	if err != nil {
		return nil, err
	}
	d.weakened = d.weakened || req.URL.Scheme == "https" && resp.Request.URL.Scheme != "https"
	switch {
	case resp.StatusCode == http.StatusPartialContent && d.goesOn(resp):
		return resp, nil
	case resp.StatusCode == http.StatusOK:
		d.total = resp.ContentLength
		if err := d.restart(); err != nil {
			_ = resp.Body.Close()
			return nil, finalError{err}
		}
		d.entity = resp.Header.Get("Last-Modified")
		if tag := resp.Header.Get("Etag"); tag != "" && tag[0] == '"' {
			d.entity = tag
		}
		return resp, nil
	}
	_ = resp.Body.Close()
	err = fmt.Errorf("%s answers %s", d.shown, resp.Status)
	d.entity = "" // whatever it was, the next request is for all
	if resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests &&
		resp.StatusCode != http.StatusRequestTimeout && resp.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		err = finalError{err}
	}
	return nil, err
}

// goesOn says whether an answer is the rest of what is there: it begins where that
// ends, and belongs to a whole of the same size.
func (d *download) goesOn(resp *http.Response) bool {
	var from, to, of int64
	told := resp.Header.Get("Content-Range")
	n, _ := fmt.Sscanf(told, "bytes %d-%d/%d", &from, &to, &of)
	switch {
	case n < 2 || from != d.have:
		return false
	case n == 3 && d.total < 0:
		d.total = of
	case n == 3:
		return of == d.total
	}
	return true
}

func (d *download) restart() error {
	d.have = 0
	d.seen.Store(0)
	if err := d.file.Truncate(0); err != nil {
		return err
	}
	_, err := d.file.Seek(0, io.SeekStart)
	return err
}

// writeError tells a full disk here from a broken transfer.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

type sink struct{ file *os.File }

// Write writes, and leaves a hole for what are zeros only.
func (s *sink) Write(p []byte) (int, error) {
	if len(p) <= len(nothing) && bytes.Equal(p, nothing[:len(p)]) {
		if _, err := s.file.Seek(int64(len(p)), io.SeekCurrent); err == nil {
			return len(p), nil
		}
	}
	n, err := s.file.Write(p)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}

// nothing is as long as what io.Copy writes at once.
var nothing [32 * 1024]byte

// listener counts what comes, and notices a server that says nothing.
type listener struct {
	from  io.Reader
	d     *download
	done  int64
	watch *time.Timer
}

func (l *listener) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if n > 0 {
		l.watch.Reset(patience)
	}
	l.done += int64(n)
	l.d.seen.Store(l.d.have + l.done)
	if l.d.exceeds(l.d.have + l.done) {
		return n, errEnough
	}
	return n, err
}

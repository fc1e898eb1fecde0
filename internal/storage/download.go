package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// attempts is how often a transfer is tried, and pause how long after the
// first failure; it doubles with each.
const attempts = 4

var pause = time.Second

// patience is how long a server may say nothing.
var patience = time.Minute

// download is a file that comes over the network. What is there already is
// kept when the transfer breaks off, if the server can go on from there.
type download struct {
	source string
	shown  string
	file   *os.File
	have   int64
	limit  uint64 // bytes that it may have, 0 for any number
	entity string // what the server calls this very content, "" if it does not
	said   time.Time
}

// finalError is an answer that will not change by asking again.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// fetch downloads into a temporary file. A transfer that breaks off, or a
// server that has a bad moment, is tried again; a clear no is final.
func fetch(ctx context.Context, source string, limit uint64) (*os.File, error) {
	file, err := os.CreateTemp("", "libvirt-content-")
	if err != nil {
		return nil, err
	}
	d := &download{source: source, shown: shown(source), file: file, limit: limit, said: time.Now()}
	for i := range attempts {
		if i > 0 {
			tflog.Warn(ctx, "fetching again", map[string]any{"url": d.shown, "after": err.Error(), "have": mebibytes(uint64(d.have))})
			select {
			case <-ctx.Done():
			case <-time.After(pause << (i - 1)):
			}
		}
		if err = d.once(ctx); err == nil {
			_, err = file.Seek(0, io.SeekStart)
			if err == nil {
				return file, nil
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
	return nil, err
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
	n, err := io.Copy(&sink{d.file}, &reporter{ctx: ctx, from: resp.Body, d: d, watch: watch})
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
	resp, err := http.DefaultClient.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %w", d.shown, failed.Err) // without the URL, which may hold secrets
	}
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusPartialContent && resp.Header.Get("Content-Range") != "" && startsAt(resp, d.have):
		return resp, nil
	case resp.StatusCode == http.StatusOK:
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

func startsAt(resp *http.Response, at int64) bool {
	var from int64
	_, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &from)
	return err == nil && from == at
}

func (d *download) restart() error {
	d.have = 0
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

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}

// reporter tells the log, every now and then, how far a download is, and
// notices a server that says nothing.
type reporter struct {
	ctx   context.Context
	from  io.Reader
	d     *download
	done  int64
	watch *time.Timer
}

func (r *reporter) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if n > 0 {
		r.watch.Reset(patience)
	}
	r.done += int64(n)
	if r.d.exceeds(r.d.have + r.done) {
		return n, errEnough
	}
	if time.Since(r.d.said) > often {
		r.d.said = time.Now()
		tflog.Info(r.ctx, "downloading", map[string]any{"url": r.d.shown, "done": mebibytes(uint64(r.d.have + r.done))})
	}
	return n, err
}

package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// hurry makes the waits of downloads short.
func hurry(t *testing.T) {
	t.Helper()
	p, q := pause, patience
	pause, patience = time.Millisecond, 100*time.Millisecond
	t.Cleanup(func() { pause, patience = p, q })
	t.Setenv("TMPDIR", t.TempDir())
}

// leftovers fails the test if a temporary file is still there.
func leftovers(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// server answers the first requests as told, and the last of it for ever.
func server(t *testing.T, answers ...http.HandlerFunc) (url string, requests func() []*http.Request) {
	t.Helper()
	var mu sync.Mutex
	var seen []*http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r)
		answer := answers[min(len(seen), len(answers))-1]
		mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/image?token=hunter2", func() []*http.Request {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

var image = bytes.Repeat([]byte("seventeen bytes, "), 10000)

func whole(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(image) }

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
}

// cut promises the whole image and breaks off after n bytes.
func cut(n int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(image)))
		_, _ = w.Write(image[:n])
	}
}

// silent says nothing for as long as the client listens.
func silent(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write(image[:1000])
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func ranged(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Etag", `"one"`)
	http.ServeContent(w, r, "image", time.Time{}, bytes.NewReader(image))
}

func TestFetch(t *testing.T) {
	cases := map[string]struct {
		answers []http.HandlerFunc
		ranges  string // of all requests, joined
	}{
		"at once":                     {[]http.HandlerFunc{whole}, ""},
		"after bad moments":           {[]http.HandlerFunc{status(500), status(503), status(429), whole}, "|||"},
		"after a cut, from the start": {[]http.HandlerFunc{cut(5000), whole}, "|"},
		"after a cut, from there": {
			[]http.HandlerFunc{cut(5000, "Etag", `"one"`), ranged}, "|bytes=5000-",
		},
		"after a cut, of another image": {
			[]http.HandlerFunc{cut(5000, "Etag", `"older"`), ranged}, "|bytes=5000-",
		},
		"after a cut, a weak tag is none": {
			[]http.HandlerFunc{cut(5000, "Etag", `W/"one"`), ranged}, "|",
		},
		"after a cut, by date": {
			[]http.HandlerFunc{cut(5000, "Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT"), whole}, "|bytes=5000-",
		},
		"after a rest that is refused": {
			[]http.HandlerFunc{cut(5000, "Etag", `"one"`), status(416), whole}, "|bytes=5000-|",
		},
		"after a rest from elsewhere": {
			[]http.HandlerFunc{cut(5000, "Etag", `"one"`), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 4000-%d/%d", len(image)-1, len(image)))
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(image[4000:])
			}, whole}, "|bytes=5000-|",
		},
		"after silence": {[]http.HandlerFunc{silent, whole}, "|"},
		"without a length": {[]http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(image[:100])
			w.(http.Flusher).Flush()
			_, _ = w.Write(image[100:])
		}}, ""},
		"as it is, not as a transport packs it": {[]http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "identity" {
				w.WriteHeader(http.StatusNotAcceptable)
			}
			_, _ = w.Write(image)
		}}, ""},
		"elsewhere": {[]http.HandlerFunc{http.RedirectHandler("/other", http.StatusFound).ServeHTTP, whole}, "|"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			hurry(t)
			url, requests := server(t, c.answers...)
			got, err := open(context.Background(), url, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(got.file)
			if err != nil || !bytes.Equal(data, image) {
				t.Errorf("%d bytes that are not the image, %v", len(data), err)
			}
			var ranges []string
			for _, r := range requests() {
				ranges = append(ranges, r.Header.Get("Range"))
			}
			if joined := strings.Join(ranges, "|"); joined != c.ranges {
				t.Errorf("asked for %q, not %q", joined, c.ranges)
			}
			got.close()
			leftovers(t)
		})
	}
}

func TestFetchFails(t *testing.T) {
	cases := map[string]struct {
		answer http.HandlerFunc
		says   string
		tries  int
	}{
		"not there":     {status(404), "answers 404 Not Found", 1},
		"not allowed":   {status(403), "answers 403 Forbidden", 1},
		"never well":    {status(502), "answers 502 Bad Gateway (tried 4 times)", 4},
		"always cut":    {cut(5000), "broke off after 5000 bytes: unexpected EOF (tried 4 times)", 4},
		"always silent": {silent, "the server has said nothing for 100ms (tried 4 times)", 4},
		"in circles":    {http.RedirectHandler("/image", http.StatusFound).ServeHTTP, "stopped after 10 redirects", 40},
		"nothing in it": {func(http.ResponseWriter, *http.Request) {}, "is empty", 1},
		"only an overlay": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(qcow2Header(3, 1, func(h []byte) { h[15] = 104 }))
		}, "is an overlay", 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			hurry(t)
			url, requests := server(t, c.answer)
			got, err := open(context.Background(), url, "", 0)
			if err == nil {
				got.close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it says %v, not %q", err, c.says)
			}
			if n := len(requests()); n != c.tries {
				t.Errorf("asked %d times, not %d", n, c.tries)
			}
			leftovers(t)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		hurry(t)
		s := httptest.NewServer(http.HandlerFunc(whole))
		s.Close()
		_, err := open(context.Background(), s.URL+"/?token=hunter2", "", 0)
		if err == nil || !strings.Contains(err.Error(), "connection refused (tried 4 times)") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("it says %v", err)
		}
		leftovers(t)
	})
	t.Run("given up", func(t *testing.T) {
		hurry(t)
		patience = time.Minute
		url, requests := server(t, silent)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if _, err := open(ctx, url, "", 0); !errors.Is(err, context.DeadlineExceeded) || len(requests()) != 1 {
			t.Errorf("it says %v after %d requests", err, len(requests()))
		}
		leftovers(t)
	})
	t.Run("the disk is full", func(t *testing.T) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = full.Close() }()
		_, err = (&sink{full}).Write([]byte("x"))
		var here *writeError
		if !errors.As(err, &here) {
			t.Errorf("%v is not told from a broken transfer", err)
		}
	})
	t.Run("no place for it", func(t *testing.T) {
		hurry(t)
		t.Setenv("TMPDIR", "/no/such/directory")
		url, requests := server(t, whole)
		if _, err := open(context.Background(), url, "", 0); !errors.Is(err, os.ErrNotExist) || len(requests()) != 0 {
			t.Errorf("it says %v after %d requests", err, len(requests()))
		}
	})
}

// What is too large for what it is for is not fetched, whether the server says so
// before or not, and not asked for again.
func TestFetchOfTooMuch(t *testing.T) {
	limit := uint64(len(image)) - 1
	chunked := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(image[:100])
		w.(http.Flusher).Flush()
		_, _ = w.Write(image[100:])
	}
	for name, answer := range map[string]http.HandlerFunc{"announced": whole, "not announced": chunked, "announced, and cut": cut(100)} {
		t.Run(name, func(t *testing.T) {
			hurry(t)
			url, requests := server(t, answer, whole)
			if _, err := open(context.Background(), url, "", limit); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than the %d bytes", limit)) || len(requests()) != 1 {
				t.Errorf("%d requests, %v", len(requests()), err)
			}
			url, _ = server(t, answer, whole, whole)
			c, err := open(context.Background(), url, "", limit+1)
			if err != nil {
				t.Fatal(err)
			}
			c.close()
		})
	}
	file := t.TempDir() + "/f"
	if err := os.WriteFile(file, image, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(context.Background(), file, "", limit); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a file: %v", err)
	}
}

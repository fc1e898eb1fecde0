package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"
)

// hurry makes the waits of downloads short. Only where a case is about silence is
// the patience short as well: a busy machine would answer too late for it.
func hurry(t *testing.T) {
	t.Helper()
	p, q := pause, patience
	pause = time.Millisecond
	if strings.Contains(t.Name(), "silen") || strings.Contains(t.Name(), "after_all_of_it") {
		patience = 500 * time.Millisecond
	}
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

// part gives a part of the image, of a whole of so many bytes.
func part(from, to, of int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", `"one"`)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, of))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(image[from:to])
	}
}

// raw gives an answer to the letter, also one that net/http would not give.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	}
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
		"after a rest that is not all of it": {
			[]http.HandlerFunc{cut(5000, "Etag", `"one"`), part(5000, 9000, len(image)), part(9000, len(image), len(image))}, "|bytes=5000-|bytes=9000-",
		},
		"after a rest of something of another size": {
			[]http.HandlerFunc{cut(5000, "Etag", `"one"`), part(5000, len(image), len(image)+1), whole}, "|bytes=5000-|",
		},
		"after a rest that goes on too long": {
			[]http.HandlerFunc{cut(5000, "Etag", `"one"`), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 5000-%d/%d", len(image)-1, len(image)))
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(image[5000:])
				w.(http.Flusher).Flush()
				_, _ = w.Write([]byte("and more"))
			}, whole}, "|bytes=5000-|",
		},
		"after all of it": {
			[]http.HandlerFunc{status(500), cut(5000, "Etag", `"one"`), silent, whole}, "||bytes=5000-|",
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
		"always silent": {silent, "the server has said nothing for 500ms (tried 4 times)", 4},
		"in circles":    {http.RedirectHandler("/image", http.StatusFound).ServeHTTP, "stopped after 10 redirects", 40},
		"to nowhere, with a token": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://hunter2@h/%zz?token=hunter2")
			w.WriteHeader(http.StatusFound)
		}, "failed to parse Location header", 4},
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

// A server that announces less than it has cannot be caught by HTTP: the rest is not
// read. What tells is the checksum, and the header of a qcow2 image.
func TestFetchOfALie(t *testing.T) {
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256(image))
	disk := append(qcow2Header(3, 5<<30, func(h []byte) {
		binary.BigEndian.PutUint32(h[36:], 10)
		binary.BigEndian.PutUint64(h[40:], 3000)
	}), make([]byte, 4000)...)
	log.SetOutput(io.Discard) // of net/http, which is surprised by the rest
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for name, c := range map[string]struct {
		answer    http.HandlerFunc
		sum, says string
		tries     int
	}{
		"less than there is, with a checksum":  {raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(image)-1000, image)), sum, "has the checksum", 1},
		"less than a qcow2 image has":          {raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n%s", disk)), "", "is cut off", 1},
		"more than there is":                   {raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(image)+1000, image)), sum, "broke off after 170000 bytes", 4},
		"no length, and cut off":               {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nseven\r\n"), "", "broke off after 5 bytes", 4},
		"no length, and an end like any other": {raw(fmt.Sprintf("HTTP/1.0 200 OK\r\n\r\n%s", image[:5000])), sum, "has the checksum", 1},
		"a negative one":                       {raw("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), "", "bad Content-Length", 4},
		"no HTTP":                              {raw("SSH-2.0-OpenSSH_9.2\r\n"), "", "malformed HTTP", 4},
	} {
		t.Run(name, func(t *testing.T) {
			hurry(t)
			url, requests := server(t, c.answer)
			got, err := open(context.Background(), url, c.sum, 0)
			if err == nil {
				got.close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.says) || len(requests()) != c.tries {
				t.Errorf("%d requests, %v", len(requests()), err)
			}
			leftovers(t)
		})
	}
	t.Run("less than there is, without a checksum", func(t *testing.T) {
		hurry(t)
		url, _ := server(t, raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n%s", image)))
		got, err := open(context.Background(), url, "", 0)
		if err != nil || got.size != 1000 {
			t.Fatalf("%+v, %v", got, err) // what the documentation says of it
		}
		got.close()
	})
}

// What is mostly empty takes no space here either, whole or in pieces.
func TestFetchKeepsHoles(t *testing.T) {
	large := make([]byte, 8<<20)
	copy(large[3<<20:], "here")
	copy(large[6<<20:], image)
	for name, answers := range map[string][]http.HandlerFunc{
		"whole": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(large) }},
		"in pieces": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etag", `"one"`)
			w.Header().Set("Content-Length", fmt.Sprint(len(large)))
			_, _ = w.Write(large[:5<<20])
		}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"one"`)
			http.ServeContent(w, r, "image", time.Time{}, bytes.NewReader(large))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			hurry(t)
			url, _ := server(t, answers...)
			got, err := open(context.Background(), url, fmt.Sprintf("sha256:%x", sha256.Sum256(large)), 0)
			if err != nil {
				t.Fatal(err)
			}
			info, err := got.file.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if used := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != int64(len(large)) || used > 2<<20 {
				t.Errorf("%d bytes that take %d", info.Size(), used)
			}
			got.close()
		})
	}
}

// The log goes on while a server says nothing, and says how far it is.
func TestFetchTells(t *testing.T) {
	hurry(t)
	before := often
	often = 20 * time.Millisecond
	t.Cleanup(func() { often = before })
	patience = 400 * time.Millisecond
	url, _ := server(t, silent, whole)
	var lines bytes.Buffer
	ctx := tflogtest.RootLogger(context.Background(), &lines)
	got, err := open(ctx, url, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	got.close()
	if n := strings.Count(lines.String(), `"@message":"downloading"`); n < 5 || !strings.Contains(lines.String(), "0 MiB") || strings.Contains(lines.String(), "hunter2") {
		t.Errorf("%d lines while nothing came: %s", n, lines.String())
	}
	if !strings.Contains(lines.String(), "fetching again") {
		t.Errorf("it does not say that it begins anew: %s", lines.String())
	}
	lines.Reset()
	time.Sleep(60 * time.Millisecond)
	if lines.Len() > 0 {
		t.Errorf("it goes on afterwards: %s", lines.String())
	}
}

func TestFetchNoticesLostEncryption(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(whole))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/to-http":
			http.Redirect(w, r, plain.URL, http.StatusFound)
		case "/to-https":
			http.Redirect(w, r, "/image", http.StatusFound)
		default:
			whole(w, r)
		}
	}))
	defer secure.Close()
	before := client
	client = secure.Client()
	t.Cleanup(func() { client = before })
	for url, want := range map[string]bool{secure.URL + "/to-http": true, secure.URL + "/to-https": false, secure.URL: false, plain.URL: false} {
		hurry(t)
		got, err := open(context.Background(), url, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got.weakened != want {
			t.Errorf("%s: %v", url, got.weakened)
		}
		got.close()
	}
}

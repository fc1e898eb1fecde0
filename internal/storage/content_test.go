package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// qcow2Header is a header of an image of the given size; change may break it.
func qcow2Header(version uint32, size uint64, change func([]byte)) []byte {
	h := make([]byte, headerSize)
	copy(h, "QFI\xfb")
	binary.BigEndian.PutUint32(h[4:], version)
	binary.BigEndian.PutUint32(h[20:], 16)
	binary.BigEndian.PutUint64(h[24:], size)
	if change != nil {
		change(h)
	}
	return h
}

func TestProbe(t *testing.T) {
	put64 := func(at int, v uint64) func([]byte) { return func(h []byte) { binary.BigEndian.PutUint64(h[at:], v) } }
	put32 := func(at int, v uint32) func([]byte) { return func(h []byte) { binary.BigEndian.PutUint32(h[at:], v) } }
	cases := map[string]struct {
		header  []byte
		format  string
		virtual uint64
		packed  string
		says    string
	}{
		"raw":                  {header: []byte("anything at all"), format: "raw", virtual: 1 << 20},
		"a byte":               {header: []byte{7}, format: "raw", virtual: 1 << 20},
		"qcow2":                {header: qcow2Header(3, 5<<30, nil), format: "qcow2", virtual: 5 << 30},
		"qcow2 of version 2":   {header: qcow2Header(2, 5<<30, nil)[:72], format: "qcow2", virtual: 5 << 30},
		"gzip":                 {header: []byte("\x1f\x8b\x08..."), format: "raw", virtual: 1 << 20, packed: "gzip"},
		"xz":                   {header: []byte("\xfd7zXZ\x00..."), format: "raw", virtual: 1 << 20, packed: "xz"},
		"zstd":                 {header: []byte("\x28\xb5\x2f\xfd..."), format: "raw", virtual: 1 << 20, packed: "zstd"},
		"cut off":              {header: qcow2Header(3, 5<<30, nil)[:40], says: "ends after"},
		"future version":       {header: qcow2Header(4, 5<<30, nil), says: "makes no sense (version 4"},
		"of no size":           {header: qcow2Header(3, 0, nil), says: "makes no sense"},
		"of absurd size":       {header: qcow2Header(3, 1<<63, nil), says: "makes no sense"},
		"of absurd clusters":   {header: qcow2Header(3, 5<<30, put32(20, 40)), says: "2^40"},
		"an overlay":           {header: qcow2Header(3, 5<<30, put64(8, 1024)), says: "an overlay over another file"},
		"an old overlay":       {header: qcow2Header(2, 5<<30, put64(8, 1024)), says: "an overlay over another file"},
		"without its table":    {header: qcow2Header(3, 5<<30, put64(40, 2<<20)), says: "is cut off"},
		"without its counts":   {header: qcow2Header(3, 5<<30, put64(48, 2<<20)), says: "is cut off"},
		"with half a table":    {header: qcow2Header(3, 5<<30, func(h []byte) { put64(40, 1<<20-8)(h); put32(36, 2)(h) }), says: "is cut off"},
		"with all of it":       {header: qcow2Header(3, 5<<30, func(h []byte) { put64(40, 1<<20-16)(h); put32(36, 2)(h) }), format: "qcow2", virtual: 5 << 30},
		"external data":        {header: qcow2Header(3, 5<<30, put64(72, 1<<2)), says: "keeps its data in another file"},
		"features of the kind": {header: qcow2Header(3, 5<<30, put64(72, 1<<0)), format: "qcow2", virtual: 5 << 30},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := &content{shown: "it", size: 1 << 20}
			err := got.probe(c.header)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("error %v, want one with %q", err, c.says)
				}
				return
			}
			if err != nil || got.format != c.format || got.virtualSize != c.virtual || got.packed != c.packed {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestCheckURL(t *testing.T) {
	for text, ok := range map[string]bool{
		"/a/b": true, "a/b": true, "C:x": true, "/a://b": true, "http://h/x": true, "https://h/x?y": true, "HTTPS://h/x": true,
		"file:///a": true, "file://localhost/a": true, "file://a/b": false, "file://": false,
		"": false, "ftp://h/x": false, "s3://b/k": false, "http://[": false, "http:///x": false,
	} {
		if err := checkURL(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"file://hunter2@h/x", "https://hunter2@", "ftp://hunter2@h/x"} {
		if err := checkURL(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestShown(t *testing.T) {
	for source, want := range map[string]string{
		"/a/b?c":                               "/a/b?c",
		"https://h/x":                          "https://h/x",
		"https://user:hunter2@h/x?sig=hunter2": "https://xxxxx@h/x?…",
		"https://hunter2@h/x":                  "https://xxxxx@h/x",
		"https://hunter2@h/a b?sig=hunter2":    "https://xxxxx@h/a%20b?…",
		"file://hunter2@/x":                    "file://xxxxx@/x",
		"https://hunter2@%zz/x?sig=hunter2":    "https://xxxxx@%zz/x?…",
	} {
		if got := shown(source); got != want {
			t.Errorf("%s is shown as %s", source, got)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const sum = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"
	hello, spaced := write("hello", "hello"), write("a b%", "hello")
	for _, source := range []string{hello, "file://" + hello, "file://localhost" + hello, "file://" + dir + "/a%20b%25", spaced} {
		c, err := open(context.Background(), source, sum, 0)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if c.size != 5 || c.format != "raw" || c.temporary {
			t.Errorf("%s: %+v", source, c)
		}
		c.close()
		if _, err := os.Stat(hello); err != nil {
			t.Fatalf("the file of the user is gone: %v", err)
		}
	}
	for source, says := range map[string]string{
		dir + "/none":      "no such file",
		"file:///no/such":  "no such file",
		dir:                "is not a file",
		write("empty", ""): "is empty",
		"ftp://h/x":        `"ftp" is unknown`,
		hello + "#":        "no such file",
	} {
		if _, err := open(context.Background(), source, "", 0); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", source, err, says)
		}
	}
	if _, err := open(context.Background(), hello, "sha256:"+strings.Repeat("0", 64), 0); err == nil || !strings.Contains(err.Error(), sum) {
		t.Errorf("wrong checksum: %v", err)
	}
	if _, err := open(context.Background(), dir+"/none", "", 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cause is lost: %v", err)
	}
}

// Values in messages show no credentials either.
func TestMessagesShowNoCredentials(t *testing.T) {
	secret := tree.StringValue("https://hunter2@h/web-sha256-aa.iso?sig=hunter2")
	for _, got := range []string{told(secret), heldText(secret)} {
		if strings.Contains(got, "hunter2") || !strings.Contains(got, "https://xxxxx@h/web-sha256-aa.iso?…") {
			t.Errorf("it is shown as %s", got)
		}
	}
}

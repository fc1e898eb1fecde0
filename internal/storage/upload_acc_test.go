package storage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// holey writes a file of size bytes with data in some places, and holes between
// them and at its end.
func holey(t testing.TB, size, data int64) (path string) {
	t.Helper()
	path = t.TempDir() + "/holey"
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	const places = 4
	block := bytes.Repeat([]byte("what is in the image, "), int(data/places)/22)
	for i := range int64(places) {
		if _, err := f.WriteAt(block, size/places*i); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return path
}

// fileSum is the SHA-256 of a file, in hex.
func fileSum(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestAccVolume_upload(t *testing.T) {
	acctest.Case(t, "what a volume is filled with is on the host byte for byte, its holes take no room there, and the log tells how far the upload is")
	const size, data = 256 << 20, 64 << 20
	source, dir := holey(t, size, data), vault(t, "uploads")
	h := connect(t)
	k := storage.NewVolume(func() *virt.Host { return h })
	storage.TellOften(t, 200*time.Microsecond)
	var lines bytes.Buffer
	planned := object(map[string]any{"name": "v", "pool": "uploads", "create.content.url": source})
	_, err := k.Create(tflogtest.RootLogger(context.Background(), &lines), planned, planned)
	if err != nil {
		t.Fatal(err)
	}
	if fileSum(t, dir+"/v") != fileSum(t, source) {
		t.Error("the volume does not hold the file")
	}
	if n := onDisk(t, dir+"/v"); n > data+data/4 {
		t.Errorf("%d bytes on the disk for %d bytes of data", n, data)
	}
	tellsProgress(t, lines.String(), "v", size>>20)
	lab.Virsh(t, "vol-delete", "v", "uploads")
}

// tellsProgress fails the test unless lines of the log say how many MiB of all
// were uploaded, ever more of them.
func tellsProgress(t testing.TB, log, volume string, all int) {
	t.Helper()
	last, between := 0, false
	for _, text := range strings.Split(strings.TrimSpace(log), "\n") {
		var line struct {
			Message  string `json:"@message"`
			Volume   string
			Done, Of string
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if line.Message != "uploading" {
			continue
		}
		var done int
		if _, err := fmt.Sscanf(line.Done, "%d MiB", &done); err != nil || done < last || done > all || line.Of != fmt.Sprintf("%d MiB", all) || line.Volume != volume {
			t.Errorf("after %d MiB of %d: %s", last, all, text)
		}
		last, between = done, between || done > 0
	}
	if !between {
		t.Errorf("no line says how far the upload is:\n%s", log)
	}
}

package host

import (
	"os"
	"strings"
	"testing"

	"github.com/kdomanski/iso9660"
)

func writeISO(t *testing.T, path, label string, files map[string]string) {
	t.Helper()
	w, err := iso9660.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Cleanup()
	for name, content := range files {
		if err := w.AddFile(strings.NewReader(content), name); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteTo(f, label); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

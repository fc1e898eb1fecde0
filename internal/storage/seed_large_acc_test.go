package storage_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// largest is user data with which a seed has as much content as it may have.
func largest(t testing.TB) string {
	t.Helper()
	noise := make([]byte, seed.MaxContent)
	if _, err := rand.NewChaCha8([32]byte{7}).Read(noise); err != nil {
		t.Fatal(err)
	}
	return (userData("large") + "# " + base64.StdEncoding.EncodeToString(noise))[:seed.MaxContent-len(instance)]
}

func TestAccSeedVolume_contentOfTenMebibytes(t *testing.T) {
	core := acctest.Case(t, "a seed of 10 MiB reaches the host whole, through a volume and in a pool; one byte that differs there is seen, and put back")
	user := largest(t)
	file := t.TempDir() + "/user-data"
	if err := os.WriteFile(file, []byte(user), 0o600); err != nil {
		t.Fatal(err)
	}
	read := fmt.Sprintf("file(%q)", file)
	_, inPool, _ := strings.Cut(pooled(t, "large", read, ""), `resource "libvirt_cloudinit_disk" "it"`)
	p := lab.StartProject(t, core, seeded(t, t.TempDir(), "large", read, `resource "libvirt_cloudinit_disk" "pooled"`+inPool), "LIBVIRT_PROTECT=false")
	t.Cleanup(func() { _, _ = p.Run("destroy", "-auto-approve") })
	image := isoOf(t, user)
	holds := func() {
		t.Helper()
		for _, name := range []string{"large.iso", pooledVolume("large", user)} {
			if err := begins(t, name, image)(nil); err != nil {
				t.Error(err)
			}
		}
	}
	p.Must(0, "apply", "-auto-approve")
	holds()
	p.Must(0, "plan", "-detailed-exitcode")

	at := bytes.Index(image, []byte(user[len(user)-100:])) + 99 // its last byte
	for _, name := range []string{"large.iso", pooledVolume("large", user)} {
		f, err := os.OpenFile(volumeFile(t, name), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{image[at] ^ 1}, int64(at)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if out := p.Must(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "0 to add, 2 to change, 0 to destroy") {
		t.Errorf("the plan after a byte was changed in both:\n%s", out)
	}
	p.Must(0, "apply", "-auto-approve")
	holds()
	p.Must(0, "plan", "-detailed-exitcode")
}

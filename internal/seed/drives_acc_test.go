package seed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
)

// drives are what Ignition and Combustion read, and one of the largest content
// that there can be, which is no text.
func drives() map[string]Seed {
	large := CombustionDrive(string(noise(MaxContent)))
	return map[string]Seed{"Ignition": IgnitionDrive(ignition3), "Combustion": CombustionDrive("#!/bin/sh\n# combustion: network\n"), "the largest": large}
}

func TestAccSeed_drives(t *testing.T) {
	acctest.Case(t, "isoinfo finds the file of a drive in its folder, by Rock Ridge, Joliet and plain names, byte by byte and up to 10 MiB; blkid its label; what genisoimage and xorriso write has the same digest")
	need(t, needIsoinfo, needBlkid, needGenisoimage, needXorriso)
	for name, s := range drives() {
		t.Run(name, func(t *testing.T) {
			dir, f := t.TempDir(), s.Files[0]
			iso := writeFile(t, filepath.Join(dir, "drive.iso"), mustISO(t, s))
			for option, file := range map[string]string{"-R": f.Name, "-J": f.Name, "-l": plainPath(f.Name)} {
				got := run(t, "isoinfo", option, "-x", "/"+file, "-i", iso)
				// With -l it prints a list, too.
				if got != string(f.Data) && !(option == "-l" && strings.Contains(got, string(f.Data))) {
					t.Errorf("isoinfo %s -x /%s: %d bytes, want %d", option, file, len(got), len(f.Data))
				}
				if list := run(t, "isoinfo", option, "-f", "-i", iso); !slices.Contains(strings.Split(list, "\n"), "/"+file) {
					t.Errorf("isoinfo %s -f lacks /%s:\n%s", option, file, list)
				}
			}
			if got := strings.Fields(run(t, "blkid", "-p", "-o", "export", iso)); !slices.Contains(got, "LABEL="+s.Label) || !slices.Contains(got, "TYPE=iso9660") {
				t.Errorf("blkid: %s", got)
			}
			if list := run(t, "isoinfo", "-R", "-p", "-i", iso); !strings.Contains(list, strings.ToUpper(filepath.Dir(f.Name))) && !strings.Contains(list, filepath.Dir(f.Name)) {
				t.Errorf("the path table lacks the folder:\n%s", list)
			}
			source := filepath.Join(dir, "source")
			writeFile(t, filepath.Join(source, f.Name), f.Data)
			for _, command := range [][]string{{"genisoimage", "-quiet", "-J", "-r"}, {"xorriso", "-as", "mkisofs", "-quiet", "-J", "-r"}} {
				out := filepath.Join(dir, command[0]+".iso")
				run(t, command[0], append(command[1:], "-V", s.Label, "-o", out, source)...)
				b, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				if got := read(t, b); got.Digest() != s.Digest() {
					t.Errorf("read what %s wrote: %q with %d files", command[0], got.Label, len(got.Files))
				}
			}
		})
	}
}

// plainPath is how a reader shows a file that knows no extension.
func plainPath(name string) string {
	dir, base, _ := strings.Cut(name, "/")
	up := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, strings.ToUpper(s))
	}
	return up(dir) + "/" + up(base) + ".;1"
}

func TestAccSeed_cloudInitReadsTheLargest(t *testing.T) {
	acctest.Case(t, "cloud-init's NoCloud reads 10 MiB of user data whole")
	modules := cloudInit(t)
	large := "#!/bin/sh\n" + strings.Repeat("# a comment\n", (MaxContent-10-len(sampleMeta))/12)
	iso := writeFile(t, filepath.Join(t.TempDir(), "large.iso"), mustISO(t, CloudInit(large, sampleMeta, nil)))
	var got []struct {
		Found    bool    `json:"found"`
		UserData *string `json:"user-data"`
	}
	judge(t, modules, nil, &got, "image", iso)
	if len(got) != 1 || !got[0].Found || got[0].UserData == nil || *got[0].UserData != large {
		t.Error("it did not read what was put in")
	}
}

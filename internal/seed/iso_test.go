package seed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/kdomanski/iso9660"
)

const (
	sampleUser    = "#cloud-config\nhostname: web-1\n"
	sampleMeta    = "instance-id: web-1\n"
	sampleNetwork = "version: 2\nethernets:\n  eth0: {dhcp4: true}\n"
)

func sample() Seed {
	network := sampleNetwork
	return CloudInit(sampleUser, sampleMeta, &network)
}

func mustISO(t testing.TB, s Seed) []byte {
	t.Helper()
	b, err := s.ISO()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(t testing.TB, b []byte) Seed {
	t.Helper()
	s, err := ReadISO(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The digest and the bytes are promises: users' states and file names hold the
// one, and the other makes a file in the store comparable on any machine. If
// this test fails, every seed of every user would change.
func TestGolden(t *testing.T) {
	for name, c := range map[string]struct {
		seed          Seed
		digest, image string
		size          int
	}{
		"cloud-init": {sample(), "sha256:54745307a1d856e93a5265cb3eb1f18da70eb5810cf00aca963c3cebb54fa052",
			"d8d87fe01728b23e81866c39e646b1e2e8939cefce855fd585b3984bda23dcff", 57344},
		"Ignition": {IgnitionDrive(ignition3), "sha256:345a83bc7eca0fa626bd97a6f4b5e35ca1f8ea92e6b5169195258fc584ac881b",
			"abacb79fa9950cae984e7c3ed38f0baccff66a3d18a9e5378bbfccb571e66b5f", 57344},
		"Combustion": {CombustionDrive("#!/bin/sh\n# combustion: network\necho hello\n"), "sha256:e2c220fbf3e03081bb9dc100024d55f1abb4f94a7d77989cef305434e037ecb4",
			"537079eaf0986670d68ce829a6533070b7cdd5834be7099d2ee372b19e3bed30", 57344},
	} {
		if got := c.seed.Digest().Tagged(); got != c.digest {
			t.Errorf("%s: digest %s, want %s", name, got, c.digest)
		}
		iso := mustISO(t, c.seed)
		sum := sha256.Sum256(iso)
		if got := hex.EncodeToString(sum[:]); got != c.image || len(iso) != c.size {
			t.Errorf("%s: image %s of %d bytes, want %s of %d", name, got, len(iso), c.image, c.size)
		}
	}
}

// The same promise for what is stored as it is: the digest stands in file names.
func TestGoldenPlain(t *testing.T) {
	for name, c := range map[string]struct {
		plain  Plain
		digest string // SHA-256 of the text without its last line end
		end    string
	}{
		"Ignition":   {Ignition(ignition3 + "\n"), "d8636f1e83cff0947ca63c1149600f6c29d7a3564a8ca44601748268c0ffddc3", ".ign"},
		"Combustion": {Combustion("#!/bin/sh\n"), "3af71adb278ad4af33c144b78fa1ae708da03b773d98324ae991a7daedb53ca2", ".sh"},
	} {
		if got := c.plain.Digest().Tagged(); got != "sha256:"+c.digest {
			t.Errorf("%s: digest %s, want %s", name, got, c.digest)
		}
		if got, want := FileName("web", c.plain), "web-sha256-"+c.digest+c.end; got != want {
			t.Errorf("%s: file %s, want %s", name, got, want)
		}
	}
}

func TestDigest(t *testing.T) {
	empty := ""
	network := sampleNetwork
	seeds := map[string]Seed{
		"sample":                sample(),
		"no network":            CloudInit(sampleUser, sampleMeta, nil),
		"empty network":         CloudInit(sampleUser, sampleMeta, &empty),
		"other user data":       CloudInit(sampleUser+" ", sampleMeta, &network),
		"bytes moved":           CloudInit(sampleUser+"i", sampleMeta[1:], &network),
		"bytes moved back":      CloudInit(sampleUser[:len(sampleUser)-1], "\n"+sampleMeta, &network),
		"contents swapped":      CloudInit(sampleMeta, sampleUser, &network),
		"other label":           {Label: "CIDATA", Files: sample().Files},
		"nothing":               {Label: "cidata"},
		"name and data joined":  {Label: "cidata", Files: []File{{Name: "ab", Data: []byte("c")}}},
		"name and data joined2": {Label: "cidata", Files: []File{{Name: "a", Data: []byte("bc")}}},
	}
	seen := map[Digest]string{}
	for name, s := range seeds {
		d := s.Digest()
		if other, taken := seen[d]; taken {
			t.Errorf("%q and %q have one digest", name, other)
		}
		seen[d] = name
		for _, text := range []string{d.String(), d.Tagged()} {
			if back, err := ParseDigest(text); err != nil || back != d {
				t.Errorf("ParseDigest(%q) = %v, %v", text, back, err)
			}
		}
	}
	reversed := sample()
	slices.Reverse(reversed.Files)
	if reversed.Digest() != sample().Digest() {
		t.Error("the digest depends on the order of the files")
	}
	if !bytes.Equal(mustISO(t, reversed), mustISO(t, sample())) {
		t.Error("the image depends on the order of the files")
	}
	for _, text := range []string{"", "sha256:", "md5:00", strings.Repeat("0", 63), strings.Repeat("g", 64), strings.Repeat("0", 66)} {
		if _, err := ParseDigest(text); err == nil {
			t.Errorf("ParseDigest(%q) succeeded", text)
		}
	}
}

// folders are n folders with two files each.
func folders(n int) (files []File) {
	for i := range n {
		for _, name := range []string{"a file", "b"} {
			files = append(files, File{Name: fmt.Sprintf("folder-%d/%s", i, name), Data: []byte{byte(i)}})
		}
	}
	return files
}

func TestRoundTrip(t *testing.T) {
	many := Seed{Label: "cidata"}
	for i := range 60 { // more than one sector of directory
		many.Files = append(many.Files, File{Name: fmt.Sprintf("a-rather-long-name-of-a-file-%03d.txt", i), Data: []byte(strings.Repeat("x", i*100))})
	}
	sizes := Seed{Label: "CIDATA"}
	for _, n := range []int{0, 1, 2047, 2048, 2049, 4096} {
		sizes.Files = append(sizes.Files, File{Name: fmt.Sprintf("size_%d", n), Data: bytes.Repeat([]byte{'y'}, n)})
	}
	for name, s := range map[string]Seed{
		"sample": sample(), "no files": {Label: "x"}, "many": many, "sizes": sizes,
		"longest names": {Label: strings.Repeat("l", 16), Files: []File{{Name: strings.Repeat("n", 64), Data: []byte("1")}, {Name: strings.Repeat("n", 63) + "m", Data: []byte("2")}}},
		"folders":       {Label: "x", Files: append(folders(8), many.Files[0], File{Name: "folder-0/" + strings.Repeat("n", 64), Data: []byte("3")}, File{Name: "FOLDER_0"})},
		"Ignition":      IgnitionDrive("{}"),
		"Combustion":    CombustionDrive("#!/bin/sh\n"),
		"same plain":    {Label: "x", Files: []File{{Name: "a-b"}, {Name: "a_b"}, {Name: "a.b"}, {Name: "A b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			iso := mustISO(t, s)
			for scheme, image := range map[string][]byte{"Rock Ridge": iso, "Joliet": withoutRockRidge(iso)} {
				got := read(t, image)
				if got.Digest() != s.Digest() {
					t.Errorf("read by %s: %+v, want %+v", scheme, got, s)
				}
			}
			if got := read(t, withoutJoliet(withoutRockRidge(iso))); len(got.Files) != len(s.Files) || got.Label != s.Label {
				t.Errorf("read by plain names: %+v, want %+v", got, s)
			}
		})
	}
}

// withoutRockRidge spoils the mark by which readers know that there is any.
func withoutRockRidge(iso []byte) []byte {
	return bytes.Replace(iso, []byte{'S', 'P', 7, 1, 0xbe, 0xef}, []byte{'s', 'p', 7, 1, 0xbe, 0xef}, 1)
}

// withoutJoliet spoils the escape sequence of the supplementary descriptor.
func withoutJoliet(iso []byte) []byte { return bytes.Replace(iso, []byte("%/E"), []byte("%/X"), 1) }

func TestPlainNames(t *testing.T) {
	s := read(t, withoutJoliet(withoutRockRidge(mustISO(t, sample()))))
	for _, name := range []string{"user_data", "meta_data", "network_config"} {
		if _, ok := s.File(name); !ok {
			t.Errorf("no %s in %v", name, s)
		}
	}
}

func TestISORefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		seed Seed
		want string
	}{
		"no label":         {Seed{}, `label ""`},
		"long label":       {Seed{Label: "seventeen letters"}, "1 to 16"},
		"label not ASCII":  {Seed{Label: "cidatä"}, "printable ASCII"},
		"label with space": {Seed{Label: "cidata "}, `label "cidata "`},
		"dots":             {Seed{Label: "x", Files: []File{{Name: ".."}}}, `file name ".."`},
		"no name":          {Seed{Label: "x", Files: []File{{}}}, `file name ""`},
		"long name":        {Seed{Label: "x", Files: []File{{Name: strings.Repeat("n", 65)}}}, "1 to 64"},
		"folder in folder": {Seed{Label: "x", Files: []File{{Name: "a/b/c"}}}, "in the root or in a folder of it"},
		"no folder":        {Seed{Label: "x", Files: []File{{Name: "/a"}}}, "1 to 64"},
		"no file":          {Seed{Label: "x", Files: []File{{Name: "a/"}}}, "1 to 64"},
		"folder and file":  {Seed{Label: "x", Files: []File{{Name: "a/b"}, {Name: "a"}}}, "a file has that name"},
		"many folders":     {Seed{Label: "x", Files: folders(9)}, "more than 8 folders"},
		"semicolon":        {Seed{Label: "x", Files: []File{{Name: "a;1"}}}, "none of \\"},
		"name not ASCII":   {Seed{Label: "x", Files: []File{{Name: "ä"}}}, "printable ASCII"},
		"one name twice":   {Seed{Label: "x", Files: []File{{Name: "a"}, {Name: "a"}}}, `two files are called "a"`},
		"larger than fits": {CloudInit(strings.Repeat("#", MaxContent), sampleMeta, nil), "larger than 10 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.seed.ISO()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	if _, err := CloudInit(strings.Repeat("#", MaxContent-len(sampleMeta)), sampleMeta, nil).ISO(); err != nil {
		t.Errorf("the largest seed: %v", err)
	}
}

// A seed that the incumbent's generator wrote is the same seed, though its image
// has neither Rock Ridge nor Joliet, and a date in it.
func TestReadISOOfAnotherLibrary(t *testing.T) {
	w, err := iso9660.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Cleanup()
	for _, f := range sample().Files {
		if err := w.AddFile(bytes.NewReader(f.Data), f.Name); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := w.WriteTo(&b, LabelCloudInit); err != nil {
		t.Fatal(err)
	}
	if got := read(t, b.Bytes()); got.Digest() != sample().Digest() {
		t.Errorf("read %+v", got)
	}
	if bytes.Equal(b.Bytes(), mustISO(t, sample())) {
		t.Error("the other library writes the same bytes: this test shows nothing")
	}
}

// at returns a copy of the image with other bytes at an offset.
func at(image []byte, offset int, b ...byte) []byte {
	image = bytes.Clone(image)
	copy(image[offset:], b)
	return image
}

func TestReadISORefuses(t *testing.T) {
	iso := mustISO(t, sample())
	root := sectorRoot * sectorSize
	first := root // the first record that is neither the root itself nor its parent
	for ; iso[first+32] == 1; first += int(iso[first]) {
	}
	use := first + 33 + int(iso[first+32]) + 1 - int(iso[first+32])%2 // its system use area: NM, then PX
	if string(iso[use:use+2]) != "NM" {
		t.Fatalf("no name at %d: %q", use, iso[use:use+2])
	}
	nm, px := use, use+int(iso[use+2])
	le := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	for name, tc := range map[string]struct {
		image []byte
		want  string
	}{
		"empty":               {nil, "beyond its end"},
		"short":               {iso[:33000], "beyond its end"},
		"zeros":               {make([]byte, 65536), "no volume descriptor"},
		"text":                {bytes.Repeat([]byte("not an image "), 5000), "no volume descriptor"},
		"only a terminator":   {append(make([]byte, 32768), iso[sectorTerminator*sectorSize:]...), "no primary volume descriptor"},
		"no terminator":       {append(bytes.Clone(iso[:sectorPrimary*sectorSize]), bytes.Repeat(iso[sectorPrimary*sectorSize:sectorJoliet*sectorSize], 100)...), "directory record"},
		"descriptors cut off": {iso[:sectorTerminator*sectorSize], "beyond its end"},
		"block size":          {at(iso, sectorPrimary*sectorSize+128, 0, 4), "blocks of 1024 bytes"},
		"root far away":       {at(iso, sectorPrimary*sectorSize+158, le(1<<31)...), "beyond its end"},
		"root huge":           {at(iso, sectorPrimary*sectorSize+166, le(1<<31)...), "more or larger directories"},
		"root empty":          {at(iso, sectorPrimary*sectorSize+166, le(0)...), "root directory of 0 bytes"},
		"record too short":    {at(iso, first, 10), "directory record of 10 bytes"},
		"record too long":     {at(iso, root, 33), "directory record of 33 bytes"},
		"no name":             {at(iso, first+32, 0), "a name of 0 bytes"},
		"name too long":       {at(iso, first+32, 250), "a name of 250 bytes"},
		"interleaved":         {at(iso, first+26, 1), "interleaved"},
		"file far away":       {at(iso, first+2, le(1<<30)...), "beyond its end"},
		"file huge":           {at(iso, first+10, le(1<<31)...), "more or larger files"},
		"files too large":     {append(at(iso, first+10, le(maxReadContent)...), make([]byte, 2*maxReadContent)...), "MiB of files"},
		"several extents":     {at(iso, first+25, flagMultiExtent), "more or larger files"},
		"file as directory":   {at(iso, first+25, flagDirectory), "neither a file nor a directory"},
		"link":                {at(iso, nm, 'S', 'L'), "a link"},
		"name of itself":      {at(iso, nm+4, 2), "a Rock Ridge name that is none"},
		"entry too short":     {at(iso, nm+2, 3), "system use entry of 3 bytes"},
		"entry too long":      {at(iso, px+2, 200), "system use entry of 200 bytes"},
		"mode too short":      {at(iso, px+2, 8, 1, 0, 0, 0, 0, 'X', 'X', 28), "mode of 8 bytes"},
		"device":              {at(iso, px+4, le(0o060644)...), "neither a file nor a directory"},
		"slash in a name":     {at(iso, nm+5, '/'), `an entry called "/`},
		"NUL in a name":       {at(iso, nm+5, 0), "an entry called"},
		"two of one name":     {bytes.Replace(iso, []byte("NM\x0e\x01\x00meta-data"), []byte("NM\x0e\x01\x00user-data"), 1), `two entries called "user-data"`},
		"continuation short":  {at(iso, px, 'C', 'E', 8, 1, 0, 0, 0, 0, 'X', 'X', 28), "continuation entry of 8 bytes"},
		"continuation huge":   {at(iso, px, slices.Concat([]byte{'C', 'E', 28, 1}, both32(1), both32(0), both32(1<<20), []byte{'X', 'X', 8})...), "continuation area of"},
		"continuation away":   {at(iso, px, slices.Concat([]byte{'C', 'E', 28, 1}, both32(1<<30), both32(0), both32(10), []byte{'X', 'X', 8})...), "beyond its end"},
		"continuation loop":   {at(iso, px, slices.Concat([]byte{'C', 'E', 28, 1}, both32(uint32(root/sectorSize)), both32(uint32(px-root)), both32(28), []byte{'X', 'X', 8})...), "continuation areas"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ReadISO(bytes.NewReader(tc.image), int64(len(tc.image)))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrFormat) {
				t.Errorf("%v, error %v, want one with %q", s, err, tc.want)
			}
		})
	}
}

// A directory that is its own child is met only without Rock Ridge's modes.
func TestReadISOEndsInLoops(t *testing.T) {
	iso := withoutJoliet(withoutRockRidge(mustISO(t, sample())))
	first := sectorRoot * sectorSize
	for ; iso[first+32] == 1; first += int(iso[first]) {
	}
	loop := at(at(iso, first+25, flagDirectory), first+2, binary.LittleEndian.AppendUint32(nil, sectorRoot)...)
	_, err := ReadISO(bytes.NewReader(loop), int64(len(loop)))
	if err == nil || !strings.Contains(err.Error(), "contains itself") {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestReadISOReportsFailures(t *testing.T) {
	broken := errors.New("connection lost")
	if _, err := ReadISO(failing{broken}, 1<<20); !errors.Is(err, broken) || errors.Is(err, ErrFormat) {
		t.Errorf("error %v, want the reader's", err)
	}
	if _, err := ReadISO(failing{io.EOF}, 1<<20); !errors.Is(err, ErrFormat) {
		t.Errorf("error %v, want a complaint about the image", err)
	}
}

// The input is a list of changes to a good image, three bytes each: where, in the
// sectors that hold structure, and what.
func FuzzReadISO(f *testing.F) {
	iso := mustISO(f, sample())
	images := [][]byte{iso, withoutRockRidge(iso), withoutJoliet(withoutRockRidge(iso))}
	f.Add(byte(0), []byte{})
	f.Add(byte(1), []byte{0x08, 0x9e, 0xff})
	f.Add(byte(2), []byte{0x38, 0x00, 0x22, 0x38, 0x20, 0x07})
	f.Fuzz(func(t *testing.T, which byte, changes []byte) {
		b := bytes.Clone(images[int(which)%len(images)])
		for c := range slices.Chunk(changes, 3) {
			if len(c) == 3 {
				structure := b[systemSectors*sectorSize:]
				structure[(int(c[0])<<8|int(c[1]))%len(structure)] = c[2]
			}
		}
		s, err := ReadISO(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		total := 0
		for _, file := range s.Files {
			total += len(file.Data)
		}
		if total > maxReadContent || len(s.Files) > maxReadFiles {
			t.Errorf("%d files of %d bytes", len(s.Files), total)
		}
	})
}

// Whatever can be written is read back as the same seed.
func FuzzRoundTrip(f *testing.F) {
	f.Add("cidata", "user-data", []byte(sampleUser), "meta-data", []byte(sampleMeta))
	f.Add("x", "a-b", []byte{}, "a_b", []byte{0})
	f.Fuzz(func(t *testing.T, label, name1 string, data1 []byte, name2 string, data2 []byte) {
		s := Seed{Label: label, Files: []File{{name1, data1}, {name2, data2}}}
		iso, err := s.ISO()
		if err != nil {
			return
		}
		if got := read(t, iso); got.Digest() != s.Digest() {
			t.Errorf("wrote %+v, read %+v", s, got)
		}
	})
}

package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// What a volume is made from acts once, and images are never read to compare
// them. A seed is the exception, be it an image or a plain text (seed_plain.go):
// it is small, the guest reads it at every boot, and the path of the file that it
// comes from tells its digest. So a volume that
// holds one is read back, and the definition says, in the place of the URL, the
// digest of what is really there. All comparison is by digest: in which store a
// seed lies, and which program wrote the image, makes no difference.

// seedURL is where the configuration says which seed a volume holds.
const seedURL = "create.content.url"

// digestTag begins the URL in a definition, which is a digest and no place.
const digestTag = "sha256:"

// seedDigest takes the digest of a seed from a URL.
func seedDigest(url string) (seed.Digest, bool) {
	if strings.HasPrefix(url, digestTag) {
		d, err := seed.ParseDigest(url)
		return d, err == nil
	}
	_, d, ok := seed.ParsePath(url)
	return d, ok
}

// sameSeed says whether two URLs mean seeds of the same content.
func sameSeed(a, b string) bool {
	x, okX := seedDigest(a)
	y, okY := seedDigest(b)
	return okX && okY && x == y
}

// renewsSeed says that `create` is compared with the host: the configuration
// names a seed, or what is not known yet, for a volume that holds one or did.
func renewsSeed(_ string, desired, baseline, actual tree.Value) tree.Path {
	isSeed := func(v tree.Value) bool { _, ok := seedDigest(v.At("content.url").Str()); return ok }
	if (isSeed(actual) || isSeed(baseline)) && (isSeed(desired) || desired.IsUnknown() || desired.With("on_change", tree.NullValue).HasUnknown()) {
		return tree.ParsePath("content.url")
	}
	return nil
}

// followsSeed says that a volume may grow with the seed in it.
func followsSeed(pattern string) []string {
	if pattern == seedURL {
		return []string{"capacity"}
	}
	return nil
}

// judgeSeed says what a change of the seed in a volume means.
func judgeSeed(v *kind.Verdict, j kind.Judgement, c change.Change) {
	name, status := j.Prior.Attr("name").Str(), j.Prior.Attr("status")
	if status.Attr("users").Len() > 0 && !status.Attr("medium").Bool() {
		v.Refusals = append(v.Refusals, refuseNoMedium(name, textsOf(status.Attr("users"))))
	}
	if c.Kind == change.Drift {
		v.Warnings = append(v.Warnings, kind.Problem{
			Path: c.Path, Summary: fmt.Sprintf("The seed in volume %q was changed on the host", name),
			Detail: fmt.Sprintf("It holds %s; the last apply left %s there, which the configuration still wants. The apply writes that again.", heldText(c.Actual), heldText(c.Baseline)),
		})
	}
}

func heldText(actual tree.Value) string {
	if actual.IsNull() {
		return "no seed any more"
	}
	return kind.HideCredentials(actual.Str())
}

func textsOf(list tree.Value) []string {
	out := make([]string, list.Len())
	for i, e := range list.Elems() {
		out[i] = e.Str()
	}
	return out
}

func refuseNoMedium(name string, users []string) kind.Problem {
	return kind.Problem{
		Path: tree.ParsePath(seedURL), Summary: fmt.Sprintf("Refusing to change the content of volume %q", name),
		Detail: fmt.Sprintf("It is used by %s, and not only as a CD: what is not in a drive cannot be taken out, and would change under its user. Nothing was changed. "+
			"Make another volume under another name for the new content; or write the old content's seed.", strings.Join(users, "; ")),
	}
}

// Where ISO 9660 has its primary volume descriptor, and the fields of it.
const (
	isoHeader     = 16 * 2048
	isoHeaderSize = 2048
	isoBlocks     = 80 // how many sectors the image has
)

// seedLabels are the labels by which guests find a seed: cloud-init's NoCloud
// and config drive, ignition, combustion.
var seedLabels = []string{"cidata", "config-2", "ignition", "combustion"}

// maxSeed is the size in bytes up to which an image may be a seed.
const maxSeed = 16 << 20

// seedSight is the seed in a volume.
type seedSight struct {
	found  bool
	plain  bool // a text, no image
	digest seed.Digest
	size   uint64 // bytes from the beginning of the volume in which it lies; 0 if it was not read
}

func (s seedSight) tagged() tree.Value {
	if !s.found {
		return tree.NullValue
	}
	return tree.StringValue(s.digest.Tagged())
}

// withSeed adds to a definition what the volume holds.
func (s *volumeSight) withSeed(definition tree.Value) tree.Value {
	if !s.seed.found {
		return definition
	}
	return definition.SetAt(seedURL, s.seed.tagged())
}

// lookForSeed finds out whether the volume holds a seed, and which. last is what
// was known of it: a file of that size which nobody has written to since holds
// what it held. That a volume cannot be read matters only if it has a seed.
func (s *volumeSight) lookForSeed(ctx context.Context, state, last tree.Value) error {
	told := last.At(seedURL).Str()
	if d, ok := seedDigest(told); ok && s.untouchedSince(last) {
		s.seed = seedSight{found: true, digest: d}
		return nil
	}
	_, expected := seedDigest(state.At(seedURL).Str())
	expected = expected || told != ""
	if !s.maySeed(expected) {
		return nil
	}
	err := s.readSeed(ctx, seed.IsPlainPath(state.At(seedURL).Str()))
	if err != nil && !expected {
		tflog.Warn(ctx, "a volume cannot be read; it counts as one without a seed", map[string]any{"volume": s.name, "error": err.Error()})
		return nil
	}
	return err
}

// untouchedSince says whether the volume's file is the one of a definition, and
// has not been written to since.
func (s *volumeSight) untouchedSince(last tree.Value) bool {
	if s.definition.Attr("type").Str() != "file" {
		return false // the times of a device say nothing of its content
	}
	for _, at := range []string{"target.timestamps.mtime", "target.timestamps.ctime", "key", "pool"} {
		if is := s.definition.At(at); is.IsNull() || !tree.Equal(is, last.At(at)) {
			return false
		}
	}
	// What was agreed is in a definition as it was written; the file has the size in bytes.
	return tree.Equal(s.definition.At("physical"), last.At("physical")) && !last.At("physical").IsNull()
}

// maySeed says whether it is worth while to look: at a small raw volume, and at
// what libvirt or the state takes for an image of a CD.
func (s *volumeSight) maySeed(expected bool) bool {
	size, ok := s.size().Uint()
	format := s.definition.At("target.format.type").Str()
	sort := s.definition.Attr("type").Str()
	switch {
	case !ok || size == 0, sort != "file" && sort != "block", format != "raw" && format != "iso" && format != "":
		return false
	case !s.definition.Attr("backing_store").IsNull(), !s.definition.At("target.encryption").IsNull():
		return false
	}
	return expected || format == "iso" || size <= maxSeed
}

// readSeed reads the volume, if it begins like a seed. plain says that it has a
// text, as far as is known.
func (s *volumeSight) readSeed(ctx context.Context, plain bool) error {
	s.seed = seedSight{}
	capacity, _ := s.size().Uint()
	begin := uint64(0)
	if capacity > maxSeed {
		begin = isoHeader // too large for a plain text
	}
	head, err := s.download(ctx, begin, min(capacity, isoHeader+isoHeaderSize)-begin)
	if err != nil {
		return err
	}
	size, ok := seedSize(head[min(isoHeader-begin, uint64(len(head))):], capacity)
	if !ok && begin == 0 {
		return s.readPlain(ctx, head, capacity, plain)
	}
	if !ok {
		return nil
	}
	image, err := s.download(ctx, 0, size)
	if err != nil {
		return err
	}
	content, err := seed.ReadISO(bytes.NewReader(image), int64(len(image)))
	if errors.Is(err, seed.ErrFormat) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the seed in volume %s: %w", s.name, err)
	}
	s.seed = seedSight{found: true, digest: content.Digest(), size: size}
	return nil
}

func (s *volumeSight) download(ctx context.Context, offset, length uint64) ([]byte, error) {
	var b bytes.Buffer
	if err := s.vol.Download(ctx, &b, offset, length); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// seedSize says from the primary volume descriptor of an image whether it may be
// a seed, and how many bytes of a volume of that capacity it takes.
func seedSize(header []byte, capacity uint64) (size uint64, ok bool) {
	if len(header) < isoHeaderSize || header[0] != 1 || string(header[1:6]) != "CD001" {
		return 0, false
	}
	label := strings.ToLower(strings.TrimRight(string(header[40:72]), " \x00"))
	if !slices.Contains(seedLabels, label) {
		return 0, false
	}
	if capacity <= maxSeed {
		return capacity, true
	}
	size = uint64(binary.LittleEndian.Uint32(header[isoBlocks:])) * isoHeaderSize
	return size, size > isoHeader && size <= min(maxSeed, capacity)
}

// compareSeed compares what the volume holds with what the configuration names,
// if that is a seed.
func (s *volumeSight) compareSeed(planned tree.Value) error {
	want, isSeed := seedDigest(planned.At(seedURL).Str())
	if !isSeed || s.seed.found && s.seed.digest == want || !s.maySeed(true) {
		return nil // also where it is in a pool that cannot be read
	}
	return kind.Refuse(kind.Problem{
		Path: tree.ParsePath(seedURL), Summary: fmt.Sprintf("Volume %q does not hold the seed that was written to it", s.name),
		Detail: fmt.Sprintf("Read back, it holds %s, not %s.", heldText(s.seed.tagged()), want.Tagged()),
	})
}

// isSeedNamed says whether content is to be taken for the seed that its name
// tells. An image whose name has the checksum of its own file looks alike, and is
// none: it is too large, or carries no label of a seed.
func (c *content) isSeedNamed(url string) (bool, error) {
	_, named := seedDigest(url)
	switch {
	case !named || c.size > maxSeed:
		return false, nil
	case seed.IsPlainPath(url):
		_, ok, err := c.plain()
		return ok, err
	case c.size < isoHeader+isoHeaderSize:
		return false, nil
	}
	header := make([]byte, isoHeaderSize)
	if _, err := c.file.ReadAt(header, isoHeader); err != nil {
		return false, fmt.Errorf("read %s: %w", c.shown, err)
	}
	_, labelled := seedSize(header, c.size)
	return labelled, nil
}

// holdsSeed refuses content that is not the seed that its name tells.
func (c *content) holdsSeed(url string) error {
	want, _ := seedDigest(url)
	got, err := c.digest(url)
	if err != nil {
		return fmt.Errorf("%s has the name of a seed: %w", c.shown, err)
	}
	if got != want {
		return kind.Refuse(kind.Problem{
			Path: tree.ParsePath(seedURL), Summary: "The image of a seed is not what its name says",
			Detail: fmt.Sprintf("%s holds %s. Delete the file: the resource that it belongs to (libvirt_cloudinit_disk, libvirt_ignition, libvirt_combustion) puts it back at the next plan.", c.shown, got.Tagged()),
		})
	}
	return nil
}

// digest is that of the seed in the content, which its name promises.
func (c *content) digest(url string) (seed.Digest, error) {
	if seed.IsPlainPath(url) {
		d, ok, err := c.plain()
		if err == nil && !ok {
			err = errors.New("it is no text")
		}
		return d, err
	}
	got, err := seed.ReadISO(c.file, int64(c.size))
	if err != nil {
		return seed.Digest{}, err
	}
	return got.Digest(), nil
}

package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestSameSeed(t *testing.T) {
	first, second := seed.CloudInit("a", "b", nil), seed.CloudInit("c", "d", nil)
	one, two := first.Digest(), second.Digest()
	file := func(c seed.Content) string { return "/somewhere/" + seed.FileName("x", c) }
	cases := []struct {
		a, b string
		want bool
	}{
		{file(first), one.Tagged(), true},
		{"file://" + file(first), one.Tagged(), true},
		{file(first), "/elsewhere/" + seed.FileName("other name", first), true},
		{file(first), file(second), false},
		{file(first), two.Tagged(), false},
		{"/x/cloudinit.iso", "/x/cloudinit.iso", false}, // equal to the letter is the caller's to see
		{"", "", false},
		{"/s/" + seed.FileName("x", seed.Ignition("{}")), seed.Ignition("{}").Digest().Tagged(), true},
		{"/s/" + seed.FileName("x", seed.Ignition("{}")), seed.Ignition("{ }").Digest().Tagged(), false},
		{"sha256:zz", "sha256:zz", false},
		{file(first) + "?x", one.Tagged(), false},
	}
	for _, c := range cases {
		if sameSeed(c.a, c.b) != c.want || sameSeed(c.b, c.a) != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, !c.want)
		}
	}
}

func TestSeedSize(t *testing.T) {
	header := func(label string, sectors uint32) []byte {
		h := make([]byte, isoHeaderSize)
		copy(h, "\x01CD001\x01")
		copy(h[40:], label+strings.Repeat(" ", 32-len(label)))
		binary.LittleEndian.PutUint32(h[isoBlocks:], sectors)
		return h
	}
	image, err := seed.CloudInit("#cloud-config\n", "instance-id: x\n", nil).ISO()
	if err != nil {
		t.Fatal(err)
	}
	noCD := header("cidata", 27)
	noCD[1] = 'X'
	cases := map[string]struct {
		header   []byte
		capacity uint64
		size     uint64
		ok       bool
	}{
		"our own":               {image[isoHeader : isoHeader+isoHeaderSize], uint64(len(image)), uint64(len(image)), true},
		"small: all of it":      {header("cidata", 27), 60000, 60000, true},
		"in capitals":           {header("CIDATA", 27), 60000, 60000, true},
		"config drive":          {header("config-2", 27), 60000, 60000, true},
		"large: as it says":     {header("cidata", 27), 100 << 20, 27 * 2048, true},
		"large image":           {header("cidata", 9000), 100 << 20, 9000 * 2048, false},
		"says nothing":          {header("cidata", 0), 100 << 20, 0, false},
		"an installer":          {header("Debian 12", 27), 60000, 0, false},
		"no label":              {header("", 27), 60000, 0, false},
		"no image of a CD":      {noCD, 60000, 0, false},
		"a partition table":     {make([]byte, isoHeaderSize), 60000, 0, false},
		"ends before":           {header("cidata", 27)[:100], 60000, 0, false},
		"longer than the media": {header("cidata", 8192), 16<<20 + 2048, 16 << 20, true},
	}
	for name, c := range cases {
		if size, ok := seedSize(c.header, c.capacity); ok != c.ok || ok && size != c.size {
			t.Errorf("%s: %d, %v", name, size, ok)
		}
	}
}

func TestUntouchedSince(t *testing.T) {
	def := tree.NullValue.With("type", tree.StringValue("file")).With("key", tree.StringValue("/p/x")).With("pool", tree.StringValue("p")).
		With("physical", tree.IntValue(55296)).SetAt("target.timestamps.mtime", tree.StringValue("1.5")).SetAt("target.timestamps.ctime", tree.StringValue("1.5"))
	s := &volumeSight{definition: def}
	if !s.untouchedSince(def) || !s.untouchedSince(def.SetAt("target.timestamps.atime", tree.StringValue("9"))) {
		t.Error("a file that was only read counts as written to")
	}
	for _, at := range []string{"target.timestamps.mtime", "target.timestamps.ctime", "key", "pool", "physical"} {
		for _, v := range []tree.Value{tree.NullValue, tree.StringValue("2")} {
			if s.untouchedSince(def.SetAt(at, v)) {
				t.Errorf("%s became %s, and it counts as untouched", at, v)
			}
		}
		if (&volumeSight{definition: def.SetAt(at, tree.NullValue)}).untouchedSince(def.SetAt(at, tree.NullValue)) {
			t.Errorf("without %s nothing is known", at)
		}
	}
	block := def.With("type", tree.StringValue("block"))
	if (&volumeSight{definition: block}).untouchedSince(block) {
		t.Error("the times of a device say nothing")
	}
}

func TestJudgeSeed(t *testing.T) {
	k := NewVolume(nil)
	one, two := seed.CloudInit("a", "b", nil), seed.CloudInit("c", "d", nil)
	path := func(c seed.Content) string { return "/s/" + seed.FileName("x", c) }
	state := func(running, medium bool, users ...string) tree.Value {
		return tree.NullValue.With("name", tree.StringValue("v")).SetAt(seedURL, tree.StringValue(path(one))).
			SetAt("status.users", texts(users)).SetAt("status.running", tree.BoolValue(running)).SetAt("status.medium", tree.BoolValue(medium))
	}
	cases := map[string]struct {
		prior   tree.Value
		kind    change.Kind
		effect  change.Effect
		refused bool
		warned  bool
	}{
		"nobody uses it":      {state(false, false), change.Intent, change.EffectNone, false, false},
		"in a drive, off":     {state(false, true, "domain g (defined), disk sda"), change.Intent, change.EffectNone, false, false},
		"in a drive, running": {state(true, true, "domain g (running), disk sda"), change.Intent, change.EffectLive, false, false},
		"as a disk":           {state(true, false, "domain g (running), disk vda"), change.Intent, change.EffectLive, true, false},
		"tampered with":       {state(true, true, "domain g (running), disk sda"), change.Drift, change.EffectLive, false, true},
	}
	for name, c := range cases {
		v := k.Judge(kind.Judgement{Prior: c.prior, Planned: c.prior, Changes: []change.Change{{
			Path: tree.ParsePath(seedURL), Kind: c.kind, Desired: tree.StringValue(path(two)), Actual: tree.StringValue(one.Digest().Tagged()), Baseline: tree.StringValue(two.Digest().Tagged()),
		}}})
		if v.Outcome != "update" || v.Effect != c.effect || len(v.Refusals) > 0 != c.refused || len(v.Warnings) > 0 != c.warned {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Not all that has a digest in its name is a seed.
func TestIsSeedNamed(t *testing.T) {
	content := seed.CloudInit("a", "b", nil)
	iso, err := content.ISO()
	if err != nil {
		t.Fatal(err)
	}
	relabelled := bytes.Replace(iso, []byte("cidata"), []byte("DEBIAN"), 1)
	if bytes.Equal(iso, relabelled) {
		t.Fatal("the image has no label")
	}
	large := append(bytes.Clone(iso), make([]byte, maxSeed)...)
	named := seed.FileName("x", content)
	const script = "#!/bin/sh\n"
	plain := seed.FileName("x", seed.Combustion(script))
	for name, c := range map[string]struct {
		file   string
		image  []byte
		isSeed bool
		says   string // what holdsSeed says of it
	}{
		"a seed":                    {named, iso, true, ""},
		"of another digest":         {seed.FileName("x", seed.CloudInit("c", "d", nil)), iso, true, "is not what its name says"},
		"of a plain name":           {"x.iso", iso, false, ""},
		"the image of a system":     {named, relabelled, false, ""},
		"an image that is large":    {named, large, false, ""},
		"an image that is small":    {named, []byte("hello"), false, ""},
		"an image cut off too soon": {named, iso[:isoHeader], false, ""},
		"a script":                  {plain, []byte(script), true, ""},
		"a configuration":           {seed.FileName("x", seed.Ignition("{}")), []byte("{}"), true, ""},
		"a script that was changed": {plain, []byte(script + "echo\n"), true, "is not what its name says"},
		"a script of no text":       {plain, []byte(script + "\x00\x01"), false, ""},
		"a script with zeros":       {plain, []byte(script + "\x00"), false, ""},
		"a script with line ends":   {plain, []byte(script + "\n\n"), true, ""},
	} {
		file := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(file, c.image, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := open(context.Background(), file, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := got.isSeedNamed(file); is != c.isSeed || err != nil {
			t.Errorf("%s: %v, %v", name, is, err)
		} else if is {
			if err := got.holdsSeed(file); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
		got.close()
	}
}

// A guest that was started after the plan is not touched.
func TestRefuseStarted(t *testing.T) {
	off, on := user{name: "g", place: "disk sda"}, user{name: "g", place: "disk sda", running: true}
	for name, c := range map[string]struct {
		users     []user
		announced change.Effect
		refused   bool
	}{
		"nobody":           {nil, change.EffectNone, false},
		"off":              {[]user{off}, change.EffectNone, false},
		"started since":    {[]user{off, on}, change.EffectNone, true},
		"with a copy":      {[]user{{name: "g", place: "sys_info[0]", running: true, once: true}}, change.EffectNone, false},
		"as was announced": {[]user{off, on}, change.EffectLive, false},
	} {
		err := refuseStarted(c.users, c.announced, "v", seedURL)
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "is not as it was when the plan was made") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What becomes of a volume does not make its content unknown: an image is one, and a
// seed is one, whatever on_change turns out to be.
func TestRenewsSeedByItsURL(t *testing.T) {
	path := "/s/web-sha256-" + strings.Repeat("a", 64) + ".iso"
	actual := made("content.url", digestTag+strings.Repeat("b", 64))
	open := func(v tree.Value) tree.Value { return v.With("on_change", tree.UnknownValue) }
	for name, c := range map[string]struct {
		desired tree.Value
		want    bool
	}{
		"a seed":              {made("content.url", path), true},
		"a seed, or a volume": {open(made("content.url", path)), true},
		"an image":            {made("content.url", "/x"), false},
		"an image, or both":   {open(made("content.url", "/x")), false},
		"not known":           {open(tree.ObjectValue(nil).SetAt("content.url", tree.UnknownValue)), true},
		"nothing is known":    {tree.UnknownValue, true},
	} {
		if got := renewsSeed("create", c.desired, tree.NullValue, actual); (got != nil) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

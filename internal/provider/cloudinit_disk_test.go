package provider

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// seedDir is a directory with images and what is not one.
func seedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	good := map[string]string{"user-data": seedUser, "meta-data": seedMeta}
	with := func(name, content string) map[string]string {
		files := map[string]string{name: content}
		for k, v := range good {
			if k != name {
				files[k] = v
			}
		}
		return files
	}
	own, err := seed.CloudInit(seedUser, seedMeta, nil).ISO()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"good.iso":       foreignImage("cidata", good),
		"upper.iso":      foreignImage("CIDATA", good),
		"network.iso":    foreignImage("cidata", with("network-config", "version: 2\n")),
		"vendor.iso":     foreignImage("cidata", with("vendor-data", "#cloud-config\n")),
		"label.iso":      foreignImage("config-2", good),
		"incomplete.iso": foreignImage("cidata", map[string]string{"user-data": seedUser}),
		"binary.iso":     foreignImage("cidata", with("user-data", "\x1f\x8b\x08")),
		"text.iso":       []byte("no image"),
		"no-extension":   foreignImage("cidata", good),
		".iso":           foreignImage("cidata", good),
		seed.FileName("web/1", seed.CloudInit(seedUser, seedMeta, nil)): own,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo.iso"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func importSeed(id string) (*cloudinitDiskModel, error) {
	m, err := (&stored{kind: cloudinitDiskKind}).load(id)
	if err != nil {
		return nil, err
	}
	return m.(*cloudinitDiskModel), nil
}

func TestImportSeed(t *testing.T) {
	dir := seedDir(t)
	own := seed.FileName("web/1", seed.CloudInit(seedUser, seedMeta, nil))
	for id, want := range map[string]string{
		dir + "/good.iso":          "good",
		dir + "/upper.iso":         "upper",
		dir + "/network.iso":       "network",
		dir + "/no-extension":      "no-extension",
		dir + "/" + own:            "web/1",
		"web=" + dir + "/good.iso": "web",
		"a=b=" + dir + "/" + own:   "a=b",
	} {
		m, err := importSeed(id)
		if err != nil {
			t.Errorf("importSeed(%q): %v", id, err)
			continue
		}
		network := types.StringNull()
		if strings.HasSuffix(id, "network.iso") {
			network = types.StringValue("version: 2\n")
		}
		if m.Name.ValueString() != want || m.UserData.ValueString() != seedUser || m.MetaData.ValueString() != seedMeta || !m.NetworkConfig.Equal(network) || !m.Protect.IsNull() {
			t.Errorf("importSeed(%q) = %+v, want name %q", id, m, want)
		}
	}
	for id, want := range map[string]string{
		"":                         "not the absolute path",
		"web":                      "not the absolute path",
		"web=seed.iso":             "not the absolute path",
		"=" + dir + "/good.iso":    `the name ""`,
		dir + "/.iso":              `the name ""`,
		dir + "/missing.iso":       "no such file",
		dir:                        "not a regular file",
		dir + "/fifo.iso":          "not a regular file",
		dir + "/text.iso":          seed.ErrFormat.Error(),
		dir + "/vendor.iso":        `contains "vendor-data", for which this resource has no attribute`,
		dir + "/label.iso":         `has the label "config-2"`,
		dir + "/incomplete.iso":    "lacks user-data or meta-data",
		"b=" + dir + "/binary.iso": "user-data in " + dir + "/binary.iso is not text in UTF-8",
	} {
		if m, err := importSeed(id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("importSeed(%q) = %+v, error %v, want one with %q", id, m, err, want)
		}
	}
}

// A plan cannot know the path where there is no store.
func TestSeedWithoutStore(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	r := &cloudinitDisk{stored{kind: cloudinitDiskKind, settings: &Data{}}}
	m := cloudinitDiskModel{storedFile: storedFile{Name: types.StringValue("web")}, UserData: types.StringValue(seedUser), MetaData: types.StringValue(seedMeta)}
	diags := r.compute(&m, nil)
	if len(diags) != 1 || diags[0].Summary() != `Could not plan seed "web"` || !strings.Contains(diags[0].Detail(), "set one of them, or seed_store") {
		t.Errorf("%v", diags)
	}
}

// The parts together can be too large though each is not.
func TestSeedThatIsTooLarge(t *testing.T) {
	large := "#!/bin/sh\n" + strings.Repeat("#", seed.MaxContent-100)
	m := cloudinitDiskModel{storedFile: storedFile{Name: types.StringValue("web")}, UserData: types.StringValue(large), MetaData: types.StringValue(seedMeta + strings.Repeat("#", 100))}
	r := &cloudinitDisk{stored{kind: cloudinitDiskKind, settings: &Data{}}}
	if diags := r.check(&m, nil); diags.HasError() {
		t.Fatalf("%v", diags)
	}
	diags := r.compute(&m, nil)
	if len(diags) != 1 || !strings.Contains(diags[0].Detail(), "larger than 10 MiB together") {
		t.Errorf("%v", diags)
	}
}

func TestSeedIdentifier(t *testing.T) {
	model := func(id, name string) *storedFile {
		m := &storedFile{ID: types.StringValue(id), Name: types.StringValue(name)}
		if id == "" {
			m.ID = types.StringNull()
		}
		return m
	}
	for name, tc := range map[string]struct {
		prior *storedFile
		want  string
	}{
		"new":                       {nil, "b"},
		"renamed":                   {model("a", "a"), "b"},
		"from another provider":     {model("0123456789abcdef", "a"), "0123456789abcdef"},
		"without one":               {model("", "a"), "b"},
		"another's, by chance ours": {model("b", "b"), "b"},
	} {
		if got := model("", "b").identifier(tc.prior); got.ValueString() != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestConfigureSeed(t *testing.T) {
	r := &cloudinitDisk{}
	var resp resource.ConfigureResponse
	r.Configure(context.Background(), resource.ConfigureRequest{}, &resp)
	if resp.Diagnostics.HasError() || r.settings != nil {
		t.Errorf("without data: %v", resp.Diagnostics)
	}
	r.Configure(context.Background(), resource.ConfigureRequest{ProviderData: "?"}, &resp)
	if !resp.Diagnostics.HasError() {
		t.Error("data of a wrong type was accepted")
	}
}

type keys map[string][]byte

func (k keys) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) { return k[key], nil }
func (k keys) SetKey(_ context.Context, key string, value []byte) diag.Diagnostics {
	k[key] = value
	return nil
}

func TestSuperseded(t *testing.T) {
	ctx, k := context.Background(), keys{}
	if paths, diags := superseded(ctx, k); paths != nil || diags != nil {
		t.Errorf("nothing recorded: %v, %v", paths, diags)
	}
	if diags := setSuperseded(ctx, k, "/a"); diags != nil {
		t.Error(diags)
	}
	if paths, diags := superseded(ctx, k); len(paths) != 1 || paths[0] != "/a" || diags != nil {
		t.Errorf("%v, %v", paths, diags)
	}
	k[supersededKey] = []byte(`{"of another version": 1}`)
	if _, diags := superseded(ctx, k); len(diags) != 1 || diags.HasError() {
		t.Errorf("unreadable record: %v", diags)
	}
}

// The file before the last one goes when there is another one. An update that has
// the same file leaves it: a guest may have that, until its own update.
func TestSupersede(t *testing.T) {
	store, err := seed.OpenStore(t.TempDir(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	put := func(user string) *cloudinitDiskModel {
		t.Helper()
		placed, err := store.Put("web", seed.CloudInit(user, seedMeta, nil))
		if err != nil {
			t.Fatal(err)
		}
		return &cloudinitDiskModel{storedFile: storedFile{Name: types.StringValue("web"), Path: types.StringValue(placed.Path)}}
	}
	there := func(m *cloudinitDiskModel) bool { _, err := os.Lstat(m.Path.ValueString()); return err == nil }
	one, two, three := put("#!one\n"), put("#!two\n"), put("#!three\n")
	r, k := &stored{kind: cloudinitDiskKind, settings: &Data{}}, keys{}
	for i, step := range []struct {
		now      *cloudinitDiskModel
		was      string
		recorded []string
		a, b, c  bool // what is there
	}{
		{two, one.Path.ValueString(), []string{one.Path.ValueString()}, true, true, true},
		{two, two.Path.ValueString(), []string{one.Path.ValueString()}, true, true, true},
		{three, two.Path.ValueString(), []string{two.Path.ValueString()}, false, true, true},
		{three, "", []string{two.Path.ValueString()}, false, true, true}, // out of a pool
		{two, "", nil, false, true, true},                                // to what was superseded
		{three, two.Path.ValueString(), []string{two.Path.ValueString()}, false, true, true},
	} {
		if diags := r.supersede(t.Context(), k, k, step.now, step.was); len(diags) > 0 {
			t.Fatal(diags)
		}
		got, _ := superseded(t.Context(), k)
		if !slices.Equal(got, step.recorded) || there(one) != step.a || there(two) != step.b || there(three) != step.c {
			t.Errorf("step %d: %q; there: %v, %v, %v", i, got, there(one), there(two), there(three))
		}
	}
}

// Whoever comes to a file and whoever leaves it may do so in any order.
func TestSeedFiles(t *testing.T) {
	store, err := seed.OpenStore(t.TempDir(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	content := seed.CloudInit(seedUser, seedMeta, nil)
	path := store.Path("web", content)
	exists := func() bool { _, err := os.Lstat(path); return err == nil }
	put := func() {
		if _, err := store.Put("web", content); err != nil {
			t.Error(err)
		}
	}
	for range 100 {
		var files seedFiles
		put()
		var wait sync.WaitGroup
		wait.Go(func() { files.keep(path); put() })
		wait.Go(func() {
			if err := files.remove(path); err != nil {
				t.Error(err)
			}
		})
		wait.Wait()
		if !exists() {
			t.Fatal("the file is gone, and one object has it")
		}
		files.forget()
		if err := files.remove(path); err != nil || exists() {
			t.Fatalf("error %v, the file is there: %v", err, exists())
		}
	}
	var files seedFiles
	foreign := filepath.Join(store.Dir(), "precious.iso")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := files.remove(foreign); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(foreign); err != nil {
		t.Errorf("a file that is not ours: %v", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := files.remove(path); err == nil {
		t.Error("a failure to remove was swallowed")
	}
}

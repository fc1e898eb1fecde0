package provider

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	helper "github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/kdomanski/iso9660"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// seedFactories serve the provider itself. Seeds need no host, so none is there.
func seedFactories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"libvirt": func() (tfprotov6.ProviderServer, error) { return NewServer("test"), nil },
	}
}

// predecessorProvider serves the incumbent's resource.
type predecessorProvider struct{ dir string }

func (p predecessorProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "libvirt"
}

func (p predecessorProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = providerschema.Schema{Attributes: map[string]providerschema.Attribute{
		"seed_store": providerschema.StringAttribute{Optional: true}, // in our blocks, of no meaning here
	}}
}

func (p predecessorProvider) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {
}

func (p predecessorProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return predecessor(p) }}
}

func (p predecessorProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }

// predecessor is the incumbent's resource as its states show it: the same
// attributes without digest and protect, nothing sensitive, an identifier of 16
// digits, and a file in a directory that anybody may wipe.
type predecessor struct{ dir string }

type predecessorModel struct {
	ID            types.String `tfsdk:"id"`
	Name          types.String `tfsdk:"name"`
	UserData      types.String `tfsdk:"user_data"`
	MetaData      types.String `tfsdk:"meta_data"`
	NetworkConfig types.String `tfsdk:"network_config"`
	Path          types.String `tfsdk:"path"`
	Size          types.Int64  `tfsdk:"size"`
}

func (p predecessor) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "libvirt_cloudinit_disk"
}

func (p predecessor) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":             schema.StringAttribute{Computed: true},
		"name":           schema.StringAttribute{Required: true},
		"user_data":      schema.StringAttribute{Required: true},
		"meta_data":      schema.StringAttribute{Required: true},
		"network_config": schema.StringAttribute{Optional: true},
		"path":           schema.StringAttribute{Computed: true},
		"size":           schema.Int64Attribute{Computed: true},
	}}
}

func (p predecessor) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m predecessorModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	file := filepath.Join(p.dir, "cloudinit-0123456789abcdef.iso")
	if err := os.WriteFile(file, foreignImage("cidata", map[string]string{
		"user-data": m.UserData.ValueString(), "meta-data": m.MetaData.ValueString(),
	}), 0o644); err != nil {
		resp.Diagnostics.AddError("write", err.Error())
	}
	m.ID, m.Path, m.Size = types.StringValue("0123456789abcdef"), types.StringValue(file), types.Int64Value(45056)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (p predecessor) Read(context.Context, resource.ReadRequest, *resource.ReadResponse)       {}
func (p predecessor) Update(context.Context, resource.UpdateRequest, *resource.UpdateResponse) {}
func (p predecessor) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// foreignImage is an image that another program wrote.
func foreignImage(label string, files map[string]string) []byte {
	w, err := iso9660.NewWriter()
	if err != nil {
		panic(err)
	}
	defer w.Cleanup()
	for name, content := range files {
		if err := w.AddFile(strings.NewReader(content), name); err != nil {
			panic(err)
		}
	}
	var b bytes.Buffer
	if err := w.WriteTo(&b, label); err != nil {
		panic(err)
	}
	return b.Bytes()
}

const (
	seedUser  = "#cloud-config\nhostname: web-1\n"
	seedUser2 = "#cloud-config\nhostname: web-2\n"
	seedMeta  = "instance-id: web-1\n"
)

// seedBlock is a resource block; more are further lines of it.
func seedBlock(label, name, userData string, more ...string) string {
	return fmt.Sprintf("resource \"libvirt_cloudinit_disk\" %q {\n  name = %q\n  user_data = %q\n  meta_data = %q\n  %s\n}\n",
		label, name, userData, seedMeta, strings.Join(more, "\n  "))
}

func seedConfig(store string, blocks ...string) string {
	return fmt.Sprintf("provider \"libvirt\" {\n  seed_store = %q\n}\n%s", store, strings.Join(blocks, "\n"))
}

const theSeed = "libvirt_cloudinit_disk.a"

// imagePath is where a seed must lie.
func imagePath(store, name, userData string, network *string) string {
	return filepath.Join(store, seed.FileName(name, seed.CloudInit(userData, seedMeta, network)))
}

// holds checks that the directory contains exactly these files.
func holds(dir string, paths ...string) helper.TestCheckFunc {
	return func(*terraform.State) error {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		var got, want []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		for _, p := range paths {
			want = append(want, filepath.Base(p))
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s holds %v, want %v", dir, got, want)
		}
		return nil
	}
}

// image checks what an image contains.
func image(path, name, want string) helper.TestCheckFunc {
	return func(*terraform.State) error {
		content, err := readImage(path)
		if err != nil {
			return err
		}
		if got, _ := content.File(name); string(got) != want {
			return fmt.Errorf("%s of %s is %q, want %q", name, path, got, want)
		}
		return nil
	}
}

func attribute(name string, value any) helper.TestCheckFunc {
	return helper.TestCheckResourceAttr(theSeed, name, fmt.Sprint(value))
}

func action(a plancheck.ResourceActionType) plancheck.PlanCheck {
	return plancheck.ExpectResourceAction(theSeed, a)
}

func before(checks ...plancheck.PlanCheck) helper.ConfigPlanChecks {
	return helper.ConfigPlanChecks{PreApply: checks, PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

func known(attribute string, value knownvalue.Check) plancheck.PlanCheck {
	return plancheck.ExpectKnownValue(theSeed, tfjsonpath.New(attribute), value)
}

func unknown(attribute string) plancheck.PlanCheck {
	return plancheck.ExpectUnknownValue(theSeed, tfjsonpath.New(attribute))
}

// says matches a message that has the texts in this order, wherever the core
// breaks its lines.
func says(texts ...string) *regexp.Regexp {
	for i, text := range texts {
		texts[i] = strings.ReplaceAll(regexp.QuoteMeta(text), " ", `\s+`)
	}
	return regexp.MustCompile("(?s)" + strings.Join(texts, ".*"))
}

func TestAccCloudinitDisk_changesInPlace(t *testing.T) {
	acctest.Case(t, "a seed is created, changed, renamed and destroyed in place; path and digest are known in the plan")
	store := filepath.Join(t.TempDir(), "seeds")
	network := "version: 2\n"
	first, second := imagePath(store, "web", seedUser, nil), imagePath(store, "web", seedUser2, nil)
	third, fourth := imagePath(store, "web", seedUser2, &network), imagePath(store, "web/1", seedUser2, &network)
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: seedFactories(),
		CheckDestroy:             holds(store),
		Steps: []helper.TestStep{
			{
				Config: seedConfig(store, seedBlock("a", "web", seedUser)),
				ConfigPlanChecks: before(action(plancheck.ResourceActionCreate), known("path", knownvalue.StringExact(first)),
					known("id", knownvalue.StringExact("web")), known("size", knownvalue.Int64Exact(55296)),
					known("digest", knownvalue.StringExact(seed.CloudInit(seedUser, seedMeta, nil).Digest().Tagged()))),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectSensitiveValue(theSeed, tfjsonpath.New("user_data"))},
				Check: helper.ComposeTestCheckFunc(attribute("id", "web"), attribute("path", first), attribute("size", 55296),
					holds(store, first), image(first, "user-data", seedUser), image(first, "meta-data", seedMeta)),
			},
			{
				Config: seedConfig(store, seedBlock("a", "web", seedUser2)),
				ConfigPlanChecks: before(action(plancheck.ResourceActionUpdate), known("path", knownvalue.StringExact(second)),
					known("id", knownvalue.StringExact("web"))),
				// The image before stays: a guest may have it in its drive.
				Check: helper.ComposeTestCheckFunc(attribute("path", second), holds(store, first, second), image(second, "user-data", seedUser2)),
			},
			{
				Config:           seedConfig(store, seedBlock("a", "web", seedUser2, fmt.Sprintf("network_config = %q", network))),
				ConfigPlanChecks: before(action(plancheck.ResourceActionUpdate)),
				Check:            helper.ComposeTestCheckFunc(holds(store, second, third), image(third, "network-config", network)),
			},
			{
				Config: seedConfig(store, seedBlock("a", "web/1", seedUser2, fmt.Sprintf("network_config = %q", network))),
				ConfigPlanChecks: before(action(plancheck.ResourceActionUpdate), known("path", knownvalue.StringExact(fourth)),
					known("id", knownvalue.StringExact("web/1"))),
				Check: helper.ComposeTestCheckFunc(attribute("id", "web/1"), holds(store, third, fourth)),
			},
			{ // back again: the image that was superseded is the current one
				Config:           seedConfig(store, seedBlock("a", "web", seedUser2, fmt.Sprintf("network_config = %q", network))),
				ConfigPlanChecks: before(action(plancheck.ResourceActionUpdate)),
				Check:            helper.ComposeTestCheckFunc(holds(store, third, fourth)),
			},
			{
				Config:           seedConfig(store, seedBlock("a", "web", seedUser2)),
				ConfigPlanChecks: before(action(plancheck.ResourceActionUpdate)),
				Check: helper.ComposeTestCheckFunc(holds(store, second, third),
					helper.TestCheckNoResourceAttr(theSeed, "network_config")),
			},
		},
	})
}

func TestAccCloudinitDisk_unknownInputs(t *testing.T) {
	acctest.Case(t, "what depends on an input that is not known yet is unknown in the plan, and nothing else")
	store := filepath.Join(t.TempDir(), "seeds")
	late := func(value string) string {
		return fmt.Sprintf("resource \"terraform_data\" \"late\" {\n  input = %q\n}\n", value)
	}
	block := strings.Replace(seedBlock("a", "web", "X"), `"X"`, `"#cloud-config\nhostname: ${terraform_data.late.output}\n"`, 1)
	named := strings.Replace(seedBlock("a", "X", seedUser), `"X"`, "terraform_data.late.output", 1)
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: seedFactories(),
		CheckDestroy:             holds(store),
		Steps: []helper.TestStep{
			{
				Config: seedConfig(store, late("web-1"), block),
				ConfigPlanChecks: before(action(plancheck.ResourceActionCreate), unknown("path"), unknown("digest"), unknown("size"),
					known("id", knownvalue.StringExact("web"))),
				Check: holds(store, imagePath(store, "web", seedUser, nil)),
			},
			{
				Config:           seedConfig(store, late("web-2"), block),
				ConfigPlanChecks: before(action(plancheck.ResourceActionUpdate), unknown("path"), known("id", knownvalue.StringExact("web"))),
				Check:            holds(store, imagePath(store, "web", seedUser, nil), imagePath(store, "web", seedUser2, nil)),
			},
			{ // refused once it is known, before anything is written
				Config:      seedConfig(store, late("a: b: c"), block),
				ExpectError: says(`Invalid user_data of seed "web"`, "Line 2, column 12"),
			},
			{
				Config: seedConfig(store, late("other"), named),
				ConfigPlanChecks: before(action(plancheck.ResourceActionUpdate), unknown("path"), unknown("id"),
					known("digest", knownvalue.StringExact(seed.CloudInit(seedUser, seedMeta, nil).Digest().Tagged()))),
				Check: attribute("id", "other"),
			},
		},
	})
}

func TestAccCloudinitDisk_fileIsACache(t *testing.T) {
	acctest.Case(t, "a seed file that is gone, spoiled or in another store comes back with a refresh, and the plan is empty")
	store, other := filepath.Join(t.TempDir(), "seeds"), filepath.Join(t.TempDir(), "other")
	config, file := seedConfig(store, seedBlock("a", "web", seedUser)), imagePath(store, "web", seedUser, nil)
	elsewhere := imagePath(other, "web", seedUser, nil)
	step := func(spoil func() error) helper.TestStep {
		return helper.TestStep{
			Config: config,
			PreConfig: func() {
				if err := spoil(); err != nil {
					t.Fatal(err)
				}
			},
			ConfigPlanChecks: helper.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check:            helper.ComposeTestCheckFunc(holds(store, file), image(file, "user-data", seedUser), attribute("path", file)),
		}
	}
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: seedFactories(),
		CheckDestroy:             helper.ComposeTestCheckFunc(holds(store), holds(other)),
		Steps: []helper.TestStep{
			{Config: config, Check: holds(store, file)},
			step(func() error { return os.Remove(file) }),
			step(func() error { return os.RemoveAll(store) }),
			step(func() error { return os.WriteFile(file, []byte("spoiled"), 0o644) }),
			{ // another machine, or another user
				Config:           seedConfig(other, seedBlock("a", "web", seedUser)),
				ConfigPlanChecks: helper.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				Check:            holds(other, elsewhere),
			},
			{
				RefreshState: true,
				Check:        helper.ComposeTestCheckFunc(attribute("path", elsewhere)),
			},
			{ // the first store is nobody's business any more
				Config:    seedConfig(other, seedBlock("a", "web", seedUser2)),
				PreConfig: func() { _ = os.RemoveAll(store) },
				Check:     holds(other, elsewhere, imagePath(other, "web", seedUser2, nil)),
			},
		},
	})
}

func TestAccCloudinitDisk_storeThatFails(t *testing.T) {
	acctest.Case(t, "a store that cannot be written is an error for a new seed, and changes nothing in the plan of an old one")
	dir := t.TempDir()
	store := filepath.Join(dir, "seeds")
	block := func() error { return os.WriteFile(store, nil, 0o600) } // a file in place of the store
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: seedFactories(),
		CheckDestroy:             holds(store),
		Steps: []helper.TestStep{
			{
				PreConfig: func() {
					if err := block(); err != nil {
						t.Fatal(err)
					}
				},
				Config:      seedConfig(store, seedBlock("a", "web", seedUser)),
				ExpectError: says(`Could not create seed "web"`, "no directory: remove it, or set seed_store"),
			},
			{
				PreConfig: func() {
					if err := os.Remove(store); err != nil {
						t.Fatal(err)
					}
				},
				Config: seedConfig(store, seedBlock("a", "web", seedUser)),
			},
			{
				PreConfig: func() {
					if err := os.RemoveAll(store); err != nil {
						t.Fatal(err)
					}
					if err := block(); err != nil {
						t.Fatal(err)
					}
				},
				Config:           seedConfig(store, seedBlock("a", "web", seedUser)),
				ConfigPlanChecks: helper.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				Check:            attribute("path", imagePath(store, "web", seedUser, nil)),
			},
			{
				Config:      seedConfig(store, seedBlock("a", "web", seedUser2)),
				ExpectError: says(`Could not update seed "web"`, "set seed_store"),
			},
			{ // the failed update changed nothing
				PreConfig: func() {
					if err := os.Remove(store); err != nil {
						t.Fatal(err)
					}
				},
				Config:           seedConfig(store, seedBlock("a", "web", seedUser)),
				ConfigPlanChecks: helper.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				Check:            holds(store, imagePath(store, "web", seedUser, nil)),
			},
		},
	})
}

func TestAccCloudinitDisk_equalContent(t *testing.T) {
	acctest.Case(t, "two seeds of equal content have a file each, and the end of one leaves the other's")
	store := filepath.Join(t.TempDir(), "seeds")
	a, b := imagePath(store, "a", seedUser, nil), imagePath(store, "b", seedUser, nil)
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: seedFactories(),
		CheckDestroy:             holds(store),
		Steps: []helper.TestStep{
			{Config: seedConfig(store, seedBlock("a", "a", seedUser), seedBlock("b", "b", seedUser)), Check: holds(store, a, b)},
			{Config: seedConfig(store, seedBlock("a", "a", seedUser)), Check: helper.ComposeTestCheckFunc(holds(store, a), image(a, "user-data", seedUser))},
		},
	})
}

func TestAccCloudinitDisk_sharesAFileForAMoment(t *testing.T) {
	acctest.Case(t, "a seed whose block gets another label, or that is replaced before it is destroyed, still has its file after the apply")
	store := filepath.Join(t.TempDir(), "seeds")
	file := imagePath(store, "web", seedUser, nil)
	there := helper.ComposeTestCheckFunc(holds(store, file), image(file, "user-data", seedUser))
	successor := func(trigger string, more ...string) string {
		return seedConfig(store, seedBlock("b", "web", seedUser, more...), fmt.Sprintf("resource \"terraform_data\" \"t\" {\n  input = %q\n}\n", trigger))
	}
	lifecycle := "lifecycle {\n    create_before_destroy = true\n    replace_triggered_by  = [terraform_data.t]\n  }"
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: seedFactories(),
		CheckDestroy:             holds(store),
		Steps: []helper.TestStep{
			{Config: seedConfig(store, seedBlock("a", "web", seedUser))},
			// The predecessor goes first, as far as the core has a choice …
			{Config: successor("1"), Check: there},
			// … and last.
			{Config: successor("1", lifecycle), Check: there},
			{
				Config:           successor("2", lifecycle),
				ConfigPlanChecks: helper.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("libvirt_cloudinit_disk.b", plancheck.ResourceActionCreateBeforeDestroy)}},
				Check:            there,
			},
			{Config: successor("2", lifecycle), Taint: []string{"libvirt_cloudinit_disk.b"}, Check: there},
		},
	})
}

func TestAccCloudinitDisk_protect(t *testing.T) {
	acctest.Case(t, "a protected seed is not destroyed or replaced by a removed block, destroy or -replace, until protect is off")
	store := filepath.Join(t.TempDir(), "seeds")
	file := imagePath(store, "web", seedUser, nil)
	refusal := func(verb string) *regexp.Regexp {
		return says("Refusing to "+verb+` protected seed "web"`, "protect = true in its state", "protect = false")
	}
	trigger := func(value string) string {
		return fmt.Sprintf("resource \"terraform_data\" \"t\" {\n  input = %q\n}\n", value)
	}
	block := func(more ...string) string {
		return seedBlock("a", "web", seedUser, append(more, "lifecycle {\n    replace_triggered_by = [terraform_data.t]\n  }")...)
	}
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: seedFactories(),
		CheckDestroy:             holds(store),
		Steps: []helper.TestStep{
			{Config: seedConfig(store, trigger("1"), block()), Check: helper.TestCheckNoResourceAttr(theSeed, "protect")},
			{ // without protection it is replaced
				Config:           seedConfig(store, trigger("2"), block()),
				ConfigPlanChecks: before(action(plancheck.ResourceActionReplace)),
			},
			{
				Config: seedConfig(store, trigger("2"), block("protect = true")),
				ConfigPlanChecks: before(action(plancheck.ResourceActionUpdate), known("path", knownvalue.StringExact(file)),
					known("digest", knownvalue.NotNull()), known("size", knownvalue.NotNull())),
				Check: holds(store, file),
			},
			{Config: seedConfig(store, trigger("2")), ExpectError: refusal("destroy")},
			{Config: seedConfig(store, trigger("2"), block("protect = true")), Destroy: true, ExpectError: refusal("destroy")},
			{Config: seedConfig(store, trigger("3"), block("protect = true")), ExpectError: refusal("replace")},
			{Config: seedConfig(store, trigger("3"), block("protect = false")), ExpectError: refusal("replace")},
			{
				PreConfig: func() {
					if err := holds(store, file)(nil); err != nil {
						t.Error(err)
					}
				},
				Config:           seedConfig(store, trigger("2"), block("protect = false")),
				ConfigPlanChecks: before(action(plancheck.ResourceActionUpdate)),
			},
			{Config: seedConfig(store, trigger("3"), block("protect = false")), ConfigPlanChecks: before(action(plancheck.ResourceActionReplace))},
			{Config: seedConfig(store, trigger("3")), Check: holds(store)},
		},
	})
}

func TestAccCloudinitDisk_protectedFromOutside(t *testing.T) {
	acctest.Case(t, "a seed that says nothing itself is protected by the provider's configuration or the environment, at the time of the call")
	store := filepath.Join(t.TempDir(), "seeds")
	on := func(blocks ...string) string {
		return strings.Replace(seedConfig(store, blocks...), "seed_store", "protect = true\n  seed_store", 1)
	}
	t.Setenv("LIBVIRT_PROTECT", "")
	environment := func(value string) func() { return func() { _ = os.Setenv("LIBVIRT_PROTECT", value) } }
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: seedFactories(),
		CheckDestroy:             holds(store),
		Steps: []helper.TestStep{
			{Config: on(seedBlock("a", "web", seedUser))},
			{Config: on(), ExpectError: says(`Refusing to destroy protected seed "web"`, "protect in the provider's configuration")},
			{ // a tainted object: the core asks nobody before Delete
				Config:      on(seedBlock("a", "web", seedUser)),
				Taint:       []string{theSeed},
				ExpectError: says(`Refusing to destroy protected seed "web"`, "protect in the provider's configuration", "untaint ADDRESS"),
			},
			{
				PreConfig: environment("false"),
				Config:    on(seedBlock("a", "web", seedUser)),
			},
			{
				PreConfig:   environment("true"),
				Config:      seedConfig(store),
				ExpectError: says(`Refusing to destroy protected seed "web"`, "LIBVIRT_PROTECT in the environment"),
			},
			{PreConfig: environment("false"), Config: on(), Check: holds(store)},
		},
	})
}

func TestAccCloudinitDisk_checksInputs(t *testing.T) {
	acctest.Case(t, "inputs that a guest would ignore are refused in the plan, with the place and the way out")
	store := filepath.Join(t.TempDir(), "seeds")
	meta := func(block, value string) string {
		return strings.Replace(block, fmt.Sprintf("%q", seedMeta), fmt.Sprintf("%q", value), 1)
	}
	steps := []helper.TestStep{}
	for _, tc := range []struct {
		block string
		says  []string
	}{
		{seedBlock("a", " ", seedUser), []string{`Invalid name of seed " "`, "unique"}},
		{seedBlock("a", "web", "hostname: a\n"), []string{`Invalid user_data of seed "web"`, "put #cloud-config into its first line"}},
		{seedBlock("a", "web", "#cloud-config\na: 1\n b: 2\n"), []string{`Invalid user_data of seed "web"`, "Line 3, column 3"}},
		{meta(seedBlock("a", "web", seedUser), "local-hostname: web\n"), []string{`Invalid meta_data of seed "web"`, "no instance-id"}},
		{seedBlock("a", "web", seedUser, `network_config = "version: 3\n"`), []string{`Invalid network_config of seed "web"`, "Write version: 2"}},
	} {
		steps = append(steps, helper.TestStep{Config: seedConfig(store, tc.block), PlanOnly: true, ExpectError: says(tc.says...)})
	}
	steps = append(steps, helper.TestStep{ // a warning stops nothing
		Config:           seedConfig(store, seedBlock("a", "web", "#cloud-config\na: 1\na: 2\n")),
		ConfigPlanChecks: before(action(plancheck.ResourceActionCreate)),
	})
	helper.Test(t, helper.TestCase{ProtoV6ProviderFactories: seedFactories(), CheckDestroy: holds(store), Steps: steps})
}

func TestAccCloudinitDisk_takesOverTheIncumbent(t *testing.T) {
	acctest.Case(t, "the incumbent's state is taken as it is: the plan is empty, also with its file gone and an input we would refuse")
	old, store := t.TempDir(), filepath.Join(t.TempDir(), "seeds")
	const doubtful = "no header that cloud-init knows\n"
	foreign := filepath.Join(old, "cloudinit-0123456789abcdef.iso")
	file := imagePath(store, "web", doubtful, nil)
	config := seedConfig(store, seedBlock("a", "web", doubtful), "output \"id\" {\n  value = "+theSeed+".id\n}\n")
	helper.Test(t, helper.TestCase{
		CheckDestroy: holds(store),
		Steps: []helper.TestStep{
			{
				ProtoV6ProviderFactories: map[string]func() (tfprotov6.ProviderServer, error){
					"libvirt": providerserver.NewProtocol6WithError(predecessorProvider{old}),
				},
				Config: config,
				Check:  helper.ComposeTestCheckFunc(attribute("id", "0123456789abcdef"), holds(old, foreign)),
			},
			{
				ProtoV6ProviderFactories: seedFactories(),
				PreConfig:                func() { _ = os.Remove(foreign) }, // a reboot wiped it
				Config:                   config,
				ConfigPlanChecks:         before(plancheck.ExpectEmptyPlan()),
				Check: helper.ComposeTestCheckFunc(holds(store, file), image(file, "user-data", doubtful), attribute("path", file),
					attribute("id", "0123456789abcdef"), attribute("digest", seed.CloudInit(doubtful, seedMeta, nil).Digest().Tagged())),
			},
			{ // a change is in place, and keeps the identifier
				ProtoV6ProviderFactories: seedFactories(),
				PreConfig: func() {
					if err := os.WriteFile(foreign, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				},
				Config:           seedConfig(store, seedBlock("a", "web", seedUser)),
				ConfigPlanChecks: before(action(plancheck.ResourceActionUpdate), known("id", knownvalue.StringExact("0123456789abcdef"))),
				// The foreign file is not touched.
				Check: helper.ComposeTestCheckFunc(holds(old, foreign), holds(store, file, imagePath(store, "web", seedUser, nil))),
			},
		},
	})
}

func TestAccCloudinitDisk_import(t *testing.T) {
	acctest.Case(t, "a seed is imported from an image that another program wrote, and the next plan is empty")
	store, dir := filepath.Join(t.TempDir(), "seeds"), t.TempDir()
	foreign := filepath.Join(dir, "web.iso")
	if err := os.WriteFile(foreign, foreignImage("cidata", map[string]string{"user-data": seedUser, "meta-data": seedMeta}), 0o644); err != nil {
		t.Fatal(err)
	}
	imported := imagePath(store, "web", seedUser, nil)
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: seedFactories(),
		CheckDestroy:             helper.ComposeTestCheckFunc(holds(store), holds(dir, foreign)),
		Steps: []helper.TestStep{
			{
				Config:           seedConfig(store, seedBlock("a", "web", seedUser), fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", theSeed, foreign)),
				ConfigPlanChecks: before(action(plancheck.ResourceActionNoop)),
				Check:            helper.ComposeTestCheckFunc(attribute("id", "web"), attribute("path", imported), holds(store, imported)),
			},
			{ResourceName: theSeed, ImportState: true, ImportStateId: imported, ImportStateVerify: true},
			{ResourceName: theSeed, ImportState: true, ImportStateId: "web=" + foreign, ImportStateVerify: true},
			{ResourceName: theSeed, ImportState: true, ImportStateId: "web", ExpectError: says(`Could not import seed "web"`, "NAME=PATH")},
		},
	})
}

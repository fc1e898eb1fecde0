package provider

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

const (
	theIgnition   = "libvirt_ignition.a"
	theCombustion = "libvirt_combustion.a"
)

// textPair is an Ignition configuration and a Combustion script, each of which
// says word.
type textPair struct{ ignition, script string }

func pairOf(word string) textPair {
	return textPair{fmt.Sprintf(`{"ignition":{"version":"3.4.0"},"a":%q}`, word), "#!/bin/sh\necho " + word + "\n"}
}

// blocks are the blocks of both; more are further lines of each.
func (x textPair) blocks(name string, more ...string) string {
	text := ""
	for typ, content := range map[string]string{"ignition": x.ignition, "combustion": x.script} {
		text += fmt.Sprintf("resource \"libvirt_%s\" \"a\" {\n  name = %q\n  content = %q\n  %s\n}\n", typ, name, content, strings.Join(more, "\n  "))
	}
	return text
}

// paths are where both files must lie.
func (x textPair) paths(store, name string) []string {
	return []string{filepath.Join(store, seed.FileName(name, seed.Ignition(x.ignition))), filepath.Join(store, seed.FileName(name, seed.Combustion(x.script)))}
}

// drives are where both images must lie.
func (x textPair) drives(store, name string) []string {
	return []string{filepath.Join(store, seed.FileName(name, seed.IgnitionDrive(x.ignition))), filepath.Join(store, seed.FileName(name, seed.CombustionDrive(x.script)))}
}

// hold checks the content of both files, and what state says of them.
func (x textPair) hold(paths []string) helper.TestCheckFunc {
	checks := []helper.TestCheckFunc{}
	for i, content := range []string{x.ignition, x.script} {
		address := []string{theIgnition, theCombustion}[i]
		checks = append(checks, helper.TestCheckResourceAttr(address, "path", paths[i]), func(*terraform.State) error {
			got, err := os.ReadFile(paths[i])
			if err == nil && string(got) != content {
				err = fmt.Errorf("%s holds %q, want %q", paths[i], got, content)
			}
			return err
		})
	}
	return helper.ComposeTestCheckFunc(checks...)
}

func both(a plancheck.ResourceActionType) helper.ConfigPlanChecks {
	return before(plancheck.ExpectResourceAction(theIgnition, a), plancheck.ExpectResourceAction(theCombustion, a))
}

func TestAccStoredText_lifeOfBoth(t *testing.T) {
	acctest.Case(t, "an Ignition configuration and a Combustion script are created, changed, put on a drive and destroyed in place; the file is a cache; protect refuses their end")
	store, other := filepath.Join(t.TempDir(), "seeds"), filepath.Join(t.TempDir(), "seeds")
	a, b := pairOf("alpha"), pairOf("beta")
	create := both(plancheck.ResourceActionCreate)
	create.PreApply = append(create.PreApply,
		plancheck.ExpectKnownValue(theIgnition, tfjsonpath.New("path"), knownvalue.StringExact(a.paths(store, "web")[0])),
		plancheck.ExpectKnownValue(theCombustion, tfjsonpath.New("path"), knownvalue.StringExact(a.paths(store, "web")[1])),
		plancheck.ExpectKnownValue(theCombustion, tfjsonpath.New("size"), knownvalue.Int64Exact(int64(len(a.script)))),
		plancheck.ExpectKnownValue(theIgnition, tfjsonpath.New("digest"), knownvalue.StringExact(seed.Ignition(a.ignition).Digest().Tagged())))
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: seedFactories(),
		CheckDestroy:             holds(other),
		Steps: []helper.TestStep{
			{
				Config:           seedConfig(store, a.blocks("web")),
				ConfigPlanChecks: create,
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectSensitiveValue(theIgnition, tfjsonpath.New("content")),
					statecheck.ExpectSensitiveValue(theCombustion, tfjsonpath.New("content"))},
				Check: helper.ComposeTestCheckFunc(a.hold(a.paths(store, "web")), holds(store, a.paths(store, "web")...)),
			},
			{ // lost, and spoilt
				PreConfig: func() {
					_ = os.Remove(a.paths(store, "web")[0])
					_ = os.WriteFile(a.paths(store, "web")[1], []byte("spoilt"), 0o600)
				},
				Config:           seedConfig(store, a.blocks("web")),
				ConfigPlanChecks: before(plancheck.ExpectEmptyPlan()),
				Check:            a.hold(a.paths(store, "web")),
			},
			{ // another store
				PreConfig:        func() { _ = os.RemoveAll(store) },
				Config:           seedConfig(other, a.blocks("web")),
				ConfigPlanChecks: before(plancheck.ExpectEmptyPlan()),
				Check:            helper.ComposeTestCheckFunc(a.hold(a.paths(other, "web")), holds(store)),
			},
			{ // the file before stays until the next change
				Config:           seedConfig(other, b.blocks("web/1")),
				ConfigPlanChecks: both(plancheck.ResourceActionUpdate),
				Check:            helper.ComposeTestCheckFunc(b.hold(b.paths(other, "web/1")), holds(other, append(a.paths(other, "web"), b.paths(other, "web/1")...)...)),
			},
			{
				Config:           seedConfig(other, b.blocks("web/1", `format = "iso"`)),
				ConfigPlanChecks: both(plancheck.ResourceActionUpdate),
				Check: helper.ComposeTestCheckFunc(holds(other, append(b.paths(other, "web/1"), b.drives(other, "web/1")...)...),
					image(b.drives(other, "web/1")[0], seed.FileIgnition, b.ignition), image(b.drives(other, "web/1")[1], seed.FileCombustion, b.script)),
			},
			{
				Config:           seedConfig(other, b.blocks("web/1", "protect = true")),
				ConfigPlanChecks: both(plancheck.ResourceActionUpdate),
				Check:            b.hold(b.paths(other, "web/1")),
			},
			{Config: seedConfig(other), ExpectError: says(`Refusing to destroy protected Combustion script "web/1"`)},
			{Config: seedConfig(other), ExpectError: says(`Refusing to destroy protected Ignition configuration "web/1"`, "protect = false")},
			{Config: seedConfig(other, b.blocks("web/1", "protect = false")), ConfigPlanChecks: both(plancheck.ResourceActionUpdate)},
		},
	})
}

func TestAccStoredText_checksInputs(t *testing.T) {
	acctest.Case(t, "a configuration or a script that no guest takes is refused in the plan, with the place and the way out; a doubt stops nothing")
	store := filepath.Join(t.TempDir(), "seeds")
	refused := func(x textPair, want ...string) helper.TestStep {
		return helper.TestStep{Config: seedConfig(store, x.blocks("web")), PlanOnly: true, ExpectError: says(want...)}
	}
	good := pairOf("alpha")
	helper.Test(t, helper.TestCase{ProtoV6ProviderFactories: seedFactories(), CheckDestroy: holds(store), Steps: []helper.TestStep{
		refused(textPair{"{\n  \"ignition\": {},\n}", good.script}, `Invalid content of Ignition configuration "web"`, "Line 3, column 1", "jsonencode()"),
		refused(textPair{good.ignition, "#cloud-config\n"}, `Invalid content of Combustion script "web"`, "libvirt_cloudinit_disk"),
		{
			PreConfig:        func() { t.Helper(); nothingIn(t, store) },
			Config:           seedConfig(store, textPair{`{"ignition":{"version":"3.99.0"}}`, "echo\n"}.blocks("web")),
			ConfigPlanChecks: both(plancheck.ResourceActionCreate),
		},
	}})
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	if err := holds(dir)(nil); err != nil {
		t.Fatal(err)
	}
}

func TestAccStoredText_import(t *testing.T) {
	acctest.Case(t, "a configuration and a script are imported from files and from drives that another program wrote, and the next plan is empty")
	store, dir := filepath.Join(t.TempDir(), "seeds"), t.TempDir()
	a := pairOf("alpha")
	for name, b := range map[string][]byte{
		"web.ign": []byte(a.ignition), "web.sh": []byte(a.script), "padded.sh": []byte(a.script + "\x00\x00"), "binary.sh": {0xff, 0xfe},
		"ign.iso": foreignImage("ignition", map[string]string{seed.FileIgnition: a.ignition}), "sh.iso": foreignImage("COMBUSTION", map[string]string{seed.FileCombustion: a.script}),
		"more.iso": foreignImage("combustion", map[string]string{seed.FileCombustion: a.script, "combustion/key": "x"}), "other.iso": foreignImage("cidata", map[string]string{"user-data": "x"}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	from := func(to, id string) string { return fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", to, id) }
	bad := func(address, id string, want ...string) helper.TestStep {
		return helper.TestStep{ResourceName: address, ImportState: true, ImportStateId: id, ExpectError: says(want...)}
	}
	noop := both(plancheck.ResourceActionNoop)
	// What the steps import that throw away their states stays in the store.
	stay := holds(store, a.drives(store, "web")[0], a.drives(store, "sh")[1])
	helper.Test(t, helper.TestCase{ProtoV6ProviderFactories: seedFactories(), CheckDestroy: stay, Steps: []helper.TestStep{
		{
			Config:           seedConfig(store, a.blocks("web"), from(theIgnition, dir+"/web.ign"), from(theCombustion, "web="+dir+"/padded.sh")),
			ConfigPlanChecks: noop,
			Check:            a.hold(a.paths(store, "web")),
		},
		{ResourceName: theCombustion, ImportState: true, ImportStateId: a.paths(store, "web")[1], ImportStateVerify: true},
		{ResourceName: theIgnition, ImportState: true, ImportStateId: "web=" + dir + "/ign.iso", ImportStateCheck: imported("iso", a.ignition)},
		{ResourceName: theCombustion, ImportState: true, ImportStateId: dir + "/sh.iso", ImportStateCheck: imported("iso", a.script)},
		bad(theCombustion, "web", `Could not import Combustion script "web"`, "NAME=PATH"),
		bad(theCombustion, dir+"/binary.sh", "not text in UTF-8"),
		bad(theCombustion, dir+"/more.iso", "more files than combustion/script"),
		bad(theIgnition, dir+"/other.iso", `not one with the label "ignition"`),
		bad(theIgnition, dir+"/none.ign", "no such file"),
	}})
}

func imported(format, content string) helper.ImportStateCheckFunc {
	return func(all []*terraform.InstanceState) error {
		if len(all) != 1 || all[0].Attributes["format"] != format || all[0].Attributes["content"] != content {
			return fmt.Errorf("imported %v", all)
		}
		return nil
	}
}

// predecessorTexts serves the incumbent's resources: an identifier of 16 digits,
// and a file in a directory that anybody may wipe.
type predecessorTexts struct{ predecessorProvider }

func (p predecessorTexts) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = providerschema.Schema{Attributes: map[string]providerschema.Attribute{
		"seed_store": providerschema.StringAttribute{Optional: true}, // in our blocks, of no meaning here
	}}
}

func (p predecessorTexts) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (p predecessorTexts) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return predecessorText{typ: "ignition", dir: p.dir, end: ".ign"} },
		func() resource.Resource { return predecessorText{typ: "combustion", dir: p.dir, end: ".sh"} },
	}
}

type predecessorText struct {
	predecessor
	typ, dir, end string
}

type predecessorTextModel struct {
	ID      types.String `tfsdk:"id"`
	Name    types.String `tfsdk:"name"`
	Content types.String `tfsdk:"content"`
	Path    types.String `tfsdk:"path"`
	Size    types.Int64  `tfsdk:"size"`
}

func (p predecessorText) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "libvirt_" + p.typ
}

func (p predecessorText) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":      schema.StringAttribute{Computed: true},
		"name":    schema.StringAttribute{Required: true},
		"content": schema.StringAttribute{Required: true},
		"path":    schema.StringAttribute{Computed: true},
		"size":    schema.Int64Attribute{Computed: true},
	}}
}

func (p predecessorText) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m predecessorTextModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	file := filepath.Join(p.dir, p.typ+"-0123456789abcdef"+p.end)
	if err := os.WriteFile(file, []byte(m.Content.ValueString()), 0o644); err != nil {
		resp.Diagnostics.AddError("write", err.Error())
	}
	m.ID, m.Path, m.Size = types.StringValue("0123456789abcdef"), types.StringValue(file), types.Int64Value(int64(len(m.Content.ValueString())))
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func TestAccStoredText_takesOverTheIncumbent(t *testing.T) {
	acctest.Case(t, "the incumbent's state of a configuration and a script is taken as it is: the plan is empty, also with its files gone and content that we would refuse; a change is in place and keeps the identifier")
	old, store := t.TempDir(), filepath.Join(t.TempDir(), "seeds")
	doubtful, b := textPair{"no JSON", "#cloud-config\n"}, pairOf("beta")
	outputs := fmt.Sprintf("output \"ids\" {\n  value = [%s.id, %s.id]\n}\n", theIgnition, theCombustion)
	keeps := helper.ComposeTestCheckFunc(helper.TestCheckResourceAttr(theIgnition, "id", "0123456789abcdef"), helper.TestCheckResourceAttr(theCombustion, "id", "0123456789abcdef"))
	helper.Test(t, helper.TestCase{
		CheckDestroy: holds(store),
		Steps: []helper.TestStep{
			{
				ProtoV6ProviderFactories: map[string]func() (tfprotov6.ProviderServer, error){
					"libvirt": providerserver.NewProtocol6WithError(predecessorTexts{predecessorProvider{old}}),
				},
				Config: seedConfig(store, doubtful.blocks("web"), outputs),
				Check:  holds(old, "combustion-0123456789abcdef.sh", "ignition-0123456789abcdef.ign"),
			},
			{
				ProtoV6ProviderFactories: seedFactories(),
				PreConfig: func() { // a reboot wiped them
					_ = os.RemoveAll(old)
				},
				Config:           seedConfig(store, doubtful.blocks("web"), outputs),
				ConfigPlanChecks: before(plancheck.ExpectEmptyPlan()),
				Check:            helper.ComposeTestCheckFunc(keeps, doubtful.hold(doubtful.paths(store, "web"))),
			},
			{
				ProtoV6ProviderFactories: seedFactories(),
				Config:                   seedConfig(store, b.blocks("web"), outputs),
				ConfigPlanChecks:         both(plancheck.ResourceActionUpdate),
				Check:                    helper.ComposeTestCheckFunc(keeps, b.hold(b.paths(store, "web"))),
			},
		},
	})
}

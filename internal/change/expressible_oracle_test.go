package change

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// The oracle is the core's own rule: a small program of ours
// (testdata/oracle) that is compiled inside the module of OpenTofu, at the
// version of tools/tofu, because the packages it needs are internal. It is a
// unit test's helper and no acceptance test's: it needs Go and that module,
// which the build of tofu brings, and neither a host nor a core. Where the
// module cannot be had the test fails; it never skips.

const tofuModule = "github.com/opentofu/opentofu"

// buildOracle compiles the oracle and returns its path: 12 s with an empty
// build cache, 0.3 s with a full one.
func buildOracle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	core := filepath.Join(dir, "core")
	linkCore(t, tofuSource(t), core)
	// What tofu is built from decides the versions of everything else.
	for _, name := range []string{"go.mod", "go.sum"} {
		copyFile(t, filepath.Join("../../tools/tofu", name), filepath.Join(dir, name))
	}
	modfile := filepath.Join(dir, "go.mod")
	goTool(t, "mod", "edit", "-replace", tofuModule+"="+core, modfile)
	// Without -trimpath the name of the temporary directory would be part of
	// what is cached, and nothing would ever be found again.
	program := filepath.Join(dir, "oracle")
	goTool(t, "build", "-C", "../../tools/tofu", "-modfile", modfile, "-buildvcs=false", "-trimpath", "-o", program, tofuModule+"/oracle")
	return program
}

// tofuSource is the directory of OpenTofu's module, fetched if it is not there.
func tofuSource(t *testing.T) string {
	t.Helper()
	list := []string{"list", "-C", "../../tools/tofu", "-m", "-f", "{{.Dir}}", tofuModule}
	if found := goTool(t, list...); found != "" {
		return found
	}
	goTool(t, "mod", "download", "-C", "../../tools/tofu", tofuModule)
	found := goTool(t, list...)
	if found == "" {
		t.Fatal("the module of OpenTofu was downloaded and is nowhere")
	}
	return found
}

// linkCore makes a directory that is OpenTofu's module with the oracle in it,
// all links but for what is ours.
func linkCore(t *testing.T, source, core string) {
	t.Helper()
	ours := map[string]string{"oracle/main.go": "main.go.txt", "internal/getmodules/getmodules.go": "getmodules.go.txt"}
	for file, text := range ours {
		mkdir(t, filepath.Dir(filepath.Join(core, file)))
		copyFile(t, filepath.Join("testdata/oracle", text), filepath.Join(core, file))
	}
	for _, below := range []string{"", "internal"} {
		entries, err := os.ReadDir(filepath.Join(source, below))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			at := filepath.Join(core, below, e.Name())
			if _, err := os.Lstat(at); err == nil {
				continue
			}
			if err := os.Symlink(filepath.Join(source, below, e.Name()), at); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// planCall is one call of PlanResourceChange as the core judges it.
type planCall struct {
	typ                    *tree.Type
	prior, config, planned tree.Value
}

func (c planCall) String() string {
	return fmt.Sprintf("type    %s\nprior   %s\nconfig  %s\nplanned %s", describe(c.typ), c.prior, c.config, c.planned)
}

// describe writes an object type on one line, with r, o, c for what each
// attribute is.
func describe(t *tree.Type) string {
	switch t.Kind {
	case tree.List:
		return "[" + describe(t.Elem) + "]"
	case tree.Object:
		if len(t.Attrs) > 12 {
			return fmt.Sprintf("{%d attributes}", len(t.Attrs))
		}
		var parts []string
		for _, name := range t.Names() {
			a := t.Attrs[name]
			flags := ""
			for i, set := range []bool{a.Required, a.Optional, a.Computed} {
				if set {
					flags += "roc"[i : i+1]
				}
			}
			parts = append(parts, name+" "+flags+" "+describe(a.Type))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return t.String()
}

// verdict is what the core says of a call: the paths it refuses, sorted, or
// how it crashed.
type verdict struct {
	paths []string
	crash string
}

// askCore sends all the calls through one run of the oracle.
func askCore(t *testing.T, program string, calls []planCall) []verdict {
	t.Helper()
	cmd := exec.Command(program)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	asked := writeQuestions(stdin, calls)
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("oracle: %v\n%s", err, stderr.String())
	}
	if asked != nil {
		t.Fatal(asked)
	}
	answers := json.NewDecoder(&stdout)
	verdicts := make([]verdict, len(calls))
	for i := range verdicts {
		var a struct {
			Refused []struct{ Path, Message string }
			Panic   string
		}
		if err := answers.Decode(&a); err != nil {
			t.Fatalf("answer %d of %d: %v", i, len(calls), err)
		}
		verdicts[i].crash = a.Panic
		for _, r := range a.Refused {
			verdicts[i].paths = append(verdicts[i].paths, r.Path)
		}
		slices.Sort(verdicts[i].paths)
	}
	return verdicts
}

type wireAttribute struct {
	Name                         string
	Type                         json.RawMessage `json:",omitempty"`
	Attributes                   []wireAttribute `json:",omitempty"`
	List                         bool
	Required, Optional, Computed bool
}

type wireQuestion struct {
	Schema                 []wireAttribute `json:",omitempty"` // only if it is another one than before
	Prior, Config, Planned []byte
}

func writeQuestions(w io.Writer, calls []planCall) error {
	out := json.NewEncoder(w)
	var wire *wireEncoder
	for _, c := range calls {
		var q wireQuestion
		var err error
		if wire == nil || wire.typ != c.typ {
			wire = newWireEncoder(c.typ)
			if q.Schema, err = wire.schema(); err != nil {
				return err
			}
		}
		for v, into := range map[*tree.Value]*[]byte{&c.prior: &q.Prior, &c.config: &q.Config, &c.planned: &q.Planned} {
			if *into, err = wire.encode(*v); err != nil {
				return fmt.Errorf("%w\n%s", err, c)
			}
		}
		if err := out.Encode(q); err != nil {
			return err
		}
	}
	return nil
}

// wireEncoder is a resource that plans whatever it is told. Served by the
// provider's own adapter, it shows how the wire has a schema and a value.
type wireEncoder struct {
	protocol.Resource
	typ    *tree.Type
	next   tree.Value
	server tfprotov6.ProviderServer
}

// noProvider is a provider of nothing else.
type noProvider struct{ tfprotov6.ProviderServer }

func (noProvider) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return &tfprotov6.GetProviderSchemaResponse{}, nil
}

const wireType = "test_object"

func newWireEncoder(typ *tree.Type) *wireEncoder {
	w := &wireEncoder{typ: typ}
	w.server = protocol.NewServer(noProvider{}, []protocol.Resource{w}, nil)
	return w
}

func (w *wireEncoder) Schema() protocol.Schema {
	return protocol.Schema{TypeName: wireType, Type: w.typ}
}

func (w *wireEncoder) Plan(context.Context, protocol.PlanRequest) protocol.PlanResponse {
	return protocol.PlanResponse{Planned: w.next}
}

func (w *wireEncoder) encode(v tree.Value) ([]byte, error) {
	null := []byte{0xc0}
	if v.IsNull() {
		return null, nil
	}
	w.next = v
	object := &tfprotov6.DynamicValue{JSON: []byte("{}")}
	resp, err := w.server.PlanResourceChange(context.Background(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: wireType, Config: object, ProposedNewState: object, PriorState: &tfprotov6.DynamicValue{MsgPack: null},
	})
	if err != nil {
		return nil, err
	}
	for _, d := range resp.Diagnostics {
		return nil, fmt.Errorf("%s: %s", d.Summary, d.Detail)
	}
	return resp.PlannedState.MsgPack, nil
}

func (w *wireEncoder) schema() ([]wireAttribute, error) {
	resp, err := w.server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	for _, d := range resp.Diagnostics {
		return nil, fmt.Errorf("%s: %s", d.Summary, d.Detail)
	}
	return wireAttributes(resp.ResourceSchemas[wireType].Block.Attributes)
}

func wireAttributes(attrs []*tfprotov6.SchemaAttribute) ([]wireAttribute, error) {
	var out []wireAttribute
	for _, a := range attrs {
		w := wireAttribute{Name: a.Name, Required: a.Required, Optional: a.Optional, Computed: a.Computed}
		var err error
		if a.NestedType == nil {
			w.Type, err = json.Marshal(a.Type)
		} else {
			w.List = a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeList
			w.Attributes, err = wireAttributes(a.NestedType.Attributes)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

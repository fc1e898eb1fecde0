// Command docs writes docs/, the documentation that the registries show, from the provider's
// own schema, templates/ and examples/.
//
// tfplugindocs does the pages. What it makes of a schema with thousands of nested attributes is
// larger than the registries accept, though, so its templates leave a marker for the attributes
// of each resource and data source, and this program fills them in, far shorter. docs/design/ is
// written by hand and left alone.
//
// With -check nothing is written; the exit code is 1 if docs/ is not what would be written.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

const (
	address = "driftsafe/libvirt"
	short   = "libvirt"

	// maxPage is what the registries accept, in bytes: less than this.
	maxPage = 500_000
)

func main() {
	check := flag.Bool("check", false, "only compare docs/ with what would be written")
	top := flag.String("top", ".", "top `directory` of the checkout, with the provider and tfplugindocs in bin/")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *top, *check)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, top string, check bool) error {
	top, err := filepath.Abs(top)
	if err != nil {
		return fmt.Errorf("find the checkout: %w", err)
	}
	work, err := os.MkdirTemp("", "libvirt-docs-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer os.RemoveAll(work)
	raw, err := askSchema(ctx, top, work)
	if err != nil {
		return err
	}
	pages, err := generate(ctx, top, work, raw)
	if err != nil {
		return err
	}
	return settle(filepath.Join(top, "docs"), pages, check)
}

// askSchema asks a core for the schema of the provider in bin/.
func askSchema(ctx context.Context, top, work string) ([]byte, error) {
	cores, err := core.Available(top)
	if err != nil {
		return nil, err
	}
	if len(cores) == 0 {
		return nil, errors.New("ask for the schema: neither tofu nor terraform is installed")
	}
	dir := filepath.Join(work, "ask")
	settings := filepath.Join(work, "settings.rc")
	for path, content := range map[string]string{
		filepath.Join(dir, "main.tf"): fmt.Sprintf("terraform {\n  required_providers {\n    %s = { source = %q }\n  }\n}\n", short, address),
		settings:                      fmt.Sprintf("provider_installation {\n  dev_overrides { %q = %q }\n}\n", address, filepath.Join(top, "bin")),
	} {
		if err := write(path, []byte(content)); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, cores[0].Path, "providers", "schema", "-json")
	cmd.Dir = dir
	cmd.Env = append(core.Environ(os.Environ()), "TF_CLI_CONFIG_FILE="+settings)
	return output(cmd, "ask "+cores[0].Name+" for the schema")
}

// generate returns all pages by their path below docs/.
func generate(ctx context.Context, top, work string, raw []byte) (map[string][]byte, error) {
	schema, renamed, err := readSchema(raw, address, short)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(work, "schema.json")
	if err := write(file, renamed); err != nil {
		return nil, err
	}
	// tfplugindocs removes what it finds in the directory of the pages, so it gets a copy of its
	// sources and not the checkout.
	project := filepath.Join(work, "project")
	for _, name := range []string{"templates", "examples"} {
		if err := os.CopyFS(filepath.Join(project, name), os.DirFS(filepath.Join(top, name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("copy %s: %w", name, err)
		}
	}
	tool := filepath.Join(top, "bin", "tfplugindocs")
	common := []string{"--provider-dir", project, "--provider-name", "terraform-provider-" + short, "--providers-schema", file}
	cmd := exec.CommandContext(ctx, tool, append([]string{"generate", "--rendered-provider-name", short}, common...)...)
	if _, err := output(cmd, "generate pages"); err != nil {
		return nil, err
	}
	docs := filepath.Join(project, "docs")
	pages, err := readPages(docs)
	if err != nil {
		return nil, err
	}
	if err := fill(pages, schema); err != nil {
		return nil, err
	}
	for path, page := range pages {
		if err := write(filepath.Join(docs, path), page); err != nil {
			return nil, err
		}
	}
	if _, err := output(exec.CommandContext(ctx, tool, append([]string{"validate"}, common...)...), "validate pages"); err != nil {
		return nil, err
	}
	return pages, nil
}

// marker stands in a template for the attributes of the resource or data source of that name.
func marker(kind, name string) []byte {
	return []byte("<!-- attributes of " + kind + " " + name + " -->")
}

// fill puts the attributes where the markers are. Every marker must be filled, every resource
// must have one, and no page may be too large.
func fill(pages map[string][]byte, schema *Schema) error {
	for kind, all := range map[string]map[string]Resource{"resource": schema.Resources, "data source": schema.DataSources} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			text, err := render(all[name].Block)
			if of, both := schema.Resources[name]; both && kind == "data source" {
				text, err = renderLike(all[name].Block, of.Block, name)
			}
			if err != nil {
				return fmt.Errorf("describe %s %s: %w", kind, name, err)
			}
			filled := false
			for path, page := range pages {
				if bytes.Contains(page, marker(kind, name)) {
					pages[path] = bytes.Replace(page, marker(kind, name), []byte(text), 1)
					filled = true
				}
			}
			if !filled {
				return fmt.Errorf("describe %s %s: no page has the marker %q", kind, name, marker(kind, name))
			}
		}
	}
	for path, page := range pages {
		if bytes.Contains(page, []byte("<!-- attributes of ")) {
			return fmt.Errorf("%s has a marker that belongs to no resource or data source", path)
		}
		if len(page) >= maxPage {
			return fmt.Errorf("%s has %d bytes: the registries take less than %d", path, len(page), maxPage)
		}
	}
	return nil
}

// settle makes docs/ what the pages say, or with check says how it differs.
func settle(docs string, pages map[string][]byte, check bool) error {
	old, err := readPages(docs)
	if err != nil {
		return err
	}
	var differing []string
	for path, page := range pages {
		if !bytes.Equal(old[path], page) {
			differing = append(differing, path)
		}
	}
	var stale []string
	for path := range old {
		if pages[path] == nil && !strings.HasPrefix(path, "design"+string(filepath.Separator)) {
			stale = append(stale, path)
		}
	}
	slices.Sort(differing)
	slices.Sort(stale)
	if check {
		if len(differing)+len(stale) > 0 {
			return fmt.Errorf("docs/ is not up to date (make docs): %s", strings.Join(append(differing, stale...), ", "))
		}
		return nil
	}
	for _, path := range differing {
		if err := write(filepath.Join(docs, path), pages[path]); err != nil {
			return err
		}
	}
	for _, path := range stale {
		if err := os.Remove(filepath.Join(docs, path)); err != nil {
			return fmt.Errorf("remove a page that is not generated any more: %w", err)
		}
	}
	return nil
}

// readPages returns the files below dir by their path relative to it; none if there is no dir.
func readPages(dir string) (map[string][]byte, error) {
	pages := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		pages[name] = content
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the pages: %w", err)
	}
	return pages, nil
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// output runs a command and returns what it printed on stdout. If it fails, the error has all
// that it printed, since tfplugindocs writes its errors to either.
func output(cmd *exec.Cmd, what string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", what, err, stderr.Bytes(), out)
	}
	return out, nil
}

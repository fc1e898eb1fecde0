package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// prover makes plans with a core.
type prover struct {
	core string // path
	name string // tofu or terraform
}

// findCore finds the core for the proof, before anything is read or written.
func findCore(ctx context.Context, given string) (*prover, error) {
	candidates := []string{"tofu", "terraform"}
	if given != "" {
		candidates = []string{given}
	}
	for _, c := range candidates {
		path, err := exec.LookPath(c)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "version").Output()
		if err != nil {
			return nil, fmt.Errorf("run %s version: %w", path, err)
		}
		line, _, _ := strings.Cut(string(out), "\n")
		return &prover{core: path, name: strings.TrimSpace(line)}, nil
	}
	return nil, fmt.Errorf("there is no %s for the proof: install one, give its path with -core, or leave the proof out with -prove=false", strings.Join(candidates, " and no "))
}

// wantsInit is how the cores say that they want init first, with whatever they put
// between the words of a line that they break.
var wantsInit = regexp.MustCompile(`\b(tofu|terraform)[\s│|]+init\b`)

// prove makes a plan of the files, in a directory of its own, and says what in it
// is more than an import. The plan holds what the host has, secrets too: it lies
// where only this user can read it, and goes when this ends.
func (p *prover) prove(ctx context.Context, project *project, files []file, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "adopt-") // 0700
	if err != nil {
		return fmt.Errorf("make a directory for the proof: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, f := range files {
		if err := create(filepath.Join(dir, f.name), f.text); err != nil {
			return err
		}
	}
	plan := filepath.Join(dir, "plan")
	args := []string{"plan", "-input=false", "-lock=false", "-no-color", "-out=" + plan}
	text, err := p.run(ctx, dir, project, args...)
	if err != nil && wantsInit.MatchString(text) {
		// With a provider from a registry, the core wants to fetch it first.
		fetched, initErr := p.run(ctx, dir, project, "init", "-input=false", "-no-color")
		if initErr != nil {
			text += "\nand init fails:\n" + fetched
		} else {
			text, err = p.run(ctx, dir, project, args...)
		}
	}
	if err != nil {
		fmt.Fprintf(out, "%s could not make a plan:\n%s\n", p.name, strings.TrimSpace(text))
		return errDiffers
	}
	shown, err := p.run(ctx, dir, project, "show", "-json", plan)
	if err != nil {
		return fmt.Errorf("show the plan: %w\n%s", err, shown)
	}
	differences, err := project.differences([]byte(shown))
	if err != nil {
		return err
	}
	if len(differences) > 0 {
		fmt.Fprintf(out, "not proved: the plan of %s does more than import:\n", p.name)
		for _, d := range differences {
			fmt.Fprintln(out, " ", d)
		}
		fmt.Fprintln(out, "Write what the host has into the configuration, or accept the change; `plan` shows it with its effect.")
		return errDiffers
	}
	fmt.Fprintf(out, "proved with %s: %d to import, 0 to add, 0 to change, 0 to destroy\n", p.name, len(project.objects))
	return nil
}

// run runs the core and returns what it printed: of show only the document.
func (p *prover) run(ctx context.Context, dir string, project *project, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.core, args...)
	cmd.Dir = dir
	for _, e := range os.Environ() {
		// What the user's own settings add to a command, or where they keep its
		// state, is for another directory.
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "TF_CLI_ARGS") && name != "TF_DATA_DIR" && name != "TF_WORKSPACE" && name != "TF_LOG" {
			cmd.Env = append(cmd.Env, e)
		}
	}
	if project.hidden {
		cmd.Env = append(cmd.Env, "TF_VAR_uri="+project.uri)
	}
	var text, warnings bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &warnings
	if args[0] != "show" {
		cmd.Stderr = &text
	}
	err := cmd.Run()
	if err != nil && args[0] == "show" {
		return warnings.String(), err
	}
	return text.String(), err
}

// planned is what is used of the document that shows a plan.
type planned struct {
	ResourceChanges []struct {
		Address string
		Change  struct {
			Actions         []string
			Before, After   any
			AfterUnknown    any `json:"after_unknown"`
			BeforeSensitive any `json:"before_sensitive"`
			AfterSensitive  any `json:"after_sensitive"`
			Importing       *struct{ ID string }
		}
	} `json:"resource_changes"`
}

// differences lists what a plan does beside importing.
func (p *project) differences(document []byte) (out []string, err error) {
	var plan planned
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := decoder.Decode(&plan); err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	imported := map[string]bool{}
	for _, r := range plan.ResourceChanges {
		c := r.Change
		imported[r.Address] = c.Importing != nil
		if slices.Equal(c.Actions, []string{"no-op"}) {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s", r.Address, strings.Join(c.Actions, " and ")))
		sensitive := func(v any) bool { return v == true }
		compare("", c.Before, c.After, c.AfterUnknown, func(at string, before, after any) {
			if at == "change" || at == "status" || strings.HasPrefix(at, "change.") || strings.HasPrefix(at, "status.") {
				return
			}
			if sensitive(lookUp(c.BeforeSensitive, at)) || sensitive(lookUp(c.AfterSensitive, at)) {
				before, after = secret{}, secret{}
			}
			out = append(out, fmt.Sprintf("  %s: %s on the host, %s in the plan", at, shown(before), shown(after)))
		})
	}
	for _, o := range p.objects {
		if !imported[o.address()] {
			out = append(out, o.address()+": not imported")
		}
	}
	return out, nil
}

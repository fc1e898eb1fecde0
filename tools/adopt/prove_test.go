package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProofThatFails shows which errors of a core lead to init, and that none of
// them gets lost. The core is a script.
func TestProofThatFails(t *testing.T) {
	const fetchFirst = `printf 'Error: Required plugins are not installed\nTo download them, run:\n│   tofu\n│   init\n'; exit 1`
	for name, row := range map[string]struct {
		plan, init string // what the core does
		says       []string
		calls      string
	}{
		"an error that is none of init":    {`echo "Error: os.initrd: no such file, initially"; exit 1`, `echo "no registry"; exit 1`, []string{"Error: os.initrd"}, "plan"},
		"init, which fails":                {fetchFirst, `echo "Error: no registry answers"; exit 1`, []string{"Required plugins", "and init fails", "no registry answers"}, "plan init"},
		"init, and then another error":     {`if [ -e fetched ]; then echo "Error: no host"; else ` + fetchFirst + `; fi; exit 1`, `touch fetched`, []string{"Error: no host"}, "plan init plan"},
		"init by the words of the other":   {`echo 'Error: Inconsistent dependency lock file; run "terraform init -upgrade"'; exit 1`, `exit 1`, []string{"lock file", "and init fails"}, "plan init"},
		"a name that begins with the word": {`echo "Error: domain tofu initial is off"; exit 1`, `exit 1`, []string{"tofu initial is off"}, "plan"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			core, calls := filepath.Join(dir, "core"), filepath.Join(dir, "calls")
			script := "#!/bin/sh\necho $1 >> " + calls + "\ncase $1 in\nplan) " + row.plan + ";;\ninit) " + row.init + ";;\nesac\n"
			if err := os.WriteFile(core, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := (&prover{core: core, name: "the core"}).prove(context.Background(), compose(nil, testDriver, testDriver), nil, &out)
			if !errors.Is(err, errDiffers) {
				t.Errorf("%v", err)
			}
			for _, want := range append(row.says, "the core could not make a plan:") {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, out.String())
				}
			}
			if got := strings.Join(strings.Fields(contents(t, calls)), " "); got != row.calls {
				t.Errorf("it called %s, want %s", got, row.calls)
			}
		})
	}
}

package domain_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
)

var documentEffects = flag.Bool("effects", false, "write the bounce matrix into the guide instead of comparing them")

// effectsGuide has the tables of effects, each between two comments.
const effectsGuide = "../../templates/guides/effects.md"

// The guide says what the matrix proves: its tables are written from the rows.
func TestAccBounce_documented(t *testing.T) {
	acctest.Case(t, "the tables of effects in the guide are those of the bounce matrix")
	text, err := os.ReadFile(effectsGuide)
	if err != nil {
		t.Fatal(err)
	}
	guide := string(text)
	for _, table := range matrix {
		begin, end := "<!-- "+table.name+" -->\n", "<!-- end of "+table.name+" -->\n"
		before, rest, found := strings.Cut(guide, begin)
		was, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			if table.name != "hand" && table.name != "tuning by hand" {
				t.Errorf("the guide has no table %q", table.name)
			}
			continue
		}
		now := bounce.Effects(table.rows(t))
		if was != now && !*documentEffects {
			t.Errorf("%s: the guide has\n%s\nand the matrix\n%s\n(TF_ACC=1 go test ./internal/domain -run TestAccBounce_documented -effects; make docs)", table.name, was, now)
		}
		guide = before + begin + now + end + after
	}
	if *documentEffects {
		if err := os.WriteFile(effectsGuide, []byte(guide), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

package kind

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestHideCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"https://TOKEN@h/x":                            "https://xxxxx@h/x",
		"https://user:pass@h:8080/x?sig=s#part":        "https://xxxxx@h:8080/x?…#part",
		"https://it's@ours:p@ss@h":                     "https://xxxxx@h",
		"HTTPS://:pass@h/x?a@b":                        "HTTPS://xxxxx@h/x?…",
		"file://user@localhost/x":                      "file://xxxxx@localhost/x",
		`is "http://a@h/x" and "http://b:c@i/y?z=1".`:  `is "http://xxxxx@h/x" and "http://xxxxx@i/y?…".`,
		"https://h/user@x":                             "https://h/user@x",
		"https://h/x and somebody@h":                   "https://h/x and somebody@h",
		"somebody@h, /a?b, sha256:abc, a text without": "somebody@h, /a?b, sha256:abc, a text without",
	} {
		if got := HideCredentials(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

// tells is a kind without secrets.
type tells struct{ Kind }

func (tells) Secret(string) bool { return false }

func TestValuesShowNoCredentials(t *testing.T) {
	if got := shown(tells{}, tree.ParsePath("create.content.url"), tree.StringValue("https://TOKEN@h/x")); got != `"https://xxxxx@h/x"` {
		t.Errorf("it is shown as %s", got)
	}
}

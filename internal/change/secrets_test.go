package change

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestSecretsLeaveAndReturn(t *testing.T) {
	secret := func(pattern string) bool { return pattern == "title" || pattern == "disks[].file" }
	v := obj(t, `{'title':'s3cret','uuid':'u','disks':[{'dev':'a','file':'s3cret'},{'dev':'b','file':'s3cret2'}]}`)
	bare := Without(v, secret)
	if strings.Contains(bare.String(), "s3cret") {
		t.Errorf("a secret stayed: %s", bare)
	}
	if bare.At("disks[1].dev").Str() != "b" || bare.Attr("uuid").Str() != "u" {
		t.Errorf("more than secrets went: %s", bare)
	}
	if masked := Masked(v, secret); strings.Contains(masked.String(), "s3cret") || masked.Attr("title").IsNull() || masked.At("disks[1].file").IsNull() {
		t.Errorf("masked: %s", masked)
	}
	permuted := bare.With("disks", tree.ListValue([]tree.Value{bare.At("disks[1]"), bare.At("disks[0]")}))
	back := testRules.Overlay(v, permuted, secret)
	if back.At("disks[0].file").Str() != "s3cret2" || back.Attr("title").Str() != "s3cret" {
		t.Errorf("secrets came back wrong: %s", back)
	}
	if got := testRules.Overlay(v, bare, func(string) bool { return false }); !tree.Equal(got, bare) {
		t.Errorf("what was not selected was laid over: %s", got)
	}
}

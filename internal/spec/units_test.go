package spec

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A unit without its number is not written: libvirt would read it as zero.
func TestUnitOfNothingIsNotWritten(t *testing.T) {
	mib := tree.StringValue("MiB")
	domain := tree.NullValue.With("memory", tree.IntValue(5)).With("memory_unit", mib).With("current_memory_unit", mib).With("maximum_memory_unit", mib).
		SetAt("memory_tune.hard_limit_unit", mib).SetAt("memory_tune.soft_limit", tree.IntValue(7)).SetAt("memory_tune.soft_limit_unit", mib)
	xml, err := Domain().Encode(domain)
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"currentMemory", "maxMemory", "hard_limit"} {
		if strings.Contains(xml, absent) {
			t.Errorf("%s is written:\n%s", absent, xml)
		}
	}
	for _, there := range []string{`<memory unit="MiB">5</memory>`, `<soft_limit unit="MiB">7</soft_limit>`} {
		if !strings.Contains(xml, there) {
			t.Errorf("%s is missing:\n%s", there, xml)
		}
	}
}

package domain

import (
	"slices"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// sameTexts compares two lists whatever their order.
func sameTexts(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// The CPUs on the right are as libvirt 9.0 tells them of a guest that was
// started with the first definition of each pair, in the form for another host.
func TestStartedWith(t *testing.T) {
	k := New(nil)
	const hostModel = `<cpu mode='custom' match='exact' check='full'><model fallback='forbid'>EPYC</model><vendor>AMD</vendor><feature policy='require' name='acpi'/></cpu>`
	custom := func(model, more string) string {
		return "<cpu mode='custom' match='exact' check='none'><model fallback='allow'>" + model + "</model>" + more + "</cpu>"
	}
	found := func(model, more string) string {
		return "<cpu mode='custom' match='exact' check='none'><model fallback='forbid'>" + model + "</model>" + more + "</cpu>"
	}
	const noSVM, svm, topology = `<feature policy='disable' name='svm'/>`, `<feature policy='require' name='svm'/>`, `<topology sockets='1' dies='1' cores='2' threads='1'/>`
	all := []string{"cpu.topology.cores", "cpu.topology.dies", "cpu.topology.sockets", "cpu.topology.threads"}
	for what, tc := range map[string]struct {
		defined, found string
		want           []string // what waits
	}{
		"a model":                               {custom("qemu64", ""), found("qemu64", ""), nil},
		"another model":                         {custom("kvm64", ""), found("qemu64", ""), []string{"cpu.model"}},
		"features":                              {custom("qemu64", noSVM), found("qemu64", noSVM), nil},
		"another policy":                        {custom("qemu64", svm), found("qemu64", noSVM), []string{"cpu.features[svm].policy"}},
		"one feature more":                      {custom("qemu64", noSVM), found("qemu64", ""), []string{"cpu.features[svm]"}},
		"one feature less":                      {custom("qemu64", ""), found("qemu64", noSVM), []string{"cpu.features[svm]"}},
		"an optional feature":                   {custom("qemu64", `<feature policy='optional' name='svm'/>`), found("qemu64", noSVM), nil},
		"a feature that QEMU does not know":     {custom("qemu64", `<feature policy='require' name='osxsave'/>`), found("qemu64", ""), nil},
		"a topology":                            {custom("qemu64", topology), found("qemu64", topology), nil},
		"another topology":                      {custom("qemu64", topology), found("qemu64", ""), all},
		"a host-model":                          {"<cpu mode='host-model' check='partial'/>", hostModel, nil},
		"a host-model with a topology":          {"<cpu mode='host-model' check='partial'>" + topology + "</cpu>", hostModel, all},
		"a host-model instead of a model":       {"<cpu mode='host-model' check='partial'/>", found("qemu64", ""), []string{"cpu.mode", "cpu.model"}},
		"a model instead of a host-model":       {custom("qemu64", ""), hostModel, []string{"cpu.match", "cpu.mode", "cpu.model", "cpu.model_fallback"}},
		"all that there is":                     {"<cpu mode='maximum' check='none'/>", "<cpu mode='maximum' check='none'/>", nil},
		"all that there is, instead of a model": {"<cpu mode='maximum' check='none'/>", found("qemu64", noSVM), []string{"cpu.features[svm]", "cpu.mode", "cpu.model"}},
		"a model instead of all that there is":  {custom("qemu64", ""), "<cpu mode='maximum' check='none'/>", []string{"cpu.match", "cpu.mode", "cpu.model", "cpu.model_fallback"}},
		"at least a model":                      {`<cpu mode='custom' match='minimum'><model>qemu64</model></cpu>`, found("Nehalem", svm), nil},
		"nothing":                               {"", found("qemu64", ""), nil},
		"of a guest that does not say":          {custom("qemu64", ""), "", nil},
	} {
		read := func(cpu string) tree.Value {
			v, err := spec.Domain().Decode("<domain type='qemu'><name>a</name>" + cpu + "</domain>")
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		defined := read(tc.defined)
		guest := defined.With("cpu", startedWith(defined.Attr("cpu"), read(tc.found).Attr("cpu")))
		var got []string
		for _, p := range k.rules.Waiting(k.typ, defined, guest, tree.NullValue) {
			got = append(got, p.String())
		}
		if !sameTexts(got, tc.want) {
			t.Errorf("%s: waiting %q, want %q; the guest: %s", what, got, tc.want, guest.Attr("cpu"))
		}
	}
}

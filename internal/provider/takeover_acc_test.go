package provider

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
)

const ours = "driftsafe/libvirt"

func TestAccTakeover_incumbent(t *testing.T) {
	c := acctest.Case(t, "two running machines of dmacvicar/libvirt 0.9, their configuration as it is: after one state replace-provider the plan is empty and touches nothing, though autostart is absent, the staging directory gone and the runtime ids are stale")
	f := makeField(t)
	w := newTakeover(t, c, f.heirs)
	t.Cleanup(w.sweep)
	w.asIncumbent()
	w.observe("field-router", "field-headend")
	w.replaceProvider(w.theirs(), ours)
	w.empty("at once")
	w.project.Must(0, "apply", "-auto-approve")
	w.empty("after an apply of nothing")
	w.empty("without a refresh", "-refresh=false")
}

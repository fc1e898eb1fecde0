package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// What the core asks nobody about in the plan, or asks in another way.

func TestAccGates_tainted(t *testing.T) {
	c := acctest.Case(t, "a tainted object that is protected is refused in Delete, with untaint as the way out; one that is not is replaced; a plan made under another setting is refused at apply")
	w := newGates(t, c, plain(gateSays...))
	w.apply(setting{}, w.blocks(form{}))
	begin := time.Now()
	for _, s := range allOr(acctest.Sampled(), setting{}, setting{"", "true"}, setting{"false", ""}) {
		for _, address := range addresses("", w.objects) {
			w.project.Must(0, "taint", address)
		}
		before := w.seen()
		got := w.run(s, w.blocks(form{}), "apply", "-auto-approve")
		w.judge("tainted", s, got, w.refusals(s, "destroy", w.objects), "`untaint ADDRESS`")
		after := w.seen()
		tainted, _ := w.inState()
		for _, o := range w.objects {
			if touched := before[o.key()] != after[o.key()]; touched == s.protects(o) || after[o.key()] == "" {
				t.Errorf("tainted, %s: %s was %q, is %q", s, o.key(), before[o.key()], after[o.key()])
			}
			if s.protects(o) != slices.Contains(tainted, o.address()) {
				t.Errorf("tainted, %s: these are so afterwards: %v", s, tainted)
			}
		}
		for _, address := range tainted {
			w.project.Must(0, "untaint", address)
		}
		w.under(s).Must(0, "plan", "-detailed-exitcode")
		w.cells += len(w.objects)
	}
	// The protection at the time of the call counts, not that of the plan.
	silent, rest := w.split("silent")
	w.write(setting{}, trigger("1")+w.only(rest, form{}))
	w.under(setting{env: "false"}).Must(0, "plan", "-out=plan")
	before := w.seen()
	got := w.run(setting{}, trigger("1")+w.only(rest, form{}), "apply", "plan")
	w.judge("a plan of another setting", setting{}, got, w.refusals(setting{}, "destroy", silent), "plan again under this one")
	var gone []string // these are not protected unless somebody says so
	for _, o := range silent {
		if isSeed(o) {
			gone = append(gone, o.key())
		}
	}
	w.same("a plan of another setting", before, w.seen(), gone...)
	w.cells += len(silent)
	w.spent(begin)
}

func TestAccGates_goneAndDeposed(t *testing.T) {
	c := acctest.Case(t, "what is gone from the host needs no protection; what create_before_destroy left behind has it until it is let go or forgotten")
	w := newGates(t, c, without(plain(gateSays...), isSeed))
	w.apply(setting{}, w.blocks(form{}))
	begin := time.Now()
	for i, s := range append(allOr(acctest.Sampled(), setting{}), setting{"false", "false"}) {
		w.goneByHand(s, [][]string{nil, {"-refresh=false"}}[i%2]...)
	}
	w.deposed()
	w.spent(begin)
}

// goneByHand: somebody removes objects on the host, and their blocks go too.
// Terraform plans the end of an object without a block before it reads it, both
// cores do so with -refresh=false.
func (w *gates) goneByHand(s setting, args ...string) {
	w.t.Helper()
	lab.Virsh(w.t, "undefine", "plain-guarded")
	lab.Virsh(w.t, "net-undefine", "plain-guarded")
	lab.Virsh(w.t, "pool-destroy", "plain-guarded")
	lab.Virsh(w.t, "pool-undefine", "plain-guarded")
	lab.Virsh(w.t, "vol-delete", "--pool", "default", "plain-guarded")
	guarded, rest := w.split("guarded")
	before := w.seen()
	w.apply(s, trigger("1")+w.only(rest, form{}), args...)
	w.same("gone by hand, "+s.String(), before, w.seen())
	w.cells += len(guarded)
	w.apply(s, w.blocks(form{}))
}

// deposed: a replacement that no plan can refuse, as the core asks nobody about a
// tainted object. The new ones are made, then the old ones are kept.
func (w *gates) deposed() {
	w.t.Helper()
	for _, address := range addresses("", w.objects) {
		w.project.Must(0, "taint", address)
	}
	next := form{renamed: true, first: true}
	before := w.seen()
	got := w.run(setting{}, w.blocks(next), "apply", "-auto-approve")
	w.judge("create_before_destroy", setting{}, got, w.refusals(setting{}, "destroy", w.objects), "deposed", "`state rm ADDRESS` forgets both")
	after := w.seen()
	for _, o := range w.objects {
		if kept := before[o.key()] == after[o.key()]; kept != (setting{}).protects(o) || after[o.renewed().key()] == "" {
			w.t.Errorf("create_before_destroy: %s was %q, is %q, its successor %q", o.key(), before[o.key()], after[o.key()], after[o.renewed().key()])
		}
	}
	if _, n := w.inState(); n != len(w.objects)*2/3 {
		w.t.Fatalf("%d deposed objects", n)
	}
	for _, s := range allOr(acctest.Sampled(), setting{}, setting{"", "false"}, setting{"true", ""}, setting{"false", ""}) {
		got := w.run(s, other+w.blocks(next), "apply", "-auto-approve")
		w.judge("deposed", s, got, w.refusals(s, "destroy", without(w.objects, func(o object) bool { return o.says == "free" })), "deposed")
		w.same("deposed, "+s.String(), after, w.seen())
		w.cells += len(w.objects) * 2 / 3
	}
	// Both ways out: without its protection it goes; forgotten, it stays.
	guarded, rest := w.split("guarded")
	w.project.Must(0, append([]string{"state", "rm"}, addresses("", guarded)...)...)
	w.apply(setting{env: "false"}, trigger("1")+w.only(rest, next))
	now := w.seen()
	for _, o := range w.objects {
		if there := now[o.key()] != ""; there != (o.says == "guarded") || now[o.renewed().key()] != after[o.renewed().key()] {
			w.t.Errorf("let go and forgotten: %s: %q, its successor was %q, is %q", o.key(), now[o.key()], after[o.renewed().key()], now[o.renewed().key()])
		}
	}
	w.write(setting{}, trigger("1")+w.only(w.objects, next))
	for _, o := range guarded {
		id := o.renewed().name()
		if o.typ == "volume" {
			id = "default/" + id
		}
		w.project.Must(0, "import", o.address(), id)
	}
	w.apply(setting{}, w.blocks(next))
	w.same("successors taken back", now, w.seen())
	w.under(setting{}).Must(0, "plan", "-detailed-exitcode")
}

func TestAccGates_refusedUpdateStopsDestroy(t *testing.T) {
	c := acctest.Case(t, "a refused update also stops destroy, and names -refresh=false, which is past it; another host's silence ends no object, and a plan changes none there")
	w := newGates(t, c, without(plain("free"), isSeed))
	config := strings.Replace(w.blocks(form{}), `type = "qemu"`, "type = \"qemu\"\nrunning = true\ndestroy = { shutdown = { timeout = 1 } }", 1)
	w.apply(setting{}, config)
	before := w.seen()
	// Another host answers "no such object", and that says nothing.
	w.write(setting{}, config)
	elsewhere := strings.Replace(w.written(), lab.Host(t).URI(), "test:///default", 1)
	for _, args := range [][]string{{"destroy", "-auto-approve", "-refresh=false"}, {"destroy", "-auto-approve"}} {
		w.rewrite(elsewhere)
		if out, code := w.project.Run(args...); code != 1 || strings.Count(out, "is on another host") < 4 {
			t.Errorf("%v on another host: exit code %d\n%s", args, code, out)
		}
	}
	w.same("destroy on another host", before, w.seen())
	w.planElsewhere(config, before)

	refused := strings.NewReplacer(`name = "plain-free"`, `name = "plain-other"`, "capacity = 65536", "capacity = 4096").Replace(config)
	refused = strings.Replace(refused, `"plain-other"`+"\nprotect = false\npool", `"plain-free"`+"\nprotect = false\npool", 1)
	want := []string{
		`Cannot change name of the running domain "plain-free"`, `Cannot rename network "plain-free"`,
		`Cannot change name of pool "plain-free"`, `Refusing to shrink volume "plain-free"`,
	}
	for _, args := range [][]string{{"apply", "-auto-approve"}, {"destroy", "-auto-approve"}} {
		got := w.run(setting{}, refused, args...)
		if len(got.errors) != len(want) || got.code != 1 {
			t.Errorf("%v: exit code %d, %d errors\n%s", args, got.code, len(got.errors), got.text)
		}
		for _, summary := range want {
			if detail := got.errors[summary]; !strings.Contains(detail, "This also stops `destroy`") || !strings.Contains(detail, "-refresh=false") {
				t.Errorf("%v: %q: %q", args, summary, detail)
			}
		}
		w.same(strings.Join(args, " "), before, w.seen())
	}
	w.write(setting{}, refused)
	w.project.Must(0, "destroy", "-auto-approve", "-refresh=false")
	w.same("destroy -refresh=false", w.initial, w.seen())
}

// planElsewhere applies a saved plan on another host than the one that it was
// made for: a provider without uri takes it from the environment of each run.
func (w *gates) planElsewhere(config string, before map[string]string) {
	w.t.Helper()
	home := lab.Host(w.t).URI()
	w.write(setting{}, strings.NewReplacer("capacity = 65536", "capacity = 131072", "active = false", "active = false\nautostart = true").Replace(config))
	w.rewrite(strings.Replace(w.written(), fmt.Sprintf("uri = %q", home), "", 1))
	w.project.With("LIBVIRT_DEFAULT_URI="+home).Must(0, "plan", "-out=plan")
	out, code := w.project.With("LIBVIRT_DEFAULT_URI=test:///default").Run("apply", "plan")
	if code != 1 || strings.Count(out, "is on another host") != 2 {
		w.t.Errorf("a saved plan on another host: exit code %d\n%s", code, out)
	}
	w.same("a saved plan on another host", before, w.seen())
}

func TestAccGates_failedProvisioner(t *testing.T) {
	c := acctest.Case(t, "a provisioner that failed taints a running guest; the next apply leaves it alone and says untaint, after which nothing is to be done")
	w := newGates(t, c, nil)
	w.runs = true
	flag := t.TempDir() + "/flag"
	it := object{"domain", "guarded", "provisioned"}
	config := strings.Replace(w.block(it, form{}), "protect = true", fmt.Sprintf("provisioner \"local-exec\" {\n  command = \"test -e %s\"\n}", flag), 1)
	if got := w.run(setting{}, config, "apply", "-auto-approve"); got.code != 1 || len(got.errors) != 1 {
		t.Fatalf("the provisioner did not fail: exit code %d\n%s", got.code, got.text)
	}
	guest, before := lab.Observe(t, it.name()), w.seen()
	silent := map[string]object{`Refusing to destroy protected domain "provisioned-guarded"`: {"domain", "silent", "provisioned"}}
	for range 2 { // a refusal changes nothing for the next one
		got := w.run(setting{}, config, "apply", "-auto-approve")
		w.judge("a failed provisioner", setting{}, got, silent, "a provisioner failed", "`untaint ADDRESS`", "the standard of this resource type")
		w.same("a failed provisioner", before, w.seen())
	}
	guest.Untouched(t, it.name())
	// The way out that keeps it.
	w.project.Must(0, "untaint", it.address())
	w.project.Must(0, "plan", "-detailed-exitcode")
	guest.Untouched(t, it.name())
	// The one that gives it up: another machine takes its place.
	w.apply(setting{}, strings.Replace(config, "provisioner", "protect = false\nprovisioner", 1))
	w.project.Must(0, "taint", it.address())
	w.write(setting{}, strings.Replace(config, "test -e "+flag, "true", 1))
	if _, code := w.project.Run("apply", "-auto-approve"); code != 0 {
		t.Error("the unprotected domain was not replaced")
	}
	if now := w.seen(); now[it.key()] == before[it.key()] || now[it.key()] == "" {
		t.Errorf("the unprotected domain is %q", now[it.key()])
	}
}

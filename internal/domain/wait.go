package domain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

const (
	// standardWait is how long an interface has to get an address.
	standardWait = 300 * time.Second
	// askInterval is the pause between two questions to a source.
	askInterval = 500 * time.Millisecond
	// agentLimit is how long libvirt waits for an agent while addresses are
	// waited for. Without a limit, an agent that hangs would hold the question,
	// and with it all others that ask the agent, for ever. What stays of it, should
	// this process be killed, still leaves time for an agent that is slow.
	agentLimit = 20 * time.Second
)

// downError says that a guest that was waited for runs no more.
type downError struct{ name, power string }

func (e *downError) Error() string {
	return fmt.Sprintf("the guest of %q was started, and does not run any more: it is %s. Look at its console and at libvirt's log of it, /var/log/libvirt/qemu/%s.log on the host",
		e.name, e.power, e.name)
}

// inWords is a state of a guest with libvirt's reason.
func inWords(power virt.State, reason int) string {
	if why := virt.Reason(power, reason); why != "" {
		return fmt.Sprintf("%s (%s)", power, why)
	}
	return power.String()
}

// waitForAddresses waits for the interfaces that ask for it, all at once, each
// until its own deadline. What is missing then is no error by itself: the machine
// is there and runs. That it does not run any more is one.
// before is what was known before the start.
func (k *Kind) waitForAddresses(ctx context.Context, dom *virt.Domain, planned tree.Value, before earlier) (missing []kind.Problem, down error) {
	w := &watch{host: k.host(), dom: dom, before: before, begin: time.Now(), heard: map[virt.AddressSource]heard{}}
	look, cancel := lastingly(ctx) // a user who gives up is told below
	defer cancel()
	nics := planned.At("devices.interfaces")
	var macs []string
	for i, nic := range nics.Elems() {
		want := nic.Attr("wait_for_ip")
		if want.IsNull() {
			continue
		}
		if macs == nil {
			var err error
			if macs, err = k.macsOf(look, dom, nics); err != nil {
				return unread(dom, err), nil
			}
		}
		timeout := seconds(want.Attr("timeout"), standardWait)
		a := &awaited{filter: filterOf(want), index: i, mac: macs[i], timeout: timeout, deadline: w.begin.Add(timeout)}
		if on := sourceOf(nic); on != "network" {
			a.elsewhere = on
		}
		w.waiting = append(w.waiting, a)
	}
	if len(w.waiting) == 0 {
		return nil, nil
	}
	return w.run(ctx)
}

// unread says that nothing could be waited for: a machine that runs is not
// worth less for that.
func unread(dom *virt.Domain, err error) []kind.Problem {
	return []kind.Problem{{
		Path:    tree.ParsePath("devices.interfaces"),
		Summary: fmt.Sprintf("The addresses of domain %q were not waited for", dom.Name()),
		Detail:  "Its interfaces cannot be read: " + err.Error() + ".",
	}}
}

// macsOf says which MAC address each interface of a configuration has.
func (k *Kind) macsOf(ctx context.Context, dom *virt.Domain, nics tree.Value) ([]string, error) {
	xml, err := dom.XML(ctx, virt.XMLInactive)
	if err != nil {
		return nil, err
	}
	def, err := spec.Domain().Decode(xml)
	if err != nil {
		return nil, err
	}
	return k.macsIn(def.At("devices.interfaces"), nics), nil
}

// macsIn finds the interfaces of a configuration in a definition, which may have
// them in another order; libvirt chooses the addresses that are not named.
func (k *Kind) macsIn(defined, nics tree.Value) []string {
	macs := make([]string, nics.Len())
	for i, j := range k.rules.Partners("devices.interfaces", nics, defined) {
		if j >= 0 {
			macs[i] = defined.Elems()[j].At("mac.address").Str()
		}
	}
	return macs
}

// addressesMissing waits after a start by an update, and makes an error of what
// is a warning at creation. The update itself is done, whatever comes of it.
func (k *Kind) addressesMissing(ctx context.Context, dom *virt.Domain, u kind.Update, before earlier, done *kind.Done) error {
	missing, down := k.waitForAddresses(ctx, dom, u.Planned, before)
	if len(missing) == 0 && down == nil {
		return nil
	}
	// It may have gone down, or come to rest, since it was read.
	look, cancel := lastingly(ctx)
	defer cancel()
	if s, err := k.look(look, dom.UUID(), extras(u.Prior, u.Owned, u.Planned)...); err == nil {
		s.problems = k.bootProblems(look, s)
		done.Facts = s.facts(u.Prior.Attr("status"))
	}
	for i := range missing {
		missing[i].Detail += " The update is complete and nothing of it was undone; the next plan does not repeat it."
	}
	if down != nil {
		missing = append(missing, kind.Problem{
			Summary: fmt.Sprintf("Domain %q does not run any more", dom.Name()),
			Detail:  "The update is complete and nothing of it was undone, but " + down.Error() + ". Where the configuration says running = true, the next apply starts it again.",
		})
	}
	return &kind.NotReadyError{Problems: missing}
}

// lastingly is a context for reading back, which goes on when the user gave up.
func lastingly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), lookTime)
}

// watch is the waiting for all addresses of one guest.
type watch struct {
	host       *virt.Host
	dom        *virt.Domain
	before     earlier
	begin      time.Time
	waiting    []*awaited
	heard      map[virt.AddressSource]heard // the last answer of each source
	neighbours map[ownAddress]bool          // in the first answer of the host's table, which is as old as the start
	paused     bool
}

// awaited is an interface that has no address yet.
type awaited struct {
	filter
	index     int // in the configuration
	mac       string
	elsewhere string // what it is on, if that is no network of libvirt's
	timeout   time.Duration
	deadline  time.Time
}

// heard is what a source last said.
type heard struct {
	at   time.Time
	nics []virt.InterfaceAddresses
	err  error
	old  map[ownAddress]bool // leases from before the start, not renewed
}

// news is what one of those who ask has to tell.
type news struct {
	source virt.AddressSource
	answer *heard      // of the source, or nil:
	power  *virt.State // of the guest, nil if it cannot be read
	reason int         // libvirt's, for its power
	gone   bool        // the domain is not there any more
}

// run asks each source, and for the power, at the same time: one that hangs does
// not hold the others.
func (w *watch) run(ctx context.Context) (missing []kind.Problem, down error) {
	sources := w.sources()
	if slices.Contains(sources, virt.AddressAgent) {
		defer w.limitAgent(ctx)()
	}
	asking, stop := context.WithCancel(ctx)
	defer stop() // before the limit is taken back
	told := make(chan news)
	for _, source := range sources {
		go w.ask(asking, source, told)
	}
	go w.askPower(asking, told)
	for len(w.waiting) > 0 {
		first := slices.MinFunc(w.waiting, func(a, b *awaited) int { return a.deadline.Compare(b.deadline) })
		late := time.NewTimer(time.Until(first.deadline))
		select {
		case n := <-told:
			if down := w.take(n); down != nil {
				return missing, down
			}
		case <-late.C:
		case <-ctx.Done():
			for _, a := range w.waiting {
				missing = append(missing, w.problem(a, "The waiting was broken off after "+time.Since(w.begin).Round(time.Second/10).String(), ""))
			}
			return missing, nil
		}
		late.Stop()
		missing = append(missing, w.settle()...)
	}
	return missing, nil
}

// sources are those that somebody waits for.
func (w *watch) sources() []virt.AddressSource {
	all := map[virt.AddressSource]bool{}
	for _, a := range w.waiting {
		for _, s := range a.asked {
			all[s] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// limitAgent limits libvirt's waiting for the agent, and returns what takes that
// back. Where libvirt cannot, the waiting for its answer ends all the same.
func (w *watch) limitAgent(ctx context.Context) (back func()) {
	set := func(limit time.Duration) {
		ctx, cancel := lastingly(ctx)
		defer cancel()
		_ = w.dom.SetAgentTimeout(ctx, limit)
	}
	set(agentLimit)
	return func() { set(0) }
}

func (w *watch) ask(ctx context.Context, source virt.AddressSource, told chan<- news) {
	for {
		nics, err := w.dom.InterfaceAddresses(ctx, source)
		answer := &heard{nics: nics, err: err}
		if source == virt.AddressLease && err == nil {
			answer.old = w.before.unrenewed(ctx, w.host)
		}
		answer.at = time.Now()
		if !handOn(ctx, told, news{source: source, answer: answer}) {
			return
		}
	}
}

func (w *watch) askPower(ctx context.Context, told chan<- news) {
	for {
		power, reason, err := w.dom.State(ctx)
		n := news{gone: virt.IsNotFound(err), reason: reason}
		if err == nil {
			n.power = &power
		}
		if !handOn(ctx, told, n) {
			return
		}
	}
}

// handOn tells what is new, and waits until it is time to ask again. false: the
// waiting is over.
func handOn(ctx context.Context, told chan<- news, n news) bool {
	select {
	case told <- n:
	case <-ctx.Done():
		return false
	}
	select {
	case <-time.After(askInterval):
		return true
	case <-ctx.Done():
		return false
	}
}

// take remembers what is new. A guest that is down gets no address any more.
func (w *watch) take(n news) error {
	switch {
	case n.answer != nil:
		w.heard[n.source] = *n.answer
		if n.source == virt.AddressARP && n.answer.err == nil && w.neighbours == nil {
			w.neighbours = addressesIn(n.answer.nics)
		}
	case n.gone:
		return &downError{w.dom.Name(), "gone, as it had no definition"}
	case n.power != nil && (!n.power.Active() || *n.power == virt.StateCrashed):
		return &downError{w.dom.Name(), inWords(*n.power, n.reason)}
	case n.power != nil:
		w.paused = *n.power == virt.StatePaused
	}
	return nil
}

// settle takes those off the list that have an address, that can get none, or
// whose time is over.
func (w *watch) settle() (missing []kind.Problem) {
	var still []*awaited
	for _, a := range w.waiting {
		switch {
		case w.found(a):
		case w.hopeless(a):
			missing = append(missing, w.problem(a, "Nobody can tell an address of it",
				` To have the agent asked, give the domain its channel: devices.channels = [{ source = { unix = {} }, target = { virt_io = { name = "org.qemu.guest_agent.0" } } }]. Else choose another source.`))
		case !time.Now().Before(a.deadline):
			missing = append(missing, w.problem(a, fmt.Sprintf("No usable address came within %s", a.timeout),
				fmt.Sprintf(" Look at the guest's console (virsh console %s), or raise wait_for_ip.timeout.", w.dom.Name())))
		default:
			still = append(still, a)
		}
	}
	w.waiting = still
	return missing
}

// found says whether a source has told an address that counts.
func (w *watch) found(a *awaited) bool {
	for _, source := range a.asked {
		for _, nic := range w.heard[source].nics {
			if a.isOf(nic) && slices.ContainsFunc(nic.Addresses, func(ip virt.Address) bool { return w.discounts(a, source, ip.Address) == "" }) {
				return true
			}
		}
	}
	return false
}

// discounts says why an address that a source tells of an interface does not
// count, "" if it does. What the host's table of neighbours knew before the start
// proves nothing; where others are asked too, they have all the time to tell.
func (w *watch) discounts(a *awaited, source virt.AddressSource, ip string) string {
	known := addressAt(a.mac, ip)
	hopes := len(a.asked) > 1 && time.Now().Before(a.deadline)
	switch why := a.refuses(ip); {
	case why != "":
		return why
	case source == virt.AddressLease && w.before.isEndless(known):
		if hopes && w.heard[source].old[known] {
			return "is leased for ever, and was before the start"
		}
	case source == virt.AddressLease && w.heard[source].old[known]:
		return "is leased from before the start, and not renewed since"
	case source == virt.AddressARP && w.neighbours[known] && hopes:
		return "was known before the start"
	}
	return ""
}

func addressesIn(nics []virt.InterfaceAddresses) map[ownAddress]bool {
	all := map[ownAddress]bool{}
	for _, nic := range nics {
		for _, ip := range nic.Addresses {
			all[addressAt(nic.MAC, ip.Address)] = true
		}
	}
	return all
}

// isOf says whether an answer speaks of the interface.
func (a *awaited) isOf(nic virt.InterfaceAddresses) bool {
	return strings.EqualFold(nic.MAC, a.mac) && (a.card == "" || a.card == nic.Name)
}

// hopeless says whether all sources have answered that they never will.
func (w *watch) hopeless(a *awaited) bool {
	return !slices.ContainsFunc(a.asked, func(s virt.AddressSource) bool {
		err := w.heard[s].err
		return !virt.HasCode(err, virt.ErrArgumentUnsupported) && !virt.HasCode(err, virt.ErrNoSupport)
	})
}

// problem says what was waited for, what was seen, and why it did not count.
func (w *watch) problem(a *awaited, what, advice string) kind.Problem {
	seen := make([]string, 0, len(a.asked))
	for _, source := range a.asked {
		seen = append(seen, w.seen(a, source))
	}
	if w.paused {
		advice = " The guest is paused." + advice
	}
	return kind.Problem{
		Path:    tree.ParsePath("devices.interfaces").Elem(a.index, "").Attr("wait_for_ip"),
		Summary: fmt.Sprintf("Domain %q runs, but interface %d (%s) has no address yet", w.dom.Name(), a.index, a.mac),
		Detail:  fmt.Sprintf("%s (%s). Seen: %s.%s", what, a.filter, strings.Join(seen, "; "), advice),
	}
}

// seen is what a source said of an interface, in words.
func (w *watch) seen(a *awaited, source virt.AddressSource) string {
	answer, asked := w.heard[source]
	if !asked {
		return fmt.Sprintf("%s has not answered", source)
	}
	said := w.said(a, source, answer)
	if silent := time.Since(answer.at).Round(time.Second); silent > 4*askInterval {
		said += fmt.Sprintf(", and since then, for %s, no answer", silent)
	}
	return fmt.Sprintf("%s: %s", source, said)
}

// said is what an answer says of the interface.
func (w *watch) said(a *awaited, source virt.AddressSource, answer heard) string {
	var refused *virt.Error
	switch {
	case errors.As(answer.err, &refused):
		return refused.Message
	case answer.err != nil:
		return answer.err.Error()
	}
	var seen, others []string
	for _, nic := range answer.nics {
		if !a.isOf(nic) {
			others = append(others, fmt.Sprintf("%s (%s)", nic.Name, nic.MAC))
			continue
		}
		for _, ip := range nic.Addresses {
			seen = append(seen, fmt.Sprintf("%s on %s %s", ip.Address, nic.Name, w.discounts(a, source, ip.Address)))
		}
		if len(nic.Addresses) == 0 {
			seen = append(seen, "nothing on "+nic.Name)
		}
	}
	switch {
	case len(seen) > 0:
		return strings.Join(seen, ", ")
	case source == virt.AddressAgent && len(others) > 0:
		return "no such interface, only " + strings.Join(others, ", ")
	case source == virt.AddressLease && a.elsewhere != "":
		return fmt.Sprintf("nothing, as libvirt leases addresses on its own networks alone, and this interface is on a %s", a.elsewhere)
	}
	return "nothing"
}

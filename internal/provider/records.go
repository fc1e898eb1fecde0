package provider

import (
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// records is what private state holds of an object. No secret is in it.
type records struct {
	Baseline tree.Value // the definition as last agreed; null before the first read
	Actual   tree.Value // the definition as read last
	Owned    tree.Value // the configuration of the last apply, with identities; null if there was none
	Guest    tree.Value // what runs, as read last, in the form of Actual; null if it is as Actual, or if nothing runs
	Late     late       // in what the guest was not yet as its definition after the last apply
	Imported bool       // the next read fills the state
	Host     string     // identity of the daemon that has the object, "" if not known
	HostName string     // what its host calls itself
	Within   string     // UUID of what holds the object, "" if it has one of its own
}

// late is what one run of a guest waits for.
type late struct {
	Run   tree.Value `json:"run"` // the guest's id: another run began with the whole definition
	Paths []string   `json:"paths"`
}

// Keys of private state.
const (
	baselineKey = "driftsafe.baseline"
	actualKey   = "driftsafe.actual"
	ownedKey    = "driftsafe.owned"
	guestKey    = "driftsafe.guest"
	lateKey     = "driftsafe.late"
	importKey   = "driftsafe.import"
	hostKey     = "driftsafe.host"
	hostNameKey = "driftsafe.hostname"
	withinKey   = "driftsafe.within"
	guardKey    = "driftsafe.guard"
)

// loadRecords reads what is there. What cannot be read counts as absent: then
// nothing is owned, and omission changes nothing.
func loadRecords(p protocol.Private) records {
	var r records
	_, _ = p.Get(baselineKey, &r.Baseline)
	_, _ = p.Get(actualKey, &r.Actual)
	_, _ = p.Get(ownedKey, &r.Owned)
	_, _ = p.Get(guestKey, &r.Guest)
	_, _ = p.Get(lateKey, &r.Late)
	_, _ = p.Get(importKey, &r.Imported)
	_, _ = p.Get(hostKey, &r.Host)
	_, _ = p.Get(hostNameKey, &r.HostName)
	_, _ = p.Get(withinKey, &r.Within)
	return r
}

// store returns private state with the records in it.
func (r records) store(p protocol.Private) (protocol.Private, error) {
	out := p.Clone()
	for key, v := range map[string]tree.Value{baselineKey: r.Baseline, actualKey: r.Actual, ownedKey: r.Owned, guestKey: r.Guest} {
		if v.IsNull() {
			out.Delete(key)
			continue
		}
		if err := out.Set(key, v); err != nil {
			return nil, err
		}
	}
	for key, name := range map[string]string{hostKey: r.Host, hostNameKey: r.HostName, withinKey: r.Within} {
		if name == "" {
			continue
		}
		if err := out.Set(key, name); err != nil {
			return nil, err
		}
	}
	out.Delete(lateKey)
	if len(r.Late.Paths) > 0 {
		if err := out.Set(lateKey, r.Late); err != nil {
			return nil, err
		}
	}
	out.Delete(importKey)
	if r.Imported {
		if err := out.Set(importKey, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lagging are the paths in which the guest is late still.
func (r records) lagging() map[string]bool {
	paths := map[string]bool{}
	if run := r.Actual.Attr("id"); !run.IsNull() && tree.Equal(run, r.Late.Run) {
		for _, p := range r.Late.Paths {
			paths[p] = true
		}
	}
	return paths
}

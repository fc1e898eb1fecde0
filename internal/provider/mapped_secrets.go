package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// The secrets of a definition are in the state, and of a running guest nowhere.
// Where one of a guest is another than that of its definition, the records have
// a mark in its place: that the guest has none, or a digest. So it is seen to
// wait, and a plan that asks for it again sees that the guest has it still.

// noSecret is the mark of a guest that has none.
const noSecret = "(none)"

// digestOf is the mark of a secret. It is keyed with the object and the path, so
// that equal secrets do not look alike.
func digestOf(object, path, secret string) string {
	mac := hmac.New(sha256.New, []byte(object+"\n"+path))
	mac.Write([]byte(secret))
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}

// guestRecord is what records keep of a running guest.
func (m *mapped) guestRecord(facts kind.Facts) tree.Value {
	out := change.Without(facts.Guest, m.kind.Secret)
	if facts.Guest.IsNull() {
		return out
	}
	object := m.kind.Identity(facts.Definition)
	for _, p := range m.kind.Rules().Differences(m.kind.Type(), facts.Guest, facts.Definition) {
		if !m.kind.Secret(p.Pattern()) {
			continue
		}
		mark := noSecret
		if secret := facts.Guest.Get(p); !secret.IsNull() {
			mark = digestOf(object, p.Pattern(), secret.Str())
		}
		out = out.Set(p, tree.StringValue(mark))
	}
	return out
}

// guestOf is the running guest of the records with its secrets: those that it
// has in common with its definition, and those that the configuration asks for
// and the guest has. In place of others the mark stays, which is like nothing.
func (m *mapped) guestOf(config, prior tree.Value, rec records) tree.Value {
	rules, object := m.kind.Rules(), m.kind.Identity(prior)
	guest := rules.Overlay(prior, rec.Guest, m.kind.Secret)
	rec.Guest.Walk(func(p tree.Path, mark tree.Value) bool {
		if mark.Kind() != tree.String || !m.kind.Secret(p.Pattern()) {
			return true
		}
		switch desired := rules.Counterpart(config, rec.Guest, p); {
		case mark.Str() == noSecret:
			guest = guest.Set(p, tree.NullValue)
		case desired.Kind() == tree.String && digestOf(object, p.Pattern(), desired.Str()) == mark.Str():
			guest = guest.Set(p, desired)
		default:
			guest = guest.Set(p, mark)
		}
		return true
	})
	return guest
}

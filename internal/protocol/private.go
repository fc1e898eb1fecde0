package protocol

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Private is what a resource remembers beside its state, unseen by users. Every
// key begins with KeyPrefix; a value is JSON.
//
// The core keeps private data with the state, also when another provider takes
// the object over. So what is not ours is ignored when reading and dropped when
// writing, and ours is written in a form that the plugin framework discards:
// after a detour through another provider, old records would pass its changes
// off as drift.
type Private map[string]json.RawMessage

// KeyPrefix begins the keys of Private.
const KeyPrefix = "driftsafe."

// formKey marks the stored form. Its value, a number, is what makes the plugin
// framework (which stores an object of base64 strings) discard the whole.
const (
	formKey = KeyPrefix + "form"
	form    = 1
)

// Get reads the value of a key. It says whether there is one; one that does
// not fit is an error.
func (p Private) Get(key string, into any) (bool, error) {
	raw, ok := p[key]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, fmt.Errorf("read private record %s: %w", key, err)
	}
	return true, nil
}

// Set stores a value. The key must begin with KeyPrefix, and the value must be
// one that encoding/json can write; p must not be nil.
func (p Private) Set(key string, value any) error {
	if err := checkKey(key); err != nil {
		return err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("store private record %s: %w", key, err)
	}
	p[key] = raw
	return nil
}

func checkKey(key string) error {
	if !strings.HasPrefix(key, KeyPrefix) || key == formKey {
		return fmt.Errorf("store private record %q: keys begin with %s, and %s is reserved", key, KeyPrefix, formKey)
	}
	return nil
}

// Delete forgets a key.
func (p Private) Delete(key string) { delete(p, key) }

// Clone returns a copy that can be changed; it is never nil.
func (p Private) Clone() Private {
	if p == nil {
		return Private{}
	}
	return maps.Clone(p)
}

// decodePrivate reads stored private data; the result is never nil. Data that
// does not carry our mark is another provider's.
func decodePrivate(stored []byte) Private {
	p := Private{}
	var all map[string]json.RawMessage
	if json.Unmarshal(stored, &all) != nil || string(all[formKey]) != fmt.Sprint(form) {
		return p
	}
	for key, raw := range all {
		if strings.HasPrefix(key, KeyPrefix) && key != formKey {
			p[key] = raw
		}
	}
	return p
}

// encode writes private data for storage, nil if there is none. Records that
// Set would have refused are an error: dropped in silence they would be missed
// much later.
func (p Private) encode() ([]byte, error) {
	if len(p) == 0 {
		return nil, nil
	}
	all := make(map[string]any, len(p)+1)
	for key, raw := range p {
		if err := checkKey(key); err != nil {
			return nil, err
		}
		all[key] = raw
	}
	all[formKey] = form
	stored, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("store private records: %w", err)
	}
	return stored, nil
}

package domain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// What libvirt and QEMU say when they refuse a start or a device is about files,
// ports and options, and about nothing but what is wrong. People know attributes,
// and want to know what to do.

// explain adds to a refusal of libvirt's the attributes that it is about, with
// their values, and the way out. about are the parts of the definition that the
// refused step brings; of them those attributes are told whose value is in what
// libvirt says. If none is, all attributes of the parts that are sure are told.
// Other errors stay as they are, as does the answer that the guest does not run.
func (k *Kind) explain(err error, definition tree.Value, about, sure []tree.Path) error {
	var refusal *virt.Error
	if !errors.As(err, &refusal) || virt.IsUnreachable(err) || refusal.Code == virt.ErrOperationInvalid {
		return err
	}
	said := k.attributesOf(definition, about, func(text string) bool { return len(text) > 3 && hasWord(refusal.Message, text) })
	if len(said) == 0 {
		said = k.attributesOf(definition, sure, func(string) bool { return true })
	}
	said = append(said, fmt.Sprintf("The way out: %s, and apply again", wayPast(refusal.Message)))
	return fmt.Errorf("%w. %s", err, strings.Join(said, ". "))
}

// attributesOf are the texts and numbers in some parts of a definition that fit, each
// as "attribute is value". What is secret is not among them, and neither is what
// says which machine this is, as its name.
func (k *Kind) attributesOf(definition tree.Value, parts []tree.Path, fits func(text string) bool) (out []string) {
	for _, part := range parts {
		definition.Get(part).Walk(func(below tree.Path, v tree.Value) bool {
			path := slices.Concat(part, below)
			if v.Kind() != tree.String && v.Kind() != tree.Number || len(path) == 1 || k.Secret(path.Pattern()) {
				return true
			}
			if fits(strings.Trim(v.String(), `"`)) {
				out = append(out, fmt.Sprintf("%s is %s", withKeys(path, definition), v))
			}
			return true
		})
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// withKeys gives the elements on a path what people know them by.
func withKeys(path tree.Path, in tree.Value) tree.Path {
	path = slices.Clone(path)
	for i, step := range path {
		if step.Attr != "" || step.Key != "" {
			continue
		}
		if ways := keysOf(path[:i+1].Pattern(), in.Get(path[:i+1])); len(ways) > 0 {
			path[i].Key = ways[0]
		}
	}
	return path
}

// hasWord says whether a text has another one in it as a whole: not as a part of
// a longer path, name or number.
func hasWord(text, word string) bool {
	inWord := func(s string) bool {
		return s != "" && strings.ContainsAny(s, "/-._") || s >= "0" && s <= "9" || s >= "a" && s <= "z" || s >= "A" && s <= "Z"
	}
	for rest, before := text, ""; ; {
		i := strings.Index(rest, word)
		if i < 0 {
			return false
		}
		if i > 0 {
			before = rest[i-1 : i]
		}
		after := rest[i+len(word):]
		if !inWord(before) && !inWord(after[:min(1, len(after))]) {
			return true
		}
		before, rest = word[len(word)-1:], after
	}
}

// wayPast is what a person does about a refusal, by the words of it that are the
// same on every host.
func wayPast(message string) string {
	says := func(part string) bool { return strings.Contains(message, part) }
	switch {
	case says("Address already in use"), says("available port"), says("reserve port"):
		return "something on the host has that port already; end what listens there, or choose another port"
	case says("No space left on device"):
		return "make room on that file system of the host, or choose another place"
	case says("Failed to get") && says("lock"):
		return "another guest or program has the file open; stop it, or choose another file"
	case says("not a valid device model name"):
		return "QEMU on this host has no such device; name one that it has, or take it out"
	case says("unresolvable variables"), says("new filter rules"):
		return "give the filter what it asks for (filter_ref.parameters; libvirt's log on the host tells what), or choose another one"
	}
	return "put right what is named there, on the host or in the configuration"
}

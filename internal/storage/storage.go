// Package storage knows libvirt's storage pools and volumes: what a change to
// one means and how it is made.
//
// libvirt has no lock on a volume: it deletes and overwrites what a running
// guest uses, and truncates what it is asked to shrink. So every such check is
// made here, from the XML of all domains: who uses this file, now or at its
// next start? What a volume was made from acts once; a volume that exists is
// never made again because of it. Only a seed is compared with what the volume
// holds, and another one is written into it, while no guest has it in its drive.
// A pool's storage is never deleted unless the configuration says so in as many
// words.
//
// A pool that is stopped, or not defined, says nothing about its volumes: that
// is an error, and no volume is "gone" because of it. And what could not be
// made whole is taken away again: a pool that does not start is not defined, a
// volume that could not be filled is deleted.
package storage

import (
	"context"
	"errors"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

const protectText = "Refuse to destroy or replace it. Unset, the provider's `protect` counts (standard: true)."

func firstOf(state tree.Value, attrs ...string) string {
	for _, attr := range attrs {
		if v := state.Attr(attr).Str(); v != "" {
			return v
		}
	}
	return ""
}

func reported(name string, typ *tree.Type, text string) *tree.Attribute {
	return &tree.Attribute{Name: name, Type: typ, Computed: true, Description: text}
}

func optional(name string, typ *tree.Type, text string) *tree.Attribute {
	return &tree.Attribute{Name: name, Type: typ, Optional: true, Description: text}
}

func required(a *tree.Attribute) *tree.Attribute {
	return &tree.Attribute{Name: a.Name, Type: a.Type, Required: true, Description: a.Description}
}

// texts makes a list of strings.
func texts(all []string) tree.Value {
	out := make([]tree.Value, len(all))
	for i, s := range all {
		out[i] = tree.StringValue(s)
	}
	return tree.ListValue(out)
}

// told renders a value for a message.
func told(v tree.Value) string {
	if v.IsNull() {
		return "not set"
	}
	return kind.HideCredentials(v.String())
}

// cleanupTime is how long it may take to put things right after a failure.
const cleanupTime = 2 * time.Minute

// cleanup is a context for putting things right: it goes on after the user has
// interrupted what failed.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
}

// also adds to an error what became of things because of it.
func also(err error, text string) error {
	var problem *kind.ProblemError
	if !errors.As(err, &problem) {
		return &addedError{err, text}
	}
	out := &kind.ProblemError{Err: problem.Err}
	for _, p := range problem.Problems {
		p.Detail += " " + text
		out.Problems = append(out.Problems, p)
	}
	return out
}

type addedError struct {
	err  error
	text string
}

func (e *addedError) Error() string { return e.err.Error() + ". " + e.text }
func (e *addedError) Unwrap() error { return e.err }

package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// listed serves all objects of a kind as a data source. What the host's lists
// tell costs a few calls, however many objects there are; the rest of each is
// read only if the configuration asks for it.
type listed struct {
	*mapped
	source kind.Source
	typ    *tree.Type
}

var _ protocol.DataSource = (*listed)(nil)

func newListed(m *mapped, source kind.Source) *listed {
	_, all := source.Inputs()
	l := &listed{mapped: m, source: source}
	noun := source.Noun()
	attrs := append([]*tree.Attribute{
		{Name: "name_regex", Type: tree.StringType, Optional: true, Description: fmt.Sprintf("Only the %ss whose names match this [regular expression](https://github.com/google/re2/wiki/Syntax), anywhere in the name unless it has `^` and `$`.", noun)},
		{Name: "full", Type: tree.BoolType, Optional: true, Description: fmt.Sprintf("Read each %s whole, as `data.%s` does. Standard: false; then only what the host's lists tell is set, and all else is null.", noun, m.typeName)},
		{Name: "names", Type: tree.ListOf(tree.StringType), Computed: true, Description: "Their names, sorted."},
		{Name: l.plural(), Type: tree.ListOf(elements(source)), Computed: true, Plain: true, Description: fmt.Sprintf("The %ss, sorted by name, each with the attributes of `data.%s`.", noun, m.typeName)},
	}, all...)
	l.typ = tree.ObjectOf(attrs...)
	return l
}

// elements is the type of one of all: nothing of it is for the configuration, and
// no secret is in it. So a core can take it for one value, which spares every
// command another copy of a schema of thousands of attributes.
func elements(source kind.Source) *tree.Type {
	return kind.Shown(source.DataType(), source.Secret, nil)
}

func (l *listed) plural() string { return l.kind.Noun() + "s" }

func (l *listed) Schema() protocol.Schema {
	return protocol.Schema{
		TypeName: l.typeName + "s", Type: l.typ,
		Description: fmt.Sprintf("Lists the %ss of the host, whoever made them. Nothing is changed.", l.kind.Noun()),
	}
}

// Validate checks the inputs.
func (l *listed) Validate(_ context.Context, config tree.Value) (d protocol.Diagnostics) {
	if _, err := regexp.Compile(config.Attr("name_regex").Str()); err != nil {
		d.AddError(tree.Root.Attr("name_regex"), "Not a regular expression", fmt.Sprintf("name_regex is %q: %v. To find a name that has such characters, put \\\\ before them.", config.Attr("name_regex").Str(), err))
	}
	addProblems(&d, protocol.Error, l.source.Check(config))
	return d
}

// Read lists the objects.
func (l *listed) Read(ctx context.Context, config tree.Value) (out tree.Value, d protocol.Diagnostics) {
	if l.unconfigured(&d, "list", l.plural()) {
		return out, d
	}
	pattern, err := regexp.Compile(config.Attr("name_regex").Str())
	if err != nil {
		return out, l.Validate(ctx, config)
	}
	all, err := l.source.List(ctx, config)
	if err != nil {
		l.addAnswer(&d, "", err)
		return out, d
	}
	some := make([]tree.Value, 0, len(all))
	for _, one := range all {
		if pattern.MatchString(one.Attr("name").Str()) {
			some = append(some, one)
		}
	}
	if config.Attr("full").Bool() {
		if some, err = l.whole(ctx, config, some); err != nil {
			l.addAnswer(&d, "", err)
			return out, d
		}
	}
	names := make([]string, len(some))
	for i, one := range some {
		names[i] = one.Attr("name").Str()
	}
	return withInputs(config.With("names", texts(names)).With(l.plural(), tree.ListValue(some)), config), d
}

// atOnce is how many objects are read at a time; the host has a limit of its own.
const atOnce = 8

// whole reads each object. One that went since the list was made is left out.
func (l *listed) whole(ctx context.Context, config tree.Value, some []tree.Value) ([]tree.Value, error) {
	found, errs := make([]tree.Value, len(some)), make([]error, len(some))
	_, inputs := l.source.Inputs()
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, one := range some {
		for _, a := range inputs {
			if one.Attr(a.Name).IsNull() {
				one = one.With(a.Name, config.Attr(a.Name))
			}
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			found[i], errs[i] = l.source.Show(ctx, one)
		})
	}
	all.Wait()
	out := make([]tree.Value, 0, len(some))
	for i, one := range found {
		var missing *kind.MissingError
		switch {
		case errors.As(errs[i], &missing):
		case errs[i] != nil:
			return nil, errs[i]
		default:
			out = append(out, one)
		}
	}
	return out, nil
}

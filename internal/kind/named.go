package kind

import (
	"context"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Named is an object of the host that has a name and a UUID, which every one but
// a volume has.
type Named interface {
	Name() string
	UUID() string
}

// Lookup is how a data source finds one object by the attribute name or uuid of
// its configuration. O is a handle of the object, S what is read from the host
// with it.
type Lookup[O Named, S any] struct {
	Noun, Host string // for messages
	ByName     func(ctx context.Context, name string) (O, error)
	ByUUID     func(ctx context.Context, uuid string) (O, error)
	See        func(ctx context.Context, object O) (S, error)
	All        func(ctx context.Context) ([]O, error)
	NotFound   func(error) bool // libvirt itself says that there is none
}

// Find reads the object that the configuration names. If there is none, the error
// is a *MissingError.
func (l Lookup[O, S]) Find(ctx context.Context, config tree.Value) (s S, err error) {
	at, look := "name", l.ByName
	if !config.Attr("uuid").IsNull() {
		at, look = "uuid", l.ByUUID
	}
	written := config.Attr(at).Str()
	object, err := look(ctx, written)
	if err == nil {
		s, err = l.See(ctx, object)
	}
	if err == nil || !l.NotFound(err) {
		return s, err
	}
	all, listErr := l.All(ctx)
	if listErr != nil {
		return s, listErr
	}
	return s, MissingAmong(l.Noun, at, written, l.Host, all, err)
}

// MissingAmong makes a MissingError that offers the objects that there are: by
// their UUIDs if at is uuid, else by their names.
func MissingAmong[O Named](noun, at, written, host string, all []O, err error) error {
	there := make([]string, len(all))
	for i, o := range all {
		if there[i] = o.Name(); at == "uuid" {
			there[i] = fmt.Sprintf("%s (%s)", o.UUID(), o.Name())
		}
	}
	return Missing(noun, at, written, host, there, err)
}

package kind

import (
	"errors"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// RefuseStranger refuses to destroy an object that is not the one the state speaks
// of. name and uuid are those of the object that was found.
func RefuseStranger(noun string, state tree.Value, name, uuid string) error {
	wasName, wasUUID := state.Attr("name").Str(), state.Attr("uuid").Str()
	if wasName == name && (wasUUID == "" || strings.EqualFold(wasUUID, uuid)) {
		return nil
	}
	return Refuse(Problem{
		Summary: fmt.Sprintf("Refusing to destroy %s %q: it is not the one in the state", noun, name),
		Detail: fmt.Sprintf("The state has the name %q and UUID %s, the host the name %q and UUID %s. Nothing was changed. If it was renamed on purpose, refresh the state (apply -refresh-only) and repeat: then the plan shows the name that it has.",
			wasName, wasUUID, name, uuid),
	})
}

// UnlessGone is the error of a look for what is to be destroyed: nil if it is gone
// already, which is success.
func UnlessGone(err error) error {
	var gone *GoneError
	if errors.As(err, &gone) {
		return nil
	}
	return err
}

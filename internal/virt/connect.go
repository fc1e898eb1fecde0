package virt

import (
	"fmt"
	"net/url"
	"strings"

	"libvirt.org/go/libvirt"
)

// Display returns the URI for messages, without a password.
func (h *Host) Display() string { return redact(h.options.URI) }

// secretParameters of a URI are shown to nobody.
var secretParameters = []string{"password", "passwd", "passphrase", "secret", "token"}

func redact(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "the configured host (its URI is not well-formed)"
	}
	query := u.Query()
	for _, name := range secretParameters {
		if query.Has(name) {
			query.Set(name, "xxxxx")
			u.RawQuery = query.Encode()
		}
	}
	return u.Redacted()
}

// clean takes the credentials of the URI out of a message of libvirt's, which
// may quote it.
func (h *Host) clean(message string) string {
	message = strings.ReplaceAll(message, h.options.URI, h.Display())
	u, err := url.Parse(h.options.URI)
	if err != nil {
		return message
	}
	if password, set := u.User.Password(); set && password != "" {
		message = strings.ReplaceAll(message, password, "xxxxx")
	}
	for _, name := range secretParameters {
		if v := u.Query().Get(name); v != "" {
			message = strings.ReplaceAll(message, v, "xxxxx")
		}
	}
	return message
}

func (h *Host) connectError(err error) error {
	e := h.wrap(Call{Op: "connect to", Object: h.Display()}, err)
	return fmt.Errorf("%w; %s", e, h.advice(err))
}

func (h *Host) advice(err error) string {
	var text string
	if e, ok := err.(libvirt.Error); ok { //nolint:errorlint // straight from the binding
		text = e.Message
	}
	if strings.Contains(text, "libvirt.so") {
		return "install libvirt's client library (Debian and Ubuntu: apt install libvirt0; Fedora: dnf install libvirt-libs)"
	}
	return fmt.Sprintf("check that the daemon runs there and that this user may use it: virsh -c '%s' version", h.Display())
}

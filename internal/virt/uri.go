package virt

import (
	"net/url"
	"strings"
)

// Display returns the URI for messages, without a password.
func (h *Host) Display() string { return redact(h.options.URI) }

// secretParameters of a URI are shown to nobody.
var secretParameters = []string{"password", "passwd", "passphrase", "secret", "token"}

const hidden = "xxxxx" // as net/url has it

func redact(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "a URI that is not well-formed" // what is secret in it cannot be told
	}
	parts := strings.Split(u.RawQuery, "&")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		for _, secret := range secretParameters {
			if strings.EqualFold(name, secret) {
				parts[i] = name + "=" + hidden
			}
		}
	}
	u.RawQuery = strings.Join(parts, "&")
	return u.Redacted()
}

// clean takes the credentials of the URI out of a message of libvirt's, which
// may quote it.
func (h *Host) clean(message string) string {
	uri := h.options.URI
	if uri != "" {
		message = strings.ReplaceAll(message, uri, h.Display())
	}
	u, err := url.Parse(uri)
	if err != nil {
		return message
	}
	var secrets []string
	if password, set := u.User.Password(); set {
		secrets = append(secrets, password)
	}
	for name, values := range u.Query() {
		for _, secret := range secretParameters {
			if strings.EqualFold(name, secret) {
				secrets = append(secrets, values...)
			}
		}
	}
	for _, secret := range secrets {
		if secret != "" {
			message = strings.ReplaceAll(message, secret, hidden)
		}
	}
	return message
}

// driver is the hypervisor that a URI asks for: qemu of qemu+ssh.
func driver(u *url.URL) (name, transport string) {
	name, transport, _ = strings.Cut(strings.ToLower(u.Scheme), "+")
	return name, transport
}

// drivers are those that libvirt has or had.
var drivers = []string{
	"bhyve", "ch", "esx", "gsx", "hyperv", "interface", "libxl", "lxc", "network", "nodedev", "nwfilter", "openvz", "parallels", "phyp", "qemu",
	"remote", "secret", "storage", "test", "uml", "vbox", "vmwarefusion", "vmwareplayer", "vmwarews", "vpx", "vz", "xen", "xenapi",
}

// privateState says that each connection of the URI has objects of its own,
// which another connection does not see: those of the test driver that come
// from a file.
func privateState(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Scheme == "test" && u.Path != "/default"
}

package virt

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"libvirt.org/go/libvirt"
)

// A peer that says nothing for keepaliveCount+1 intervals is taken for dead,
// and the call under way fails.
const (
	keepaliveInterval = 5 * time.Second
	keepaliveCount    = 6
)

// open makes one connection.
func (h *Host) open() (*session, error) {
	events.Do(startEvents)
	conn, err := libvirt.NewConnect(h.options.URI)
	if err != nil {
		return nil, h.connectError(err)
	}
	// Drivers within the library have no peer, and refuse.
	_ = conn.SetKeepAlive(int(h.keepalive/time.Second), keepaliveCount)
	s := &session{conn: conn}
	if err := h.checkOwner(s); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func asksForSession(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Path != "/session" {
		return false
	}
	name, _ := driver(u)
	return name == "qemu"
}

// checkOwner refuses the system's daemon for a URI that asks for the user's own.
// libvirt itself lets that pass: for root, whose session is the system, and for
// a socket parameter that names the system's socket. The opposite it refuses.
func (h *Host) checkOwner(s *session) error {
	if !asksForSession(h.options.URI) {
		return nil
	}
	capabilities, err := s.conn.GetCapabilities()
	if err != nil {
		return h.connectError(err)
	}
	// Only a privileged daemon can give files to other users.
	if !strings.Contains(capabilities, "<model>dac</model>") {
		return nil
	}
	return fmt.Errorf("connect to %q: the URI asks for the user's own daemon (session), but the system's answered; "+
		"if that is meant, end the path of the URI with /system", h.Display())
}

// connectError adds to what libvirt says what can be done about it.
func (h *Host) connectError(err error) error {
	var e libvirt.Error
	message := ""
	if errors.As(err, &e) {
		message = e.Message
	}
	return fmt.Errorf("%w; %s", h.wrap(Call{Op: opConnect, Object: h.Display()}, err), h.advice(message))
}

func (h *Host) advice(message string) string {
	if strings.Contains(message, "libvirt.so") {
		return "install libvirt's client library on this machine (Debian and Ubuntu: libvirt0; Fedora and RHEL: libvirt-libs)"
	}
	u, err := url.Parse(h.options.URI)
	if err != nil || u.Scheme == "" {
		return "a URI looks like qemu:///system, or qemu+ssh://USER@HOST/system"
	}
	name, transport := driver(u)
	if !slices.Contains(drivers, name) {
		return fmt.Sprintf("libvirt has no driver %q; a URI looks like qemu:///system, or qemu+ssh://USER@HOST/system", name)
	}
	try := fmt.Sprintf("`virsh -c '%s' version` must work for this user", h.Display())
	if strings.Contains(try, hidden) {
		try = "`virsh -c URI version` must work for this user"
	}
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(message, part) })
	}
	switch {
	case transport == "ssh" || transport == "libssh" || transport == "libssh2":
		return "check that this user can log in there by ssh without being asked anything, and that the daemon runs there: " + try
	case has("No such file or directory") && has("socket to"):
		return fmt.Sprintf("check that the daemon (libvirtd or virt%sd) runs, or name its socket with ?socket=PATH: %s", name, try)
	case has("ermission denied", "polkit", "authentication", "access denied"):
		return "check that this user may use the daemon, on most hosts by being in the group libvirt: " + try
	case has("resolve"):
		return "check the name of the host: " + try
	case transport == "tls" && has("certificate", "key", "/pki/"):
		return "check the certificates on both sides, or name their directory with ?pkipath=DIR: " + try
	default:
		return "check that the daemon runs there and listens, and that this user may use it: " + try
	}
}

package virt

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"sync"
)

// identity is asked for once: a connection that is lost and opened again leads
// to the same daemon.
type identity struct {
	mu   sync.Mutex
	text string
}

// Identity names the daemon, whatever way leads to it: hypervisor, instance
// (system or a user's session) and the host's UUID. Two daemons that answer
// the same keep the same objects; a host name or an address is no part of it.
func (h *Host) Identity(ctx context.Context) (string, error) {
	h.identity.mu.Lock()
	defer h.identity.mu.Unlock()
	if h.identity.text != "" {
		return h.identity.text, nil
	}
	v, err := h.Versions(ctx)
	if err != nil {
		return "", err
	}
	document, err := h.Capabilities(ctx)
	if err != nil {
		return "", err
	}
	var caps struct {
		Host struct {
			UUID string `xml:"uuid"`
		} `xml:"host"`
	}
	if err := xml.Unmarshal([]byte(document), &caps); err != nil {
		return "", fmt.Errorf("read the capabilities of %s: %w", h.Display(), err)
	}
	instance := ""
	if u, err := url.Parse(v.URI); err == nil {
		instance = strings.TrimPrefix(u.Path, "/")
	}
	h.identity.text = strings.TrimSpace(fmt.Sprintf("%s %s %s", v.Type, instance, caps.Host.UUID))
	return h.identity.text, nil
}

package virt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func TestIsNotFound(t *testing.T) {
	absent := map[int]string{
		virt.ErrNoDomain: "domain", virt.ErrNoNetwork: "network", virt.ErrNoPool: "pool", virt.ErrNoVolume: "volume",
		virt.ErrNoSnapshot: "snapshot", virt.ErrNoCheckpoint: "checkpoint",
	}
	if len(absent) != 6 {
		t.Fatalf("two names have the same code: %v", absent)
	}
	// Codes are numbered from 0; libvirt 12 has about 110 of them.
	for code := range 300 {
		err := fmt.Errorf("read domain web: %w", &virt.Error{Op: "look up domain", Object: "web", Code: code, Message: "m"})
		if want := absent[code] != ""; virt.IsNotFound(err) != want {
			t.Errorf("code %d: IsNotFound = %v, want %v", code, !want, want)
		}
	}
	for name, err := range map[string]error{
		"nil": nil, "another error": errors.New("Domain not found"), "cancelled": context.Canceled,
		"lost": &virt.LostError{Err: &virt.Error{Code: virt.ErrSystem}},
	} {
		if virt.IsNotFound(err) {
			t.Errorf("%s counts as not found", name)
		}
	}
}

func TestErrorText(t *testing.T) {
	e := &virt.Error{Op: "define domain", Object: "web", Code: virt.ErrInvalidXML, Message: "XML error: no name"}
	if got, want := e.Error(), `define domain "web": XML error: no name`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e.Object = ""
	if got, want := e.Error(), `define domain: XML error: no name`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLostErrorText(t *testing.T) {
	cause := &virt.Error{Op: "start domain", Object: "web", Code: virt.ErrSystem, Message: "Cannot recv data: Connection reset by peer"}
	lost := &virt.LostError{Call: virt.Call{Op: "start domain", Object: "web", Write: true}, Host: "qemu+ssh://h/system", Err: cause}
	want(t, lost, `start domain "web"`, "qemu+ssh://h/system", "may have taken effect", "Connection reset by peer", "next call connects again")
	if !virt.IsLost(fmt.Errorf("apply: %w", lost)) || virt.IsLost(cause) {
		t.Error("IsLost does not tell the two apart")
	}
	if !virt.HasCode(lost, virt.ErrSystem) {
		t.Error("libvirt's code is lost on the way")
	}
	lost.Call.Write = false
	if got := lost.Error(); containsAny(got, "effect") {
		t.Errorf("a read has no effect: %q", got)
	}
}

func TestErrorsKeepLibvirtsCode(t *testing.T) {
	h := fake(t)
	_, err := h.LookupDomainByName(context.Background(), "nobody")
	var e *virt.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is no *virt.Error: %v", err, err)
	}
	if e.Op != "look up domain" || e.Object != "nobody" || e.Code != virt.ErrNoDomain || e.Domain == 0 || e.Message == "" {
		t.Errorf("got %+v", e)
	}
}

package virt

import (
	"errors"
	"strings"
	"testing"

	"libvirt.org/go/libvirt"
)

func TestDisplayHidesCredentials(t *testing.T) {
	for uri, want := range map[string]string{
		"qemu:///system":                         "qemu:///system",
		"qemu+ssh://root@h:2222/system?no_tty=1": "qemu+ssh://root@h:2222/system?no_tty=1",
		"qemu+ssh://root:s3cret@h/system":        "qemu+ssh://root:xxxxx@h/system",
		"esx://h/?password=s3cret&no_verify=1":   "esx://h/?password=xxxxx&no_verify=1",
		"esx://h/?a=b&Token=s3cret":              "esx://h/?a=b&Token=xxxxx",
		"qemu+unix:///system?socket=/a/b%20c":    "qemu+unix:///system?socket=/a/b%20c",
		"%zz:s3cret@h":                           "a URI that is not well-formed",
		"":                                       "",
	} {
		h := NewHost(Options{URI: uri})
		if got := h.Display(); got != want {
			t.Errorf("Display of %q = %q, want %q", uri, got, want)
		}
		if h.URI() != uri {
			t.Errorf("URI of %q = %q", uri, h.URI())
		}
	}
}

func TestMessagesHideCredentials(t *testing.T) {
	for _, uri := range []string{"qemu+foo://root:s3cret@h/system", "esx://h/?password=s3cret", "qemu+ssh://root:s3cr%65t@h/system"} {
		h := NewHost(Options{URI: uri})
		for _, message := range []string{"no connection driver available for " + uri, "login root with s3cret failed"} {
			err := h.connectError(libvirt.Error{Code: libvirt.ERR_NO_CONNECT, Message: message})
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "s3cr%65t") {
				t.Errorf("%q with %q shows the password: %v", uri, message, err)
			}
			if !HasCode(err, ErrNoConnect) {
				t.Errorf("the code is lost: %v", err)
			}
		}
	}
	h := NewHost(Options{URI: "qemu+ssh://root:@h/system"})
	if got := h.clean("an empty password hides nothing"); got != "an empty password hides nothing" {
		t.Errorf("got %q", got)
	}
	if got := NewHost(Options{}).clean("no URI"); got != "no URI" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyFilesOfTheTestDriverKeepTheirState(t *testing.T) {
	for uri, want := range map[string]bool{
		"test:///default": false, "test:///tmp/host.xml": true, "test+unix:///default": false, "test+ssh://h/tmp/host.xml": false, "qemu:///system": false,
	} {
		if got := privateState(uri); got != want {
			t.Errorf("privateState(%q) = %v", uri, got)
		}
	}
}

func TestWrapOfAnotherError(t *testing.T) {
	cause := errors.New("disk full")
	err := NewHost(Options{}).wrap(Call{Op: "download volume", Object: "a"}, cause)
	if !errors.Is(err, cause) || err.Error() != `download volume "a": disk full` {
		t.Errorf("got %v", err)
	}
}

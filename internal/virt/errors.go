package virt

import (
	"errors"
	"fmt"

	"libvirt.org/go/libvirt"
)

// Error is what libvirt answered.
type Error struct {
	Op, Object string
	Code       int // virErrorNumber
	Domain     int // virErrorDomain
	Message    string
}

func (e *Error) Error() string {
	if e.Object == "" {
		return fmt.Sprintf("%s: %s", e.Op, e.Message)
	}
	return fmt.Sprintf("%s %q: %s", e.Op, e.Object, e.Message)
}

// Codes that others ask for. https://libvirt.org/html/libvirt-virterror.html
const (
	ErrOperationInvalid    = int(libvirt.ERR_OPERATION_INVALID)
	ErrArgumentUnsupported = int(libvirt.ERR_ARGUMENT_UNSUPPORTED)
	ErrNoDomainMetadata    = int(libvirt.ERR_NO_DOMAIN_METADATA)
	ErrNoSupport           = int(libvirt.ERR_NO_SUPPORT)
	ErrInvalidArg          = int(libvirt.ERR_INVALID_ARG)
)

func wrap(op, object string, err error) error {
	if err == nil {
		return nil
	}
	var e libvirt.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s %q: %w", op, object, err)
	}
	return &Error{op, object, int(e.Code), int(e.Domain), e.Message}
}

// HasCode says whether the error is libvirt's of that code.
func HasCode(err error, code int) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// IsNotFound says whether libvirt itself answered that there is no such
// object. Nothing else counts: not a lost connection, not a missing right.
func IsNotFound(err error) bool {
	for _, code := range []libvirt.ErrorNumber{libvirt.ERR_NO_DOMAIN, libvirt.ERR_NO_NETWORK, libvirt.ERR_NO_STORAGE_POOL, libvirt.ERR_NO_STORAGE_VOL} {
		if HasCode(err, int(code)) {
			return true
		}
	}
	return false
}

package virt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirt"
)

// Error is what libvirt answered to a call.
type Error struct {
	Op, Object string // the call
	Code       int    // virErrorNumber
	Domain     int    // virErrorDomain: which part of libvirt it comes from
	Message    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s", Call{Op: e.Op, Object: e.Object}, e.Message)
}

// Codes that others ask for. https://libvirt.org/html/libvirt-virterror.html
const (
	ErrInternal            = int(libvirt.ERR_INTERNAL_ERROR)
	ErrNoSupport           = int(libvirt.ERR_NO_SUPPORT)
	ErrNoConnect           = int(libvirt.ERR_NO_CONNECT)
	ErrInvalidArg          = int(libvirt.ERR_INVALID_ARG)
	ErrOperationFailed     = int(libvirt.ERR_OPERATION_FAILED)
	ErrSystem              = int(libvirt.ERR_SYSTEM_ERROR)
	ErrRPC                 = int(libvirt.ERR_RPC)
	ErrXML                 = int(libvirt.ERR_XML_ERROR) // also: it contradicts itself
	ErrNoDomain            = int(libvirt.ERR_NO_DOMAIN)
	ErrNoNetwork           = int(libvirt.ERR_NO_NETWORK)
	ErrAuthFailed          = int(libvirt.ERR_AUTH_FAILED)
	ErrNoPool              = int(libvirt.ERR_NO_STORAGE_POOL)
	ErrNoVolume            = int(libvirt.ERR_NO_STORAGE_VOL)
	ErrOperationInvalid    = int(libvirt.ERR_OPERATION_INVALID) // not in this state of the object
	ErrConfigUnsupported   = int(libvirt.ERR_CONFIG_UNSUPPORTED)
	ErrOperationTimeout    = int(libvirt.ERR_OPERATION_TIMEOUT)
	ErrNoSnapshot          = int(libvirt.ERR_NO_DOMAIN_SNAPSHOT)
	ErrArgumentUnsupported = int(libvirt.ERR_ARGUMENT_UNSUPPORTED)
	ErrNoDomainMetadata    = int(libvirt.ERR_NO_DOMAIN_METADATA) // the domain is there, the piece of metadata is not
	ErrAccessDenied        = int(libvirt.ERR_ACCESS_DENIED)
	ErrOperationDenied     = int(libvirt.ERR_OPERATION_DENIED) // the connection is read-only
	ErrUnsupported         = int(libvirt.ERR_OPERATION_UNSUPPORTED)
	ErrAgentUnresponsive   = int(libvirt.ERR_AGENT_UNRESPONSIVE)
	ErrResourceBusy        = int(libvirt.ERR_RESOURCE_BUSY)
	ErrVolumeExists        = int(libvirt.ERR_STORAGE_VOL_EXIST)
	ErrInvalidXML          = int(libvirt.ERR_XML_INVALID_SCHEMA)
	ErrAuthUnavailable     = int(libvirt.ERR_AUTH_UNAVAILABLE)
	ErrDeviceMissing       = int(libvirt.ERR_DEVICE_MISSING)
	ErrNoSecret            = int(libvirt.ERR_NO_SECRET)
	ErrCPUIncompatible     = int(libvirt.ERR_CPU_INCOMPATIBLE)
	ErrNoCheckpoint        = int(libvirt.ERR_NO_DOMAIN_CHECKPOINT)
	ErrNoNodeDevice        = int(libvirt.ERR_NO_NODE_DEVICE)
)

// HasCode says whether the error is libvirt's of that code.
func HasCode(err error, code int) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// notFound are the codes with which libvirt itself says that the object asked
// for does not exist. ERR_NO_DOMAIN_METADATA is none of them: there the domain
// exists.
var notFound = []int{ErrNoDomain, ErrNoNetwork, ErrNoPool, ErrNoVolume, ErrNoSnapshot, ErrNoCheckpoint}

// IsNotFound says whether libvirt itself answered that there is no such
// object. Nothing else counts: not a lost connection, not a missing right, not
// a pool that is not started.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains(notFound, e.Code)
}

// LostError is the failure of a call during which the connection was lost.
// Whether a write took effect is not known then.
type LostError struct {
	Call Call
	Host string // the URI, fit for messages
	Err  error  // what libvirt said, an *Error
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("%s: the connection to %s was lost", e.Call, e.Host)
	if e.Call.Write {
		text += " during the call, so it may have taken effect or not"
	}
	var cause *Error
	if errors.As(e.Err, &cause) {
		text += " (" + cause.Message + ")"
	}
	return text + "; check that libvirt's daemon runs on that host and that the network to it holds, then repeat: the next call connects again"
}

func (e *LostError) Unwrap() error { return e.Err }

// IsLost says whether the error is a connection that was lost during the call.
// No code of libvirt's says that.
func IsLost(err error) bool {
	var e *LostError
	return errors.As(err, &e)
}

// IsUnreachable says whether there was nobody to be asked: the connection was
// lost during the call, or could not be made.
func IsUnreachable(err error) bool {
	var e *Error
	return IsLost(err) || errors.As(err, &e) && e.Op == opConnect
}

// wrap gives an error the call, and keeps libvirt's code.
func (h *Host) wrap(c Call, err error) error {
	var e libvirt.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s: %w", c, err)
	}
	return &Error{c.Op, c.Object, int(e.Code), int(e.Domain), h.clean(e.Message)}
}

func (h *Host) lostError(c Call, err error) error { return &LostError{c, h.Display(), h.wrap(c, err)} }

// neverSent recognises the answer of the library to a call on a connection
// that was closed before. It has no code of its own.
func neverSent(err error) bool {
	return answered(err, libvirt.ERR_INTERNAL_ERROR) && strings.Contains(err.Error(), "client socket is closed")
}

// answered looks for a code in an error of the binding.
func answered(err error, code libvirt.ErrorNumber) bool {
	var e libvirt.Error
	return errors.As(err, &e) && e.Code == code
}

package virttest

import (
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Answer makes the error that a call gets.
type Answer func(virt.Call) error

// Parts of libvirt, as its virErrorDomain numbers them.
const (
	fromNone    = 0
	fromRPC     = 7
	fromQEMU    = 10
	fromStorage = 18
	fromNetwork = 19
	fromDomain  = 20
)

func answer(c virt.Call, code, domain int, message string) error {
	return &virt.Error{Op: c.Op, Object: c.Object, Code: code, Domain: domain, Message: message}
}

// ConnectionLost is what a call gets during which the daemon ends.
func ConnectionLost(c virt.Call) error {
	return &virt.LostError{
		Call: c, Host: "qemu:///system",
		Err: answer(c, virt.ErrSystem, fromRPC, "Cannot recv data: Connection reset by peer"),
	}
}

// PermissionDenied is what a call gets that the daemon's access control forbids.
func PermissionDenied(c virt.Call) error {
	return answer(c, virt.ErrAccessDenied, fromNone, "access denied")
}

// ReadOnly is what a write on a domain gets on a read-only connection; libvirt
// names its function at the end.
func ReadOnly(c virt.Call) error {
	return answer(c, virt.ErrOperationDenied, fromDomain, "operation forbidden: read only access prevents virDomainDefineXMLFlags")
}

// Internal is libvirt's answer to whatever went wrong within it, or in QEMU.
func Internal(message string) Answer {
	return func(c virt.Call) error {
		return answer(c, virt.ErrInternal, fromQEMU, "internal error: "+message)
	}
}

// Coded is an answer of any code of libvirt's.
func Coded(code int, message string) Answer {
	return func(c virt.Call) error { return answer(c, code, fromQEMU, message) }
}

// NoSuchDomain is what a call on a domain gets that is not there.
func NoSuchDomain(c virt.Call) error {
	return answer(c, virt.ErrNoDomain, fromQEMU, fmt.Sprintf("Domain not found: no domain with matching uuid '%s'", c.Object))
}

// NoSuchNetwork is the same of a network.
func NoSuchNetwork(c virt.Call) error {
	return answer(c, virt.ErrNoNetwork, fromNetwork, fmt.Sprintf("Network not found: no network with matching uuid '%s'", c.Object))
}

// NoSuchPool is the same of a pool.
func NoSuchPool(c virt.Call) error {
	return answer(c, virt.ErrNoPool, fromStorage, fmt.Sprintf("Storage pool not found: no storage pool with matching uuid '%s'", c.Object))
}

// NoSuchVolume is the same of a volume.
func NoSuchVolume(c virt.Call) error {
	return answer(c, virt.ErrNoVolume, fromStorage, fmt.Sprintf("Storage volume not found: no storage vol with matching name '%s'", c.Object))
}

// NoSuchObject is the one of these that fits the call's kind of object.
func NoSuchObject(c virt.Call) error {
	for kind, of := range map[string]Answer{"domain": NoSuchDomain, "network": NoSuchNetwork, "pool": NoSuchPool, "volume": NoSuchVolume} {
		if strings.HasSuffix(c.Op, " "+kind) {
			return of(c)
		}
	}
	panic(fmt.Sprintf("virttest: %q is no operation on a single object", c.Op)) // a mistake in the test
}

// PoolInactive is what a call on a volume gets whose pool is not started.
func PoolInactive(c virt.Call) error {
	return answer(c, virt.ErrOperationInvalid, fromStorage, "Requested operation is not valid: storage pool 'default' is not active")
}

// PoolBusy is what a change of a pool gets while it has jobs.
func PoolBusy(c virt.Call) error {
	return answer(c, virt.ErrInternal, fromStorage, fmt.Sprintf("internal error: pool '%s' has asynchronous jobs running.", c.Object))
}

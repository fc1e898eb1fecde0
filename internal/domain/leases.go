package domain

import "github.com/driftsafe/terraform-provider-libvirt/internal/tree"

// leasePlug are locks that the guest holds at the lock manager of the host, so
// that nobody else runs on what they stand for. They are no devices, and the
// guest sees nothing of them: libvirt takes and releases them at any time.
var leasePlug = &plug{
	noun: "lease",
	list: "devices.leases",
	in:   func(tree.Value, situation) string { return "" },
}

var leaseAspect = leasePlug.aspect()

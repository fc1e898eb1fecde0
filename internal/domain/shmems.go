package domain

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// shmemPlug are pieces of memory that several guests of a host share.
var shmemPlug = &plug{
	noun: "shared memory device",
	list: "devices.shmems",
	in: func(shmem tree.Value, _ situation) string {
		if model := shmem.At("model.type").Str(); model != "ivshmem-plain" && model != "ivshmem-doorbell" {
			return fmt.Sprintf("libvirt cannot plug shared memory of the model %q in; it can of the models ivshmem-plain and ivshmem-doorbell.", model)
		}
		return ""
	},
	seat: func(tree.Value, situation) seat { return conventional },
}

var shmemAspect = shmemPlug.aspect()

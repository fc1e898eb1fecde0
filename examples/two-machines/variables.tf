variable "uri" {
  description = "libvirt's connection URI."
  type        = string
  default     = "qemu:///system"
}

variable "image" {
  description = "Path or URL of a qcow2 image that boots by itself."
  type        = string
}

variable "pool_path" {
  description = "Directory for the machines' disks, on the host."
  type        = string
  default     = "/var/lib/libvirt/machines"
}

variable "domain_type" {
  description = "kvm, or qemu where the host has no KVM."
  type        = string
  default     = "kvm"
}

variable "machines" {
  description = "The machines by name; memory and disk in MiB."
  type = map(object({
    title   = string
    memory  = optional(number, 256)
    disk    = optional(number, 1024)
    protect = optional(bool)
  }))
  default = {
    router   = { title = "Router of the lab" }
    database = { title = "Database of the lab" }
  }
}

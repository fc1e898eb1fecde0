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
  description = <<-EOT
    The machines by name; memory, balloon and disk in MiB. A running machine
    gets another balloon up to its memory, and other cpus up to its most_cpus;
    memory, most_cpus and machine_type wait for its next start.
  EOT
  type = map(object({
    title        = string
    memory       = optional(number, 256)
    balloon      = optional(number)
    cpus         = optional(number, 1)
    most_cpus    = optional(number, 2)
    machine_type = optional(string, "q35")
    disk         = optional(number, 1024)
    protect      = optional(bool)
  }))
  default = {
    router   = { title = "Router of the lab" }
    database = { title = "Database of the lab" }
  }
}

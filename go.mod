module github.com/driftsafe/terraform-provider-libvirt

go 1.26.8

require (
	github.com/beevik/etree v1.8.1 // indirect
	github.com/hashicorp/terraform-plugin-framework v1.19.0 // indirect
	github.com/hashicorp/terraform-plugin-go v0.31.0 // indirect
	github.com/hashicorp/terraform-plugin-log v0.11.0 // indirect
	github.com/hashicorp/terraform-plugin-mux v0.23.1 // indirect
	github.com/hashicorp/terraform-plugin-testing v1.16.0 // indirect
	github.com/kdomanski/iso9660 v0.4.0 // indirect
	libvirt.org/go/libvirt v1.12007.0 // indirect
	libvirt.org/go/libvirtxml v1.12008.0 // indirect
)

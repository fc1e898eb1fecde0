package host

import "github.com/driftsafe/terraform-provider-libvirt/tools/testhost/debian"

// Requirements are what a host needs on the machine. libvirt-daemon-system is
// deliberately not among them: it is what would make libvirtd a service of the
// machine, and a host brings its own configuration.
var Requirements = []debian.Requirement{
	{What: "libvirtd", Files: []string{"libvirtd"}, Packages: []string{"libvirt-daemon"}},
	{What: "libvirt's QEMU driver", Files: []string{"/usr/lib/*/libvirt/connection-driver/libvirt_driver_qemu.so", "/usr/lib*/libvirt/connection-driver/libvirt_driver_qemu.so"},
		Packages: []string{"libvirt-daemon-driver-qemu"}},
	{What: "virsh", Files: []string{"virsh"}, Packages: []string{"libvirt-clients"}},
	{What: "libvirt's network filters", Files: []string{"/etc/libvirt/nwfilter/*.xml", "/usr/share/libvirt/nwfilter/*.xml"},
		Packages: []string{"libvirt-daemon-config-nwfilter"}},
	{What: "QEMU for x86", Files: []string{"qemu-system-x86_64"}, Packages: []string{"qemu-system-x86"}},
	{What: "qemu-img", Files: []string{"qemu-img"}, Packages: []string{"qemu-utils"}},
	{What: "UEFI firmware", Files: []string{"/usr/share/OVMF/OVMF_CODE*.fd", "/usr/share/edk2/ovmf/OVMF_CODE*.fd"}, Packages: []string{"ovmf"}},
	{What: "swtpm", Files: []string{"swtpm"}, Packages: []string{"swtpm"}},
	{What: "swtpm_setup", Files: []string{"swtpm_setup"}, Packages: []string{"swtpm-tools"}},
	{What: "virtiofsd", Files: []string{"/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd"}, Packages: []string{"virtiofsd", "qemu-system-common"}},
	{What: "dnsmasq", Files: []string{"dnsmasq"}, Packages: []string{"dnsmasq-base"}},
	{What: "iptables", Files: []string{"iptables"}, Packages: []string{"iptables"}},
	{What: "ebtables", Files: []string{"ebtables"}, Packages: []string{"iptables", "ebtables"}},
	{What: "ip", Files: []string{"ip"}, Packages: []string{"iproute2"}},
	{What: "nsenter", Files: []string{"nsenter"}, Packages: []string{"util-linux"}},
	{What: "dmidecode", Files: []string{"dmidecode"}, Packages: []string{"dmidecode"}},
	{What: "qemu-ga's libraries (libnuma)", Files: []string{"/usr/lib/*/libnuma.so.1", "/lib/*/libnuma.so.1"}, Packages: []string{"libnuma1"}},
	{What: "qemu-ga's libraries (liburing)", Files: []string{"/usr/lib/*/liburing.so.2", "/lib/*/liburing.so.2"}, Packages: []string{"liburing2"}},
	{What: "qemu-ga's libraries (glib)", Files: []string{"/usr/lib/*/libglib-2.0.so.0", "/lib/*/libglib-2.0.so.0"}, Packages: []string{"libglib2.0-0", "libglib2.0-0t64"}},
}

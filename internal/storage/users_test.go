package storage

import (
	"slices"
	"strings"
	"testing"
)

const everyUse = `
<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>m</name><memory>1</memory>
  <os><type>hvm</type><loader readonly='yes' type='pflash'>/pool/code.fd</loader><nvram template='/pool/vars.fd'>/nvram/m.fd</nvram><kernel>/pool/vmlinuz</kernel></os>
  <devices>
    <disk type='file' device='disk'><source file='/pool//over.qcow2'/><target dev='vda'/>
      <backingStore type='file'><format type='qcow2'/><source file='/pool/mid.qcow2'/>
        <backingStore type='file'><format type='qcow2'/><source file='/pool/low.qcow2'/>
          <backingStore type='block'><format type='raw'/><source dev='/dev/vg/base'/><backingStore/></backingStore></backingStore></backingStore></disk>
    <disk type='volume' device='disk'><source pool='p' volume='v'/><target dev='vdb'/></disk>
    <disk type='file' device='cdrom'><source file='/pool/seed.iso'/><target dev='sda'/><readonly/></disk>
    <disk type='block' device='lun'><source dev='/dev/vg/data'/><target dev='sdb'/></disk>
    <disk type='network' device='disk'><source protocol='rbd' name='pool/image'/><target dev='vdc'/></disk>
    <filesystem type='mount'><source dir='/pool/shared'/><target dir='tag'/></filesystem>
    <serial type='file'><source path='/log/m'/></serial>
  </devices>
  <sysinfo type='fwcfg'><entry name='opt/com.coreos/config' file='/pool/web.ign'/></sysinfo>
  <qemu:commandline><qemu:arg value='-drive'/><qemu:arg value='file=/pool/extra.img,if=none'/><qemu:arg value='-fw_cfg'/><qemu:arg value='name=opt/x,file=/pool/web.sh'/></qemu:commandline>
</domain>`

func TestUsersIn(t *testing.T) {
	all, err := usersIn(everyUse, user{name: "m", running: true})
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		pool, name, file string
		has, over        bool
		places           string
	}{
		{"", "", "/pool/over.qcow2", true, false, "disk vda"},
		{"", "", "/pool/mid.qcow2", false, true, "disk vda"},
		{"", "", "/dev/vg/base", false, true, "disk vda"},
		{"p", "v", "/somewhere/v", true, false, "disk vdb"},
		{"q", "v", "/elsewhere/v", false, false, ""},
		{"", "", "/pool/seed.iso", true, false, "disk sda"},
		{"", "", "/dev/vg/data", true, false, "disk sdb"},
		{"", "", "/pool/code.fd", true, false, "os.loader"},
		{"", "", "/pool/vars.fd", true, false, "os.nv_ram"},
		{"", "", "/pool/vmlinuz", true, false, "os.kernel"},
		{"", "", "/pool/shared", true, false, "devices.filesystems[0]"},
		{"", "", "/log/m", true, false, "devices.serials[0]"},
		{"", "", "/pool/extra.img", false, false, "qemu_commandline.args[1]"},
		{"", "", "/pool/web.ign", true, false, "sys_info[0].fw_cfg.entry[0].file"},
		{"", "", "/pool/web.sh", false, false, "qemu_commandline.args[3]"},
		{"", "", "/pool/none", false, false, ""},
		{"", "", "", false, false, ""},
	}
	for _, c := range cases {
		var places []string
		has, over := false, false
		for _, u := range all {
			if u.needs(c.pool, c.name, c.file) {
				has, over = has || u.has(c.pool, c.name, c.file), over || u.liesOver(c.file)
				places = append(places, u.place)
				if once := c.file == "/pool/web.ign" || c.file == "/pool/web.sh"; u.once != once {
					t.Errorf("%s: QEMU reads it once: %v, want %v", c.file, u.once, once)
				}
			}
		}
		if has != c.has || over != c.over || len(places) > 1 || c.places == "" != (places == nil) || !strings.HasPrefix(strings.Join(places, " "), c.places) {
			t.Errorf("%s/%s %s: has %v, lies over %v, at %v", c.pool, c.name, c.file, has, over, places)
		}
	}
	var writable []string
	for _, u := range all {
		if u.target != "" {
			writable = append(writable, u.target)
		}
	}
	if want := []string{"vda", "vdb", "sdb", "vdc"}; !slices.Equal(writable, want) {
		t.Errorf("the guest writes to %v, not %v", writable, want)
	}
}

func TestListNamesEachOnce(t *testing.T) {
	u := user{name: "m", place: "disk vda", running: true}
	off := u
	off.running = false
	if got := strings.Join(list([]user{u, u, off}), "; "); got != "domain m (running), disk vda; domain m (defined), disk vda" {
		t.Error(got)
	}
}

package storage

import (
	"slices"
	"testing"
)

// What the schema has no attribute for, or no list of parts has, is found by
// its form.
func TestCloselyFindsWhatIsNamedAnywhere(t *testing.T) {
	const document = `<domain type='kvm'><name>m</name><memory>1</memory><os><type>hvm</type><kernel>/pool/vmlinuz</kernel></os><devices>
<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/pool/a'><dataStore type='file'><source file='/pool/raw-data'/></dataStore></source><target dev='vda'/>
 <mirror type='file' job='copy'><source file='/pool/copy'/></mirror></disk>
<disk type='volume' device='disk'><source pool='p' volume='v'/><target dev='vdb'/></disk>
<unheard file='/pool/of'/></devices></domain>`
	all, err := closely(document, user{name: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pool, volume, file string
		places             []string
	}{
		{"", "", "/pool/a", []string{"disk vda"}},
		{"", "", "/pool/raw-data", []string{"its XML"}},
		{"", "", "/pool/copy", []string{"its XML"}},
		{"", "", "/pool/of", []string{"its XML"}},
		{"", "", "/pool/vmlinuz", []string{"os.kernel"}},
		{"p", "v", "/q/v", []string{"disk vdb"}},
		{"p", "w", "/q/w", nil},
	} {
		var places []string
		for _, u := range all {
			if u.needs(c.pool, c.volume, c.file) {
				places = append(places, u.place)
			}
		}
		if !slices.Equal(places, c.places) {
			t.Errorf("%s is named at %q, not %q", c.file, places, c.places)
		}
	}
	if all[0].format != "qcow2" {
		t.Errorf("the format of the disk is %q", all[0].format)
	}
	if _, err := closely("<domain", user{}); err == nil {
		t.Error("what cannot be read names nothing")
	}
}

// Storage that is reached by a network is compared by what libvirt calls it.
func TestRemoteNames(t *testing.T) {
	const document = `<domain type='kvm'><name>m</name><memory>1</memory><os><type>hvm</type></os><devices>
<disk type='network' device='disk'><driver name='qemu' type='raw'/><source protocol='rbd' name='images/base@first'><host name='h'/></source><target dev='vda'/></disk>
<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/pool/over'/><backingStore type='network'><format type='raw'/><source protocol='gluster' name='store/dir/base'><host name='h'/></source><backingStore/></backingStore><target dev='vdb'/></disk>
<disk type='network' device='lun'><source protocol='iscsi' name='iqn.2026-01.example:disks/3'><host name='h'/></source><target dev='sda'/></disk>
<disk type='network' device='disk'><source protocol='iscsi' name='iqn.2026-01.example:first'><host name='h'/></source><target dev='sdb'/></disk>
<hostdev mode='subsystem' type='scsi'><source protocol='iscsi' name='iqn.2026-01.example:direct/1'><host name='h'/></source></hostdev></devices></domain>`
	all, err := closely(document, user{name: "m", running: true})
	if err != nil {
		t.Fatal(err)
	}
	const gluster = "gluster://h/store/dir/"
	for _, c := range []struct {
		file, key string
		places    []string
	}{
		{"images/base", "images/base", []string{"disk vda"}},
		{"images/other", "images/other", nil},
		{"other/base", "other/base", nil},
		{"store/dir/base", gluster + "base", []string{"disk vdb"}},
		{"other", gluster + "base", []string{"disk vdb"}},
		{"store/dir/bas", gluster + "bas", nil},
		{"/dev/disk/by-path/ip-1.2.3.4:3260-iscsi-iqn.2026-01.example:disks-lun-3", "x", []string{"disk sda"}},
		{"ip-1.2.3.4:3260-iscsi-iqn.2026-01.example:disks-lun-33", "x", nil},
		{"ip-1.2.3.4:3260-iscsi-iqn.2026-01.example:first-lun-0", "x", []string{"disk sdb"}},
		{"ip-1.2.3.4:3260-iscsi-iqn.2026-01.example:direct-lun-1", "x", []string{"its XML"}},
	} {
		this := &identity{file: c.file, key: c.key}
		var places []string
		for _, u := range all {
			if slices.ContainsFunc(u.remotes, this.isRemote) {
				places = append(places, u.place)
			}
		}
		if !slices.Equal(places, c.places) {
			t.Errorf("%s is named at %q, not %q", c.file, places, c.places)
		}
	}
	for _, u := range all {
		if u.place == "disk vdb" && !u.told {
			t.Error("libvirt has told all that is below vdb")
		}
	}
}

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

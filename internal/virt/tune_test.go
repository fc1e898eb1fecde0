package virt

import (
	"reflect"
	"strings"
	"testing"

	"libvirt.org/go/libvirt"
)

// Names that the binding renames would panic at the first call.
func TestParametersOfTheBinding(t *testing.T) {
	for name, c := range map[string]struct {
		fields fields
		of     any
		left   int // fields of the struct that no name reaches: other hypervisors', strings
	}{
		"memory":     {memoryFields, &libvirt.DomainMemoryParameters{}, 0},
		"scheduler":  {schedulerFields, &libvirt.DomainSchedulerParameters{}, 5},
		"perf":       {perfFields, &libvirt.DomainPerfEvents{}, 0},
		"iotune":     {ioFields, &libvirt.DomainBlockIoTuneParameters{}, 1},
		"I/O thread": {ioThreadFields, &libvirt.DomainSetIOThreadParams{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			want := Parameters{}
			for field := range c.fields {
				want[field] = 1
			}
			if err := c.fields.pack(want, c.of); err != nil {
				t.Fatal(err)
			}
			if got := c.fields.unpack(c.of); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v", got)
			}
			v, left := reflect.ValueOf(c.of).Elem(), 0
			for i := range v.NumField() {
				if strings.HasSuffix(v.Type().Field(i).Name, "Set") && !v.Field(i).Bool() {
					left++
				}
			}
			if left != c.left {
				t.Errorf("%d fields of the binding have no name, want %d", left, c.left)
			}
			if got := c.fields.unpack(reflect.New(v.Type()).Interface()); len(got) != 0 {
				t.Errorf("of nothing set: %v", got)
			}
		})
	}
	var p libvirt.DomainSchedulerParameters
	if err := schedulerFields.pack(Parameters{"quota": -1}, &p); err != nil || p.VcpuQuota != -1 || !p.VcpuQuotaSet || p.VcpuPeriodSet {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestBlkioOfTheBinding(t *testing.T) {
	for text, broken := range map[string]bool{"": false, "/dev/a,1": false, "/dev/a,1,/dev/b,2": false, "/dev/a": true, "/dev/a,x": true, "/dev/a,1,": true} {
		b, err := blkio(&libvirt.DomainBlkioParameters{DeviceReadIops: text})
		if (err != nil) != broken {
			t.Errorf("%q: %+v, %v", text, b, err)
		}
	}
	both := Blkio{Weight: 500, Devices: map[string]Parameters{"/dev/a": {"weight": 1}, "/dev/b": {"weight": 2, "read_bytes_sec": 3}}}
	p, err := both.pack()
	if err != nil || p.DeviceWeight != "/dev/a,1,/dev/b,2" || p.DeviceReadBps != "/dev/b,3" || p.DeviceWriteBpsSet || p.Weight != 500 {
		t.Errorf("%+v, %v", p, err)
	}
	if again, err := blkio(p); err != nil || !reflect.DeepEqual(again, both) {
		t.Errorf("%+v, %v", again, err)
	}
}

package domain

import (
	"encoding/binary"
	"errors"
	"testing"
)

const testCluster = 64 << 10

// qcow2 is an image with clusters of 64 KiB: header, table of tables, first
// table, first cluster. change may spoil it.
func qcow2(l1, l2 uint64, first byte, change func(image []byte)) []byte {
	image := make([]byte, 4*testCluster)
	copy(image, qcow2Magic)
	binary.BigEndian.PutUint32(image[4:], 3)
	binary.BigEndian.PutUint32(image[20:], 16)
	binary.BigEndian.PutUint64(image[24:], 1<<30)
	binary.BigEndian.PutUint32(image[36:], 2)
	binary.BigEndian.PutUint64(image[40:], testCluster)
	binary.BigEndian.PutUint32(image[100:], 104)
	binary.BigEndian.PutUint64(image[testCluster:], l1)
	binary.BigEndian.PutUint64(image[2*testCluster+8:], l2) // of the second cluster that the guest sees
	image[3*testCluster+100] = first
	if change != nil {
		change(image)
	}
	return image
}

func readingOf(b []byte) reading {
	return func(offset, length uint64) ([]byte, error) {
		if offset > uint64(len(b)) {
			return nil, errors.New("no such place")
		}
		return b[offset:min(offset+length, uint64(len(b)))], nil
	}
}

func TestContentOf(t *testing.T) {
	const copied = 1 << 63
	withBlock := func(at int) []byte {
		b := make([]byte, 2<<20)
		b[at] = 1
		return b
	}
	table, cluster := uint64(2*testCluster|copied), uint64(3*testCluster|copied)
	put32 := func(at int, v uint32) func([]byte) {
		return func(b []byte) { binary.BigEndian.PutUint32(b[at:], v) }
	}
	put64 := func(at int, v uint64) func([]byte) {
		return func(b []byte) { binary.BigEndian.PutUint64(b[at:], v) }
	}
	for name, c := range map[string]struct {
		image     []byte
		unwritten bool
		want      content
	}{
		"raw, data at the beginning":          {image: withBlock(0), want: data},
		"raw, data at the end of the head":    {image: withBlock(headSize - 1), want: data},
		"raw, data behind the head":           {image: withBlock(headSize), want: empty},
		"raw, zeros":                          {image: make([]byte, 2<<20), want: empty},
		"raw, small":                          {image: []byte{0, 0, 1}, want: data},
		"raw, never written":                  {image: withBlock(0), unwritten: true, want: empty},
		"no bytes":                            {image: nil, want: unclear},
		"qcow2, no tables":                    {image: qcow2(0, 0, 0, nil), want: empty},
		"qcow2 of version 2":                  {image: qcow2(0, 0, 0, put32(4, 2)), want: empty},
		"qcow2, over another":                 {image: qcow2(0, 0, 0, put64(8, 200)), want: data},
		"qcow2, data":                         {image: qcow2(table, cluster, 1, nil), want: data},
		"qcow2, prepared":                     {image: qcow2(table, cluster, 0, nil), want: empty},
		"qcow2, a cluster of zeros":           {image: qcow2(table, cluster|qcow2Zero, 1, nil), want: empty},
		"qcow2, compressed":                   {image: qcow2(table, qcow2Packed|77, 0, nil), want: data},
		"qcow2, data far away":                {image: qcow2(0, 0, 0, put64(testCluster+8, table)), want: unclear},
		"qcow2, dirty":                        {image: qcow2(0, 0, 0, put64(72, 1)), want: empty},
		"qcow2, with a file of its own":       {image: qcow2(0, 0, 0, put64(72, 4)), want: unclear},
		"qcow2, with subclusters":             {image: qcow2(0, 0, 0, put64(72, 16)), want: unclear},
		"qcow2, encrypted":                    {image: qcow2(0, 0, 0, put32(32, 2)), want: unclear},
		"qcow2, clusters out of all measure":  {image: qcow2(0, 0, 0, put32(20, 60)), want: unclear},
		"qcow2, no room for tables":           {image: qcow2(0, 0, 0, put32(36, 0)), want: unclear},
		"qcow2, tables nowhere":               {image: qcow2(0, 0, 0, put64(40, 1<<40)), want: unclear},
		"qcow2, a table nowhere":              {image: qcow2(1<<40, 0, 0, nil), want: unclear},
		"qcow2, a cluster nowhere":            {image: qcow2(table, 1<<40, 0, nil), want: unclear},
		"qcow2, cut off":                      {image: qcow2(0, 0, 0, nil)[:50], want: unclear},
		"qcow2, a table of tables too long":   {image: qcow2(0, 0, 0, put32(36, 1<<30)), want: unclear},
		"qcow2, the same with data":           {image: qcow2(table, cluster, 1, put32(36, 1<<30)), want: data},
		"qcow2, header of version 3 cut off":  {image: qcow2(0, 0, 0, nil)[:80], want: unclear},
		"qcow2, the table of tables cut off":  {image: qcow2(0, 0, 0, nil)[:testCluster+4], want: unclear},
		"qcow2, the first table cut off":      {image: qcow2(table, cluster, 0, nil)[:2*testCluster+4], want: unclear},
		"raw, all of a megabyte and no zeros": {image: []byte(string(make([]byte, 10)) + "x"), want: data},
	} {
		t.Run(name, func(t *testing.T) {
			allocation := uint64(len(c.image))
			if c.unwritten {
				allocation = 0
			}
			if len(c.image) == 0 {
				allocation = 1
			}
			if got := contentOf(readingOf(c.image), max(1<<30, uint64(len(c.image))), allocation); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if got := contentOf(func(uint64, uint64) ([]byte, error) { return nil, errors.New("denied") }, 1, 1); got != unclear {
		t.Errorf("of what cannot be read: %v", got)
	}
}

package guest

import (
	"fmt"
	"io"
)

// cpioWriter writes the "newc" format that the kernel unpacks as initramfs.
// Times and owners are all zero: the same input gives the same bytes.
type cpioWriter struct {
	w   io.Writer
	ino int
	err error
}

// File types in the mode field.
const (
	modeDir  = 0o040000
	modeFile = 0o100000
	modeLink = 0o120000
)

// add writes one entry; mode includes the file type, and data is the target of
// a link. The first error sticks and is returned by close.
func (c *cpioWriter) add(name string, mode uint32, data []byte) {
	if c.err != nil {
		return
	}
	c.ino++
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		c.ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
	c.write([]byte(head))
	c.write(data)
}

// write pads everything to four bytes, which is where the next part begins.
func (c *cpioWriter) write(data []byte) {
	if c.err != nil {
		return
	}
	if pad := -len(data) & 3; pad > 0 {
		data = append(data[:len(data):len(data)], make([]byte, pad)...)
	}
	_, c.err = c.w.Write(data)
}

func (c *cpioWriter) close() error {
	c.add("TRAILER!!!", 0, nil)
	return c.err
}

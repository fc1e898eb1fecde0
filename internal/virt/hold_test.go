package virt

import "testing"

// Half of the connections are left to calls that do not wait for a guest.
func TestHold(t *testing.T) {
	for _, c := range []struct{ most, limit, held int }{{8, 8, 4}, {8, 3, 1}, {8, 1, 0}, {1, 1, 1}} {
		p := &sessions{most: c.most, limit: c.limit}
		n := 0
		for n < 20 && p.hold() {
			n++
		}
		if n != c.held {
			t.Errorf("%d of %d connections, of which there may be %d: want %d", n, c.limit, c.most, c.held)
		}
		if n > 0 {
			p.letGo()
			if !p.hold() {
				t.Error("what was given back is gone")
			}
		}
	}
}

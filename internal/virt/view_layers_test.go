package virt

import (
	"context"
	"encoding/binary"
	"os"
	"slices"
	"testing"
)

// A list of backing files says where it may go on: at an image that is
// broken, and not at one that is no overlay.
func TestBelowSaysWhatCouldNotBeRead(t *testing.T) {
	ctx := context.Background()
	h := NewHost(Options{URI: "test:///default"})
	if err := h.Connect(ctx); err != nil {
		t.Skip("libvirt library missing: " + err.Error())
	}
	defer func() { _ = h.Close() }()
	dir := t.TempDir()
	broken := image2(3, "/base", "raw")
	binary.BigEndian.PutUint64(broken[8:], 1<<40)
	for name, head := range map[string][]byte{
		"whole": image2(3, "", ""), "plain": make([]byte, 4096), "empty": {}, "broken": broken, "other": []byte("QED\x00 and more"),
		"over-whole": image2(3, dir+"/whole", "qcow2"), "over-plain": image2(3, dir+"/plain", ""), "over-raw": image2(3, dir+"/broken", "raw"),
		"over-broken": image2(3, dir+"/broken", "qcow2"), "over-other": image2(2, dir+"/other", ""),
		"itself": image2(3, dir+"/itself", "qcow2"),
	} {
		if err := os.WriteFile(dir+"/"+name, head, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		below  []string
		unread string
	}{
		"whole": {}, "plain": {}, "empty": {}, "itself": {below: []string{"itself"}},
		"broken": {unread: "broken"}, "other": {unread: "other"},
		"over-whole": {below: []string{"whole"}}, "over-plain": {below: []string{"plain"}}, "over-raw": {below: []string{"broken"}},
		"over-broken": {[]string{"broken"}, "broken"}, "over-other": {[]string{"other"}, "other"},
	} {
		below, unread := h.View().Below(ctx, dir+"/"+name, "qcow2")
		var want []string
		for _, b := range c.below {
			want = append(want, dir+"/"+b)
		}
		if c.unread != "" {
			c.unread = dir + "/" + c.unread
		}
		if !slices.Equal(below, want) || unread != c.unread {
			t.Errorf("below %s are %q and it ends at %q, not %q and %q", name, below, unread, want, c.unread)
		}
	}
	if below, unread := h.View().Below(ctx, dir+"/broken", "raw"); below != nil || unread != "" {
		t.Errorf("below a raw image are %q, %q", below, unread)
	}
}

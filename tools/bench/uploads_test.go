package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSameFiles(t *testing.T) {
	whole := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // two of the blocks that are compared
	changed := bytes.Clone(whole)
	changed[len(changed)-1]++
	dir := t.TempDir()
	file := func(content []byte) string {
		f, err := os.CreateTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if _, err := f.Write(content); err != nil {
			t.Fatal(err)
		}
		return f.Name()
	}
	for name, c := range map[string]struct {
		a, b []byte
		same bool
	}{
		"equal": {whole, whole, true}, "empty": {nil, nil, true}, "last byte": {whole, changed, false},
		"cut off": {whole, whole[:len(whole)-1], false}, "cut off at a block": {whole[:1<<20], whole, false}, "nothing": {whole, nil, false},
	} {
		if same, err := sameFiles(file(c.a), file(c.b)); err != nil || same != c.same {
			t.Errorf("%s: %t, %v", name, same, err)
		}
	}
	if same, err := sameFiles(file(whole), filepath.Join(dir, "none")); err == nil || same {
		t.Errorf("a file that is not there: %t, %v", same, err)
	}
}

func TestCheckUploads(t *testing.T) {
	good := uploadRow{File: "full", Subject: byProvider, Same: true}
	bad := uploadRow{File: "mostly empty", Subject: byVirsh}
	if err := checkUploads([]uploadRow{good, good}); err != nil {
		t.Error(err)
	}
	err := checkUploads([]uploadRow{good, bad})
	if err == nil || !strings.Contains(err.Error(), "mostly empty: the volume that virsh vol-upload made") || strings.Contains(err.Error(), byProvider) {
		t.Errorf("another content: %v", err)
	}
}

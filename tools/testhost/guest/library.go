package guest

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// libraryDirs are where Debian on amd64 keeps shared libraries.
var libraryDirs = []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib64", "usr/lib64", "lib", "usr/lib"}

// libraries returns the shared libraries that a program needs, its loader
// included, each as a path below one of roots, which are searched in order.
func libraries(program string, roots ...string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for queue := []string{program}; len(queue) > 0; queue = queue[1:] {
		needed, err := neededBy(queue[0])
		if err != nil {
			return nil, fmt.Errorf("libraries of %s: %w", filepath.Base(program), err)
		}
		for _, name := range needed {
			if seen[name] {
				continue
			}
			seen[name] = true
			path := findLibrary(name, roots)
			if path == "" {
				return nil, fmt.Errorf("libraries of %s: %s, which %s needs, is not on this machine",
					filepath.Base(program), name, filepath.Base(queue[0]))
			}
			out = append(out, path)
			queue = append(queue, path)
		}
	}
	slices.Sort(out)
	return out, nil
}

func neededBy(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		data := make([]byte, p.Filesz)
		if _, err := p.ReadAt(data, 0); err != nil {
			return nil, err
		}
		needed = append(needed, filepath.Base(strings.TrimRight(string(data), "\x00")))
	}
	return needed, nil
}

func findLibrary(name string, roots []string) string {
	for _, root := range roots {
		for _, dir := range libraryDirs {
			path := filepath.Join(root, dir, name)
			if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
				return path
			}
		}
	}
	return ""
}

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Report is what a guest last said about itself.
type Report struct {
	// Uptime in seconds. It only ever grows in a guest that is left alone.
	Uptime float64 `json:"uptime"`
	// BootID is another one after every boot.
	BootID string `json:"boot_id"`
	// Hostname comes from the seed, else it is localhost.
	Hostname string `json:"hostname"`
	// CPUs that are online.
	CPUs int `json:"cpus"`
	// MemKiB is what the kernel manages, about 45 MiB less than the machine has.
	MemKiB int64 `json:"mem_kib"`
	// Disks by the guest's name for them (vda), with their sizes in bytes.
	Disks map[string]int64 `json:"disks"`
	// NICs by MAC address, with the IPv4 address, or "".
	NICs map[string]string `json:"nics"`
	// Links by MAC address: whether there is a carrier.
	Links map[string]bool `json:"links"`
	// CDs that are inserted, by the guest's name for the drive (sr0).
	CDs map[string]CD `json:"cds"`
	// FwCfg are the entries of fw_cfg below opt/, by their names (opt/a/b), with
	// the SHA-256 of their content in hex. A guest without ACPI finds none.
	FwCfg map[string]string `json:"fw_cfg"`
}

// CD is a medium in a drive.
type CD struct {
	Label string `json:"label"`
	// Files in the top directory and in the folders there (a/b), with the SHA-256
	// of their content in hex.
	Files map[string]string `json:"files"`
}

// Seed returns the files of the CD labelled cidata, nil if there is none.
func (r Report) Seed() map[string]string {
	for _, cd := range r.CDs {
		if strings.EqualFold(cd.Label, "cidata") {
			return cd.Files
		}
	}
	return nil
}

// ConsoleLog is where a domain's serial port is best logged to. The file need
// not exist; append to it, so that a report survives a restart of the guest.
func (h *Host) ConsoleLog(name string) string {
	return filepath.Join(h.dir, consoleDir, strings.ReplaceAll(name, "/", "_")+".log")
}

// ErrNoReport is returned while a guest has not yet reported.
var ErrNoReport = errors.New("no report yet")

// Console returns all that a domain's serial port has printed.
func (h *Host) Console(ctx context.Context, name string) (string, error) {
	source, err := h.serial(ctx, name)
	if err != nil {
		return "", fmt.Errorf("read the console of %s: %w", name, err)
	}
	if source.log == "" {
		return "", fmt.Errorf("read the console of %s: its serial port writes into no file; give it a <log file=%q append=\"on\"/>", name, h.ConsoleLog(name))
	}
	data, err := os.ReadFile(source.log)
	if err != nil {
		return "", fmt.Errorf("read the console of %s: %w", name, err)
	}
	return string(data), nil
}

// GuestReport returns the newest report that a running guest made after this
// call, waiting for it up to timeout. A report that was there before may be
// older than what the caller has just done.
func (h *Host) GuestReport(ctx context.Context, name string, timeout time.Duration) (Report, error) {
	return h.WaitReport(ctx, name, timeout, func(Report) bool { return true })
}

// WaitReport returns the first new report that satisfies want. When the timeout
// ends first, the error holds the last report and the end of the console.
func (h *Host) WaitReport(ctx context.Context, name string, timeout time.Duration, want func(Report) bool) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	source, err := h.serial(ctx, name)
	if err != nil {
		return Report{}, fmt.Errorf("report of %s: %w", name, err)
	}
	read, stop, err := h.follow(ctx, source)
	if err != nil {
		return Report{}, fmt.Errorf("report of %s: %w", name, err)
	}
	defer stop()
	var last Report
	var seen []byte
	err = ErrNoReport
	for {
		fresh, rerr := read()
		if rerr != nil {
			return last, fmt.Errorf("report of %s: %w", name, rerr)
		}
		seen = append(seen, fresh...)
		if i := bytes.LastIndexByte(seen, '\n'); i >= 0 {
			if r, ok := newestReport(seen[:i+1]); ok {
				last, err = r, fmt.Errorf("none as expected, the last is %+v", r)
				if want(r) {
					return r, nil
				}
			}
			seen = seen[i+1:]
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("report of %s: %w: %w; the console ends with %q", name, ctx.Err(), err, h.consoleEnd(source))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// newestReport finds the last complete line that is a report. Other lines are
// the kernel's or the firmware's.
func newestReport(text []byte) (Report, bool) {
	lines := bytes.Split(text, []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(lines[i]), []byte("GUEST "))
		if !ok {
			continue
		}
		var r Report
		if json.Unmarshal(data, &r) == nil && r.BootID != "" {
			return r, true
		}
	}
	return Report{}, false
}

// serialSource is how to listen to a domain: a file that QEMU writes, or a pty.
type serialSource struct{ log, pty string }

// serial reads the running domain's definition.
func (h *Host) serial(ctx context.Context, name string) (serialSource, error) {
	out, err := h.Virsh(ctx, "dumpxml", "--domain", name)
	if err != nil {
		return serialSource{}, err
	}
	return parseSerial([]byte(out))
}

func parseSerial(dom []byte) (serialSource, error) {
	type device struct {
		Type   string `xml:"type,attr"`
		Source struct {
			Path string `xml:"path,attr"`
		} `xml:"source"`
		Log struct {
			File string `xml:"file,attr"`
		} `xml:"log"`
	}
	var d struct {
		Serials  []device `xml:"devices>serial"`
		Consoles []device `xml:"devices>console"`
	}
	if err := xml.Unmarshal(dom, &d); err != nil {
		return serialSource{}, fmt.Errorf("parse the domain's XML: %w", err)
	}
	// libvirt shows the first serial port a second time as the first console.
	for _, s := range append(d.Serials, d.Consoles...) {
		switch {
		case s.Log.File != "":
			return serialSource{log: s.Log.File}, nil
		case s.Type == "file":
			return serialSource{log: s.Source.Path}, nil
		case s.Type == "pty" && s.Source.Path != "":
			return serialSource{pty: s.Source.Path}, nil
		}
	}
	return serialSource{}, fmt.Errorf("the domain has no serial port that can be heard: give it one of type file or pty")
}

// follow returns a function that yields what was printed since its last call,
// beginning now.
func (h *Host) follow(ctx context.Context, s serialSource) (read func() ([]byte, error), stop func(), err error) {
	if s.log == "" {
		return h.followPty(ctx, s.pty)
	}
	var offset int64
	if st, err := os.Stat(s.log); err == nil {
		offset = st.Size()
	}
	return func() ([]byte, error) {
		f, err := os.Open(s.log)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if st.Size() < offset { // begun anew: the port does not append
			offset = 0
		}
		data := make([]byte, st.Size()-offset)
		n, err := f.ReadAt(data, offset)
		offset += int64(n)
		return data[:n], ignoreEOF(err)
	}, func() {}, nil
}

func (h *Host) consoleEnd(s serialSource) string {
	if s.log == "" {
		return ""
	}
	data, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-300):])
}

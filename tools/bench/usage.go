package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// The wrapper's orders.
const (
	realVariable  = "BENCH_PROVIDER"
	usageVariable = "BENCH_USAGE"
)

// usage is what processes used.
type usage struct {
	CPU    time.Duration // user and system
	MaxRSS int64         // KiB, of the largest process
}

func usageOf(s *os.ProcessState) usage {
	u := usage{CPU: s.UserTime() + s.SystemTime()}
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		u.MaxRSS = r.Maxrss
	}
	return u
}

// wrap runs the real provider in this process's place and appends what it used
// to the file that the bench reads.
func wrap(provider string) int {
	cmd := exec.Command(provider, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signal.Ignore(os.Interrupt) // the core decides when a provider ends
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	data, _ := json.Marshal(usageOf(cmd.ProcessState))
	f, err := os.OpenFile(os.Getenv(usageVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(append(data, '\n'))
		_ = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// readUsage adds up what all starts of the provider in one run of the core
// used. A core may start it more than once.
func readUsage(path string) (total usage, starts int, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return total, 0, err
	}
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); starts++ {
		var u usage
		if err := d.Decode(&u); err != nil {
			return total, starts, err
		}
		total.CPU += u.CPU
		total.MaxRSS = max(total.MaxRSS, u.MaxRSS)
	}
	return total, starts, nil
}

// Command bench measures what the provider costs: the size of its binary, the
// time and memory of a schema retrieval, and plans without changes of 1, 50
// and 200 machines that exist on a private libvirtd. Beside it, in the same
// run and in turns, stand an echo provider with the same schema and the same
// values, which is the floor, and terraform_data with the same values, which
// is the core alone. The bare host calls of a refresh are measured by
// themselves.
//
// With -uploads it measures something else: how long a volume takes that is made
// from a file, and what it takes on the disk, beside virsh.
//
// The provider's own processor time and memory come from a wrapper in the
// provider's place: this very binary, which starts the real one, waits for it
// and writes down what the kernel says it used. The core's figures are those
// of its process tree less the provider's.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	if provider := os.Getenv(realVariable); provider != "" {
		os.Exit(wrap(provider))
	}
	sizes := flag.String("n", "1,50,200", "numbers of machines")
	runs := flag.Int("runs", 5, "runs of each plan; the median counts")
	cores := flag.String("cores", "tofu,terraform", "cores to measure; one that is missing is left out and named")
	out := flag.String("json", "", "file for the figures as JSON")
	var files uploadSizes
	onlyUploads := flag.Bool("uploads", false, "measure uploads into volumes instead of plans")
	flag.IntVar(&files.full, "full", 1024, "MiB of the file that is full of data, 0 for none")
	flag.IntVar(&files.empty, "empty", 4096, "MiB of the file that is mostly empty, 0 for none")
	flag.IntVar(&files.data, "data", 20, "MiB of data in the file that is mostly empty")
	flag.Parse()
	if *onlyUploads {
		if err := uploadAll(files, *runs, *out); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %v\n", err)
			os.Exit(1)
		}
		return
	}
	if err := measureAll(*sizes, *runs, *cores, *out); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func measureAll(sizes string, runs int, cores, out string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var numbers []int
	for _, s := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("-n: %q is not a number of machines", s)
		}
		numbers = append(numbers, n)
	}
	report, err := measure(ctx, numbers, runs, strings.Split(cores, ","))
	if err != nil {
		return err
	}
	report.print(os.Stdout)
	return write(report, out)
}

func uploadAll(files uploadSizes, runs int, out string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rows, err := measureUploads(ctx, files, runs)
	if err != nil {
		return err
	}
	printUploads(os.Stdout, rows)
	return errors.Join(write(rows, out), checkUploads(rows))
}

// write writes figures as JSON, if a file is named.
func write(figures any, out string) error {
	if out == "" {
		return nil
	}
	data, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, data, 0o644)
}

//go:build linux

// Command short runs six short jobs under stallspan run, each with several rights, and compares the reports with what
// the jobs log. It needs root and a folder on a slow disk:
//
//	go -C lab build -o ../build/short-run ./short
//	build/short-run -stallspan build/stallspan-nocgo -slow /mnt/slow -as root,user
//
// lab/kernels runs it in emulated machines. The jobs are threads and processes that read, write, sleep, work, and wait
// for one another. Each logs its own time.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const dataSize = 16 << 20 // of the file that the jobs read

func main() {
	if len(os.Args) > 1 {
		if part, is := parts[os.Args[1]]; is {
			if err := part(os.Args[2:]); err != nil {
				fmt.Fprintf(os.Stderr, "short: %s: %v\n", os.Args[1], err)
				os.Exit(1)
			}
			return
		}
	}
	program := flag.String("stallspan", "build/stallspan-nocgo", "the `program` to test")
	slow := flag.String("slow", "", "`folder` on a slow disk")
	as := flag.String("as", "root", "`rights`, with commas: "+strings.Join(kinds(), ", "))
	only := flag.String("only", "", "`names` of jobs, with commas")
	length := flag.Duration("length", 4*time.Second, "of a job")
	flag.Parse()
	if *slow == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	b := bench{slow: *slow, length: *length}
	if err := b.run(*program, strings.Split(*as, ","), *only); err != nil {
		fmt.Fprintln(os.Stderr, "short:", err)
		os.Exit(1)
	}
}

// bench is where the jobs run.
type bench struct {
	dir, slow string // of programs and logs, and the slow disk
	length    time.Duration
}

func (b *bench) run(program string, rights []string, only string) (err error) {
	if b.dir, err = os.MkdirTemp("", "short-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	own, err := os.Executable()
	if err != nil {
		return err
	}
	// Of all users, and in memory: what a job waits for is to be the slow disk alone.
	for from, to := range map[string]string{own: "short", program: "stallspan"} {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(b.dir, to), text, 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(b.dir, 0o777); err != nil {
		return err
	}
	if err := makeData(filepath.Join(b.slow, dataName)); err != nil {
		return err
	}
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return err
	}
	fmt.Printf("Linux %s %s\n", unix.ByteSliceToString(kernel.Release[:]), unix.ByteSliceToString(kernel.Machine[:]))
	failed := 0
	for _, kind := range rights {
		if failed, err = b.with(kind, only, failed); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d jobs have no ledger, or one that is over %.0f points off", failed, allowed)
	}
	return nil
}

// allowed is the error in points above which the bench fails.
const allowed = 15.0

func (b *bench) with(kind, only string, failed int) (int, error) {
	if err := b.check(kind); err != nil {
		fmt.Printf("  check as %s: %v\n", kind, err)
	}
	var evidence []string
	var errs []float64
	for _, name := range jobs {
		if only != "" && !slices.Contains(strings.Split(only, ","), name) {
			continue
		}
		r, err := b.job(kind, name)
		if err != nil {
			fmt.Printf("  %s as %s: %v\n", name, kind, err)
			failed++
			continue
		}
		e := r.truth.off(r.found)
		const line = "  %-9s as %-12s %-8s storage %5.1f (true %5.1f), CPU %5.1f (%5.1f), other %5.1f (%5.1f): %4.1f off\n"
		fmt.Printf(line, name,
			kind, r.evidence, r.found.storage, r.truth.storage, r.found.cpu, r.truth.cpu, r.found.other, r.truth.other, e)
		for _, line := range r.lines {
			fmt.Println("    " + line)
		}
		if e > allowed {
			failed++
		}
		errs = append(errs, e)
		if !slices.Contains(evidence, r.evidence) {
			evidence = append(evidence, r.evidence)
		}
	}
	if len(errs) > 0 {
		slices.Sort(errs)
		fmt.Printf("  %s: evidence %s, %d jobs, median %.1f points, largest %.1f\n", kind, strings.Join(evidence, " and "),
			len(errs), (errs[(len(errs)-1)/2]+errs[len(errs)/2])/2, errs[len(errs)-1])
	}
	return failed, nil
}

// shares are percent of a window.
type shares struct{ storage, cpu, other float64 }

type result struct {
	truth    *truth
	found    shares
	evidence string
	lines    []string
}

// check prints what the program says of the evidence.
func (b *bench) check(kind string) error {
	cmd := b.command(kind, filepath.Join(b.dir, "stallspan"), "check", "--json")
	out, err := cmd.Output()
	var report struct {
		Findings []struct{ Area, What, State, Says string }
	}
	if wrong := json.Unmarshal(out, &report); wrong != nil {
		return fmt.Errorf("%w, %w: %s", err, wrong, out)
	}
	for _, f := range report.Findings {
		if f.Area == "scheduler" || f.What == "latency" {
			fmt.Printf("  check as %s: %s %s: %s\n", kind, f.State, f.Area, f.Says)
		}
	}
	return nil
}

func (b *bench) job(kind, name string) (*result, error) {
	report, log := filepath.Join(b.dir, "report.json"), filepath.Join(b.dir, "log.json")
	for _, path := range []string{report, log, log + ".child"} {
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	cmd := b.command(kind, filepath.Join(b.dir, "stallspan"), "run", "--baseline", "off", "--quiet", "--report", report,
		"--", filepath.Join(b.dir, "short"), "job", name, log, b.slow, b.length.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var found struct {
		Run struct {
			Duration   float64 `json:"duration_s"`
			Evidence   string
			NoSchedule string `json:"no_schedule"`
			Stall      *struct {
				Storage float64 `json:"storage_s"`
				Other   float64 `json:"other_s"`
			}
		}
		Problems []string
	}
	if err := readJSON(report, &found); err != nil {
		return nil, err
	}
	run := &found.Run
	if run.Stall == nil {
		return nil, fmt.Errorf("the report has no ledger: %s", strings.Join(found.Problems, "; "))
	}
	truth, err := readTruth(log, run.Duration)
	if err != nil {
		return nil, err
	}
	r := &result{truth: truth, evidence: run.Evidence, lines: found.Problems}
	if run.NoSchedule != "" {
		r.lines = append(r.lines, "no schedule: "+run.NoSchedule)
	}
	for line := range strings.Lines(string(out)) {
		r.lines = append(r.lines, strings.TrimSuffix(line, "\n"))
	}
	r.found = shares{storage: 100 * run.Stall.Storage / run.Duration, other: 100 * run.Stall.Other / run.Duration}
	r.found.cpu = 100 - r.found.storage - r.found.other
	return r, nil
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// command runs a program with some rights.
func (b *bench) command(kind string, line ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(b.dir, "short"), append([]string{"as", kind}, line...)...)
	cmd.Dir = b.dir
	return cmd
}

// parts are what this program does in processes of its own.
var parts = map[string]func(args []string) error{"as": become, "inside": inside, "job": job, "child": child}

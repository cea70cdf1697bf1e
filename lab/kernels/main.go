//go:build linux

// Command kernels runs the tests of a package under another kernel, in an emulator, as root, in the
// repository's folder:
//
//	go -C lab build -o ../build/kernels-run ./kernels
//	build/kernels-run -kernel linux-image-6.1.0-56-amd64 ./internal/source/bpf -test.v
//
// The package may be of another module, as ./lab/netmount. In place of a package, a file is run as it is:
//
//	build/kernels-run -kernel linux-image-6.1.0-56-amd64 build/detect-run -only '^torch$'
//
// With -machine, the kernel is one of a table (-list), with what is special about it. In place of its name "all" stands
// for all of them. Without a package, the short jobs (lab/short) run with the rights that the table names:
//
//	build/kernels-run -machine lockdown ./internal/source/bpf -test.v
//	build/kernels-run -machine all
//
// It needs qemu-system-x86, for arm64 qemu-system-arm, xz-utils, e2fsprogs, the kernel's package from Debian's mirror,
// and 4 GiB of memory. The machine's files are seen below "/", and what is written to them is lost at the end. /slow is
// a disk that serves twenty requests a second. An emulated processor is about twenty times slower than this one: times
// mean little. The program is its own first process in the emulator.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const passed = "kernels: the tests passed"

// settings are those of the command line that are for all machines.
type settings struct {
	dir, more string
	limit     time.Duration
	count     bool
}

func main() {
	if os.Getpid() == 1 {
		boot()
		return
	}
	kernel := flag.String("kernel", "", "`package` of a kernel, as linux-image-6.1.0-56-amd64")
	named := flag.String("machine", "", "`names` of machines of the table, with commas, or all")
	list := flag.Bool("list", false, "print the table of machines")
	var s settings
	flag.DurationVar(&s.limit, "limit", 15*time.Minute, "the longest time of a machine")
	flag.BoolVar(&s.count, "count", false, "a nanosecond is an instruction: for costs that do not depend on this machine")
	flag.StringVar(&s.dir, "dir", "build/kernels", "`folder` for what is made")
	flag.StringVar(&s.more, "modules", "", "`names` of more modules to load, with commas: nfs,nfsv3")
	flag.Parse()
	names := strings.Split(*named, ",")
	switch {
	case *list || *named == "all":
		names = nil
		for i := range machines {
			names = append(names, machines[i].name)
			if *list {
				fmt.Printf("%-16s %s\n", machines[i].name, machines[i].what)
			}
		}
		if *list {
			return
		}
	case *kernel != "" && flag.NArg() > 0:
		if err := s.run(&machine{arch: "amd64", kernel: *kernel}, *kernel, flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, "kernels:", err)
			os.Exit(1)
		}
		return
	case *named == "":
		flag.Usage()
		os.Exit(2)
	}
	failed := false
	for _, name := range names {
		m, err := find(name)
		if err == nil {
			fmt.Printf("machine %s: %s\n", name, m.what)
			err = s.run(&m, m.suite+"-"+m.arch, flag.Args())
		}
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "kernels: machine %s: %v\n", name, err)
		}
	}
	if failed {
		os.Exit(1)
	}
}

func (s *settings) run(m *machine, place string, args []string) error {
	dir, err := filepath.Abs(filepath.Join(s.dir, place))
	if err != nil {
		return err
	}
	image, modules, err := m.unpack(dir)
	if err != nil {
		return err
	}
	init := filepath.Join(dir, "init")
	if err := build("lab", m.arch, "build", "-o", init, "./kernels"); err != nil {
		return err
	}
	o := order{}
	if o.Visible, err = os.Getwd(); err != nil {
		return err
	}
	if slices.ContainsFunc(machines, func(one machine) bool { return one.name == m.name }) {
		o.Machine = m.name
	}
	if len(args) == 0 {
		err = o.jobs(m, dir)
	} else {
		err = o.tests(m, dir, args)
	}
	if err != nil {
		return err
	}
	initrd, disk := filepath.Join(dir, "initrd"), filepath.Join(dir, "slow")
	if err := writeInitrd(initrd, init, modules, s.more, &o); err != nil {
		return err
	}
	if err := makeDisk(disk); err != nil {
		return err
	}
	return s.emulate(m, image, initrd, disk)
}

// tests has a package's tests run, or a program.
func (o *order) tests(m *machine, dir string, args []string) error {
	what, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	test := filepath.Join(dir, "test")
	o.Folder = what
	if info, err := os.Stat(what); err != nil {
		return err
	} else if !info.IsDir() {
		o.Folder, test = o.Visible, what
	} else if err := build(o.Folder, m.arch, "test", "-c", "-o", test, "."); err != nil {
		return err
	}
	o.Line = append([]string{test}, args[1:]...)
	return nil
}

// jobs has the short jobs run.
func (o *order) jobs(m *machine, dir string) error {
	short, program := filepath.Join(dir, "short"), filepath.Join(dir, "stallspan")
	if err := build("lab", m.arch, "build", "-o", short, "./short"); err != nil {
		return err
	}
	if err := build(".", m.arch, "build", "-tags", "grpcnotrace", "-o", program, "."); err != nil {
		return err
	}
	o.Folder = dir
	o.Line = []string{short, "-stallspan", program, "-slow", "/slow", "-as", m.rights, "-length", "5s"}
	return nil
}

// build runs the go command in a folder, for a program without cgo.
func build(folder, arch string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, out)
	}
	return nil
}

// makeDisk makes an empty file system.
func makeDisk(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	const options = "lazy_itable_init=0,lazy_journal_init=0"
	out, err := exec.Command("mkfs.ext4", "-q", "-E", options, path, "256M").CombinedOutput()
	if err != nil {
		_ = os.Remove(path)
		return fmt.Errorf("mkfs.ext4: %w: %s", err, out)
	}
	return nil
}

// emulate runs the kernel and prints what it prints.
func (s *settings) emulate(m *machine, image, initrd, disk string) error {
	clock := []string{"-accel", "tcg,thread=single", "-smp", "2"}
	if s.count {
		clock = []string{"-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"}
	}
	program, tty := "qemu-system-x86_64", "ttyS0"
	board := []string{"-cpu", "max"}
	if m.arch == "arm64" {
		program, tty = "qemu-system-aarch64", "ttyAMA0"
		board = []string{"-M", "virt", "-cpu", "max,pauth-impdef=on"}
	}
	cmd := exec.Command("timeout", slices.Concat([]string{fmt.Sprint(int(s.limit.Seconds())), program}, board, []string{
		"-m", "4G", "-nographic", "-no-reboot",
		"-kernel", image, "-initrd", initrd, "-append", "console=" + tty + " quiet panic=-1 " + m.options,
		"-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
		"-device", "virtio-9p-pci,fsdev=host,mount_tag=host", "-device", "virtio-9p-pci,fsdev=host,mount_tag=again",
		"-drive", "file=" + disk + ",if=none,id=slow,format=raw,snapshot=on,throttling.iops-total=20",
		"-device", "virtio-blk-pci,drive=slow",
		"-device", "virtio-rng-pci"}, clock)...)
	out := &console{}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if !out.began {
		_, _ = os.Stdout.Write(out.text)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", program, err)
	case !bytes.Contains(out.text, []byte(passed)):
		return errors.New("the tests failed")
	}
	return nil
}

// console keeps what the emulator prints, and prints what comes after the tests' beginning.
type console struct {
	text  []byte
	began bool
}

func (c *console) Write(text []byte) (int, error) {
	c.text = append(c.text, text...)
	if c.began {
		return os.Stdout.Write(text)
	}
	if _, after, found := bytes.Cut(c.text, []byte(began)); found {
		c.began = true
		_, _ = os.Stdout.Write(after)
	}
	return len(text), nil
}

// wanted are the modules for the machine's files and for tests, where the kernel does not have them built in.
var wanted = []string{"virtio_pci", "9pnet_virtio", "9p", "overlay", "loop", "fuse", "crc32c_generic", "libcrc32c",
	"ext4", "virtio_blk", "virtio_rng", "tcp_diag"}

var needs = regexp.MustCompile(`\x00depends=([^\x00]*)\x00`)

// readModules returns modules in the order in which they can be loaded.
func readModules(dir string, wanted []string) (names []string, contents [][]byte, err error) {
	paths := map[string]string{}
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		name := strings.TrimSuffix(filepath.Base(path), ".xz")
		if base, is := strings.CutSuffix(name, ".ko"); is {
			paths[strings.ReplaceAll(base, "-", "_")] = path
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	var add func(name string) error
	add = func(name string) error {
		path := paths[strings.ReplaceAll(name, "-", "_")]
		if path == "" || slices.Contains(names, filepath.Base(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if strings.HasSuffix(path, ".xz") {
			text, err = exec.Command("xz", "-dc", path).Output()
		}
		if err != nil {
			return err
		}
		if of := needs.FindSubmatch(text); of != nil && len(of[1]) > 0 {
			for other := range strings.SplitSeq(string(of[1]), ",") {
				if err := add(other); err != nil {
					return err
				}
			}
		}
		names, contents = append(names, filepath.Base(path)), append(contents, text)
		return nil
	}
	for _, name := range wanted {
		if err := add(name); err != nil {
			return nil, nil, err
		}
	}
	return names, contents, nil
}

// writeInitrd writes an archive of cpio with the first process, modules, and what to run.
func writeInitrd(to, init, modules, more string, o *order) error {
	program, err := os.ReadFile(init)
	if err != nil {
		return err
	}
	names, contents, err := readModules(modules, append(slices.Clone(wanted), strings.Split(more, ",")...))
	if err != nil {
		return err
	}
	o.Modules = names
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	number := 0
	add := func(name string, mode int, content []byte) {
		number++
		fmt.Fprintf(&archive, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00", number, mode, 0, 0, 1, 0,
			len(content), 0, 0, 0, 0, len(name)+1, 0, name)
		archive.Write(make([]byte, -archive.Len()&3))
		archive.Write(content)
		archive.Write(make([]byte, -archive.Len()&3))
	}
	add("dev", 0o040755, nil)
	add("modules", 0o040755, nil)
	add("init", 0o100755, program)
	for i, name := range names {
		add("modules/"+name, 0o100644, contents[i])
	}
	add("order", 0o100644, text)
	add("TRAILER!!!", 0, nil)
	return os.WriteFile(to, archive.Bytes(), 0o644)
}

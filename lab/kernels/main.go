//go:build linux

// Command kernels runs the tests of a package under another kernel, in an emulator, as root, in the
// repository's folder:
//
//	go -C lab build -o ../build/kernels-run ./kernels
//	build/kernels-run -kernel linux-image-6.1.0-56-amd64 ./internal/source/latency -test.v
//
// The package may be of another module, as ./lab/netmount. In place of a package, a file is run as it is:
//
//	build/kernels-run -kernel linux-image-6.1.0-56-amd64 build/detect-run -only '^torch$'
//
// It needs qemu-system-x86, xz-utils and the kernel's package from Debian's mirror, and 4 GiB of memory. The machine's
// files are seen below "/", and what is written to them is lost at the end. An emulated processor is about twenty times
// slower than this one: times mean little. The program is its own first process in the emulator.
package main

import (
	"bytes"
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

func main() {
	if os.Getpid() == 1 {
		boot()
		return
	}
	kernel := flag.String("kernel", "", "`package` of a kernel, as linux-image-6.1.0-56-amd64")
	limit := flag.Duration("limit", 15*time.Minute, "the longest time")
	count := flag.Bool("count", false, "a nanosecond is an instruction: for costs that do not depend on this machine")
	dir := flag.String("dir", "build/kernels", "`folder` for what is made")
	more := flag.String("modules", "", "`names` of more modules to load, with commas: nfs,nfsv3")
	flag.Parse()
	if *kernel == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*kernel, *dir, *more, flag.Args(), *limit, *count); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func run(kernel, dir, more string, args []string, limit time.Duration, count bool) error {
	dir, err := filepath.Abs(filepath.Join(dir, kernel))
	if err != nil {
		return err
	}
	image, modules, err := unpack(kernel, dir)
	if err != nil {
		return err
	}
	what, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	init := filepath.Join(dir, "init")
	if err := build("lab", "build", "-o", init, "./kernels"); err != nil {
		return err
	}
	folder, test := what, filepath.Join(dir, "test")
	if info, err := os.Stat(what); err != nil {
		return err
	} else if !info.IsDir() {
		if folder, err = os.Getwd(); err != nil {
			return err
		}
		test = what
	} else if err := build(folder, "test", "-c", "-o", test, "."); err != nil {
		return err
	}
	text := strings.Join(append([]string{folder, test}, args[1:]...), "\n")
	initrd := filepath.Join(dir, "initrd")
	if err := writeInitrd(initrd, init, modules, more, text); err != nil {
		return err
	}
	return emulate(image, initrd, limit, count)
}

// build runs the go command in a folder, for a program without cgo.
func build(folder string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, out)
	}
	return nil
}

// unpack fetches the package of a kernel, and returns its image and its modules.
func unpack(kernel, dir string) (image, modules string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	find := func(pattern string) string {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is valid
		if len(found) == 0 {
			return ""
		}
		return found[0]
	}
	if find("root/boot/vmlinuz-*") == "" {
		unpack := []string{"sh", "-c", "dpkg -x " + kernel + "_*.deb root"}
		for _, line := range [][]string{{"apt-get", "download", kernel}, unpack} {
			cmd := exec.Command(line[0], line[1:]...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				return "", "", fmt.Errorf("fetch %s with %s: %w: %s", kernel, line[0], err, out)
			}
		}
	}
	image, modules = find("root/boot/vmlinuz-*"), find("root/lib/modules/*")
	if image == "" || modules == "" {
		return "", "", fmt.Errorf("%s has no kernel, or no modules", kernel)
	}
	return image, modules, nil
}

// emulate runs the kernel and prints what it prints.
func emulate(image, initrd string, limit time.Duration, count bool) error {
	clock := []string{"-accel", "tcg,thread=multi", "-smp", "2"}
	if count {
		clock = []string{"-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"}
	}
	cmd := exec.Command("timeout", append([]string{fmt.Sprint(int(limit.Seconds())), "qemu-system-x86_64",
		"-cpu", "max", "-m", "4G", "-nographic", "-no-reboot",
		"-kernel", image, "-initrd", initrd, "-append", "console=ttyS0 quiet panic=-1",
		"-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
		"-device", "virtio-9p-pci,fsdev=host,mount_tag=host", "-device", "virtio-9p-pci,fsdev=host,mount_tag=again",
		"-device", "virtio-rng-pci"}, clock...)...)
	out, err := cmd.CombinedOutput()
	if _, after, found := bytes.Cut(out, []byte(began)); found {
		out = after
	}
	_, _ = os.Stdout.Write(out)
	switch {
	case err != nil:
		return fmt.Errorf("qemu-system-x86_64: %w", err)
	case !bytes.Contains(out, []byte(passed)):
		return errors.New("the tests failed")
	}
	return nil
}

// wanted are the modules for the machine's files and for tests, where the kernel does not have them built in.
var wanted = []string{"virtio_pci", "9pnet_virtio", "9p", "overlay", "loop", "fuse", "crc32c_generic", "libcrc32c",
	"ext4", "virtio_rng"}

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
func writeInitrd(to, init, modules, more, text string) error {
	program, err := os.ReadFile(init)
	if err != nil {
		return err
	}
	names, contents, err := readModules(modules, append(slices.Clone(wanted), strings.Split(more, ",")...))
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
	add("order", 0o100644, []byte(strings.Join(names, "\n")))
	add("run", 0o100644, []byte(text))
	add("TRAILER!!!", 0, nil)
	return os.WriteFile(to, archive.Bytes(), 0o644)
}

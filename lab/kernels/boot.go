//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// began comes before what the tests print.
const began = "kernels: the tests begin"

// boot is the first process in the emulator. It shows the machine's files below "/", runs the tests, and switches off.
func boot() {
	if err := prepare(); err != nil {
		fmt.Println("kernels:", err)
	} else if err := test(); err != nil {
		fmt.Println("kernels: the tests failed:", err)
	} else {
		fmt.Println(passed)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func prepare() error {
	order, err := os.ReadFile("/order")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(order)) {
		module, err := os.Open("/modules/" + name)
		if err != nil {
			return err
		}
		if err := unix.FinitModule(int(module.Fd()), "", 0); err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
		_ = module.Close()
	}
	for _, m := range []struct{ what, at, kind, options string }{
		{"host", "/host", "9p", "trans=virtio,version=9p2000.L,msize=262144,cache=loose"},
		{"memory", "/memory", "tmpfs", ""},
		{"all", "/all", "overlay", "lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work"},
		{"proc", "/all/proc", "proc", ""},
		{"sys", "/all/sys", "sysfs", ""},
		{"dev", "/all/dev", "devtmpfs", ""},
		{"shm", "/all/dev/shm", "tmpfs", ""},
		{"tmp", "/all/tmp", "tmpfs", ""},
		{"groups", "/all/sys/fs/cgroup", "cgroup2", ""},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.what, m.at, m.kind, 0, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
		if m.at == "/memory" {
			_ = os.Mkdir("/memory/upper", 0o755)
			_ = os.Mkdir("/memory/work", 0o755)
		}
	}
	return nil
}

// test runs what the file run names: a folder, a program and its arguments, one a line.
func test() error {
	text, err := os.ReadFile("/run")
	if err != nil {
		return err
	}
	if err := unix.Chroot("/all"); err != nil {
		return err
	}
	if err := os.Chmod("/tmp", 0o1777); err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	if err := os.Chdir(lines[0]); err != nil {
		return err
	}
	path := "PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	up := exec.Command("/bin/sh", "-c", "ip link set lo up")
	up.Env = []string{path}
	if out, err := up.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, out)
	}
	fmt.Println("\n" + began)
	cmd := exec.Command(lines[1], lines[2:]...)
	cmd.Env = []string{path, "HOME=/root"}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

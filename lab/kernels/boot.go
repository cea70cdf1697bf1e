//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// began comes before what the tests print.
const began = "kernels: the tests begin"

// order is what the first process is to do.
type order struct {
	Machine string // of the table; "" for none
	Modules []string
	Visible string // folder that stays visible below /tmp
	Folder  string
	Line    []string // program and arguments
}

// boot is the first process in the emulator. It shows the machine's files below "/", runs the tests, and switches off.
func boot() {
	if err := obey(); err != nil {
		fmt.Println("kernels: the tests failed:", err)
	} else {
		fmt.Println(passed)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func obey() error {
	var o order
	text, err := os.ReadFile("/order")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	var m machine
	if o.Machine != "" {
		if m, err = find(o.Machine); err != nil {
			return err
		}
	}
	if err := load(o.Modules); err != nil {
		return err
	}
	if err := mount(&m, o.Visible); err != nil {
		return err
	}
	if m.prepare != nil {
		if err := m.prepare(); err != nil {
			return fmt.Errorf("prepare the machine: %w", err)
		}
	}
	return test(&o)
}

func load(modules []string) error {
	for _, name := range modules {
		module, err := os.Open("/modules/" + name)
		if err != nil {
			return err
		}
		if err := unix.FinitModule(int(module.Fd()), "", 0); err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
		_ = module.Close()
	}
	return nil
}

// mount makes "/" of this machine's files, with file systems of its own. folder stays visible below /tmp.
func mount(m *machine, folder string) error {
	type place struct{ what, at, kind, options string }
	places := []place{
		{"host", "/host", "9p", "trans=virtio,version=9p2000.L,msize=262144,cache=loose"},
		{"memory", "/memory", "tmpfs", ""},
		{"all", "/all", "overlay", "lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work"},
		{"proc", "/all/proc", "proc", ""},
		{"sys", "/all/sys", "sysfs", ""},
		{"dev", "/all/dev", "devtmpfs", ""},
		{"shm", "/all/dev/shm", "tmpfs", ""},
		{"terminals", "/all/dev/pts", "devpts", ""},
		{"groups", "/all/sys/fs/cgroup", "cgroup2", ""},
		{"/dev/vda", "/all/slow", "ext4", ""},
	}
	if !m.hidden {
		places = append(places, place{"security", "/all/sys/kernel/security", "securityfs", ""})
	}
	for _, p := range places {
		if err := os.MkdirAll(p.at, 0o755); err != nil {
			return err
		}
		if p.what == "/dev/vda" {
			p.what = "/all/dev/vda"
		}
		if err := unix.Mount(p.what, p.at, p.kind, 0, p.options); err != nil {
			return fmt.Errorf("mount %s: %w", p.at, err)
		}
		if p.at == "/memory" {
			for _, name := range []string{"upper", "work", "below"} {
				if err := os.Mkdir("/memory/"+name, 0o755); err != nil {
					return err
				}
			}
		}
	}
	below := strings.HasPrefix(folder, "/tmp/")
	if below {
		if err := unix.Mount("/all/tmp", "/memory/below", "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("keep /tmp: %w", err)
		}
	}
	if err := unix.Mount("tmp", "/all/tmp", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount /tmp: %w", err)
	}
	if below {
		at := filepath.Join("/all", folder)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		from := filepath.Join("/memory/below", strings.TrimPrefix(folder, "/tmp"))
		if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("show %s: %w", folder, err)
		}
	}
	// The root of the mount namespace, or else no user namespace can be made.
	if err := os.Chdir("/all"); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	for _, at := range []string{"/tmp", "/slow"} {
		if err := os.Chmod(at, 0o1777); err != nil {
			return err
		}
	}
	return nil
}

// up starts the loopback device.
func up() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// test runs the program.
func test(o *order) error {
	if err := up(); err != nil {
		return fmt.Errorf("start the loopback device: %w", err)
	}
	if err := os.Chdir(o.Folder); err != nil {
		return err
	}
	fmt.Println("\n" + began)
	cmd := exec.Command(o.Line[0], o.Line[1:]...)
	cmd.Env = []string{"PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The addresses of a server that is far away, and of this machine's end of the way to it.
const (
	farAddress  = "10.213.0.2"
	nearAddress = "10.213.0.1"
	farSubnet   = "/30"
)

// listen returns a listener of this machine, or of a network of its own. Until fast is set, a round trip is in between.
func listen(roundTrip time.Duration, fast *atomic.Bool) (listener net.Listener, err error) {
	if roundTrip <= 0 {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	near, err := tunnel("s3near", nearAddress)
	if err != nil {
		return nil, err
	}
	type result struct {
		far      *os.File
		listener net.Listener
		err      error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread is in another network and must end
		var r result
		if r.err = unix.Unshare(unix.CLONE_NEWNET); r.err == nil {
			if r.far, r.err = tunnel("s3far", farAddress); r.err == nil {
				r.listener, r.err = (&net.ListenConfig{}).Listen(context.Background(), "tcp4", farAddress+":0")
			}
		}
		done <- r
		select {} // the network is there while its thread is
	}()
	r := <-done
	if r.err != nil {
		return nil, r.err
	}
	go pass(near, r.far, roundTrip/2, fast)
	go pass(r.far, near, roundTrip/2, fast)
	return r.listener, nil
}

// tunnel makes a TUN interface in the network of the calling thread.
func tunnel(name, address string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, fmt.Errorf("make the interface %s: %w", name, err)
	}
	for _, args := range [][]string{
		{"addr", "add", address + farSubnet, "dev", name}, {"link", "set", name, "mtu", "9000", "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// packet is on its way until a time.
type packet struct {
	data  []byte
	until time.Time
}

// pass passes packets on after a while.
func pass(from, to *os.File, delay time.Duration, fast *atomic.Bool) {
	way := make(chan packet, 4096)
	go func() {
		for p := range way {
			time.Sleep(time.Until(p.until))
			if _, err := to.Write(p.data); err != nil && !errors.Is(err, unix.EIO) {
				return
			}
		}
	}()
	defer close(way)
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if fast.Load() {
			delay = 0
		}
		way <- packet{append([]byte(nil), buf[:n]...), time.Now().Add(delay)}
	}
}

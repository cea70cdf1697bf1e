package locate

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/fixture"
)

// put writes a process as /proc shows it. names are its numbers from /proc's pid namespace down.
func put(t testing.TB, root string, start int, cgroup string, names ...int) {
	t.Helper()
	pid := names[0]
	folder := fmt.Sprintf("proc/%d/", pid)
	numbers := ""
	for _, n := range names {
		numbers += fmt.Sprintf("\t%d", n)
	}
	fixture.Write(t, root, folder+"cgroup", []byte("0::"+cgroup+"\n"))
	fixture.Write(t, root, folder+"status",
		fmt.Appendf(nil, "Name:\tx\nTgid:\t%d\nNSpid:%s\nVmSize:\t 9 kB\n", pid, numbers))
	fixture.Write(t, root, folder+"stat",
		fmt.Appendf(nil, "%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, start))
}

func end(t testing.TB, root string, pid int) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(root, "proc", fmt.Sprint(pid))); err != nil {
		t.Fatal(err)
	}
}

// A process ends, and its number is given to one that is somewhere else.
func TestReusedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := machineOf(t, "docker_v2")
		l := New(root, "", true)
		in7, first, own := Who{ContainerID: idA, PID: 7}, Who{ContainerID: idA}, Who{HostName: "gpu1", PID: 1700}
		expect := func(w Who, pid int, cgroup string) {
			t.Helper()
			if p, _ := l.Find(w); p.PID != pid || p.Cgroup != cgroup {
				t.Errorf("%+v: %+v, want %d in %q", w, p, pid, cgroup)
			}
		}
		scope := "/system.slice/docker-" + idA + ".scope"
		expect(in7, 4300, scope)
		expect(first, 4200, scope)
		expect(own, 1700, "")
		put(t, root, 8000, "/system.slice/docker-"+idB+".scope", 4300, 7)
		put(t, root, 8000, "/x", 4200)
		put(t, root, 8000, "/x", 1700, 3)
		time.Sleep(foundFor - time.Second)
		expect(in7, 4300, scope) // it is kept
		time.Sleep(2 * time.Second)
		expect(in7, 4150, scope) // the container, by its oldest process now
		expect(first, 4150, scope)
		expect(own, 0, "")
		end(t, root, 4150)
		time.Sleep(foundFor + time.Second)
		expect(first, 0, "")
	})
}

// A container is restarted: its ID stays, all of its processes are others.
func TestRestartedContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := machineOf(t, "crio_v2")
		l := New(root, "", false)
		w := Who{ContainerID: idC, PID: 1}
		if p, _ := l.Find(w); p.PID != 3100 {
			t.Fatalf("%+v", p)
		}
		end(t, root, 3100)
		put(t, root, 9000, pod+"/crio-"+idC+".scope", 7100, 1)
		time.Sleep(foundFor)
		if p, local := l.Find(w); p.PID != 7100 || !local {
			t.Errorf("%+v, %v", p, local)
		}
	})
}

// What starts after a scan is found by the next one, a second later, and what was missed by a scan of its own some
// seconds later.
func TestLateContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := machineOf(t, "docker_v1")
		l := New(root, "", false)
		find := func(id string) bool { _, local := l.Find(Who{ContainerID: id}); return local }
		if find(idC) {
			t.Fatal("found before it was there")
		}
		put(t, root, 9000, "/docker/"+idC, 7100, 1)
		put(t, root, 9000, "/docker/"+idD, 7200, 1)
		time.Sleep(scanEvery / 2)
		if find(idD) {
			t.Error("there was a scan too many")
		}
		time.Sleep(scanEvery / 2)
		if !find(idD) {
			t.Error("not found a second after the scan")
		}
		if find(idC) {
			t.Error("a miss was not kept")
		}
		time.Sleep(missFor - scanEvery)
		if !find(idC) {
			t.Error("a miss was kept for too long")
		}
	})
}

// However many unknown names come, from however many callers, there is one scan a second, and what is known stays so.
func TestScansAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := machineOf(t, "docker_v2")
		l := New(root, "", true)
		l.Find(Who{ContainerID: idA, PID: 7})
		var tables sync.Map
		tables.Store(l.seen.Load(), true)
		for tick := range 40 { // 100 ms each
			var callers sync.WaitGroup
			for caller := range 4 {
				callers.Go(func() {
					for i := range 50 {
						n := (tick*4+caller)*50 + i
						l.Find(Who{ContainerID: fmt.Sprintf("%064x", n)})
						tables.Store(l.seen.Load(), true)
						l.Find(Who{ContainerID: idA, PID: 100_000 + n})
						l.Find(Who{PID: 900 + n%2})
					}
				})
			}
			callers.Wait()
			if p, _ := l.Find(Who{ContainerID: idA, PID: 7}); p.PID != 4300 {
				t.Fatalf("%+v", p)
			}
			time.Sleep(100 * time.Millisecond)
		}
		scans := 0
		tables.Range(func(any, any) bool { scans++; return true })
		if scans != 4 {
			t.Errorf("%d scans in 4 s", scans)
		}
		if n, m := len(l.found.kept), len(l.missed.kept); n > mostKept || m > mostKept {
			t.Errorf("%d and %d answers are kept", n, m)
		}
	})
}

func TestShelf(t *testing.T) {
	var s shelf
	for i := range 3 * mostKept {
		k := key{pid: int32(i)}
		s.put(&k, answer{place: Place{PID: i}, until: time.Duration(i + 10)}, time.Duration(i))
		if a, ok := s.get(&k, time.Duration(i)); !ok || a.place.PID != i {
			t.Fatalf("%d: %+v", i, a)
		}
		if _, ok := s.get(&k, time.Duration(i+10)); ok {
			t.Fatalf("%d is too old", i)
		}
		if len(s.kept) > mostKept {
			t.Fatalf("%d are kept", len(s.kept))
		}
	}
	// All of them are to be kept, and there is no room.
	for i := range 3 * mostKept {
		s.put(&key{pid: int32(i)}, answer{until: time.Hour}, 0)
	}
	if len(s.kept) > mostKept || len(s.kept) == 0 {
		t.Errorf("%d are kept", len(s.kept))
	}
}

// An answer that is kept needs no lock that a scan holds.
func TestKeptAnswersDoNotWait(t *testing.T) {
	l := New(machineOf(t, "docker_v2"), "", true)
	w := Who{ContainerID: idA, PID: 7}
	want, _ := l.Find(w)
	l.scanning.Lock()
	defer l.scanning.Unlock()
	if got, _ := l.Find(w); got != want {
		t.Errorf("%+v", got)
	}
}

// Callers that wait while one of them scans share what it has seen.
func TestCallersShareAScan(t *testing.T) {
	l := New(machineOf(t, "docker_v2"), "", true)
	var callers sync.WaitGroup
	var tables sync.Map
	l.scanning.Lock()
	for i := range 20 {
		callers.Go(func() {
			l.Find(Who{ContainerID: fmt.Sprintf("%064x", i)})
			tables.Store(l.seen.Load(), true)
		})
	}
	time.Sleep(20 * time.Millisecond) // so that they are waiting; the test holds without it, too
	l.scanning.Unlock()
	callers.Wait()
	scans := 0
	tables.Range(func(any, any) bool { scans++; return true })
	if scans != 1 {
		t.Errorf("%d scans", scans)
	}
}

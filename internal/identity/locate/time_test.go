package locate

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/test/fixture"
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

// A restarted container keeps its ID and has other processes.
func TestRestartedContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := machineOf(t, "crio_v2")
		l := New(root, "", false)
		w := Who{ContainerID: idC, PID: 1}
		if p, _ := l.Find(w); p.PID != 3100 {
			t.Fatalf("got %+v, want process 3100", p)
		}
		end(t, root, 3100)
		put(t, root, 9000, pod+"/crio-"+idC+".scope", 7100, 1)
		time.Sleep(foundFor)
		if p, local := l.Find(w); p.PID != 7100 || !local {
			t.Errorf("got %+v, %v, want process 7100, true", p, local)
		}
	})
}

// A container that starts after a scan is found by the next scan, a second later. One that was missed is found when the
// miss expires.
func TestLateContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := machineOf(t, "docker_v1")
		l := New(root, "", false)
		find := func(id string) bool { _, local := l.Find(Who{ContainerID: id}); return local }
		if find(idC) {
			t.Fatal("the container was found before it existed")
		}
		put(t, root, 9000, "/docker/"+idC, 7100, 1)
		put(t, root, 9000, "/docker/"+idD, 7200, 1)
		time.Sleep(scanEvery / 2)
		if find(idD) {
			t.Error("got a scan after half of scanEvery, want none")
		}
		time.Sleep(scanEvery / 2)
		if !find(idD) {
			t.Error("the container was not found a second after the scan")
		}
		if find(idC) {
			t.Error("a miss was not cached")
		}
		time.Sleep(missFor - scanEvery)
		if !find(idC) {
			t.Error("a miss was cached for too long")
		}
	})
}

// There is one scan a second for any number of unknown names and callers, and hits stay cached.
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
				t.Fatalf("got %+v, want process 4300", p)
			}
			time.Sleep(100 * time.Millisecond)
		}
		scans := 0
		tables.Range(func(any, any) bool { scans++; return true })
		if scans != 4 {
			t.Errorf("got %d scans in 4 s, want 4", scans)
		}
		if n, m := len(l.found.kept), len(l.missed.kept); n > maxCached || m > maxCached {
			t.Errorf("got %d and %d cached answers, want at most %d", n, m, maxCached)
		}
	})
}

func TestCache(t *testing.T) {
	var s cache
	for i := range 3 * maxCached {
		k := key{pid: int32(i)}
		s.put(&k, answer{place: Place{PID: i}, until: time.Duration(i + 10)}, time.Duration(i))
		if a, ok := s.get(&k, time.Duration(i)); !ok || a.place.PID != i {
			t.Fatalf("%d: got %+v, want its own answer", i, a)
		}
		if _, ok := s.get(&k, time.Duration(i+10)); ok {
			t.Fatalf("%d: got an expired answer, want none", i)
		}
		if len(s.kept) > maxCached {
			t.Fatalf("got %d answers, want at most %d", len(s.kept), maxCached)
		}
	}
	// None of them expires, and there is no room.
	for i := range 3 * maxCached {
		s.put(&key{pid: int32(i)}, answer{until: time.Hour}, 0)
	}
	if len(s.kept) > maxCached || len(s.kept) == 0 {
		t.Errorf("got %d answers, want 1 to %d", len(s.kept), maxCached)
	}
}

// A cached answer does not wait for a scan.
func TestCachedAnswersDoNotWait(t *testing.T) {
	l := New(machineOf(t, "docker_v2"), "", true)
	w := Who{ContainerID: idA, PID: 7}
	want, _ := l.Find(w)
	l.scanning.Lock()
	defer l.scanning.Unlock()
	if got, _ := l.Find(w); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Callers that wait for a scan share it.
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
		t.Errorf("got %d scans, want 1", scans)
	}
}

package baseline

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// actAs makes a copy of the test program another user of the file in STALLSPAN_TEST_FILE.
const actAs = "STALLSPAN_TEST_ACT_AS"

func TestMain(m *testing.M) {
	if os.Getenv(actAs) == "learner" { // learns n times
		n, _ := strconv.Atoi(os.Getenv("STALLSPAN_TEST_COUNT"))
		b := Open(os.Getenv("STALLSPAN_TEST_FILE"), func(err error) { fmt.Println(err) })
		for i := range n {
			b.Learn(Key("epoch/"+os.Getenv("STALLSPAN_TEST_KEY")), time.Duration(i+1)*time.Millisecond, false, time.Now())
		}
		b.Close()
		os.Exit(0)
	}
	if os.Getenv(actAs) == "once" {
		learnOnce(os.Getenv("STALLSPAN_TEST_FILE"))
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// other starts a copy of this program that uses the file.
func other(t *testing.T, role, path string, environment ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), actAs+"="+role, "STALLSPAN_TEST_FILE="+path, "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, environment...)
	return cmd
}

// opened returns an open Store that must not report problems.
func opened(t *testing.T, path string) *Store {
	t.Helper()
	return Open(path, func(err error) { t.Errorf("got report %v, want none", err) })
}

// learned creates a file with n windows of each key.
func learned(t *testing.T, path string, n int, keys ...Key) {
	t.Helper()
	b := opened(t, path)
	for _, key := range keys {
		for i := range n {
			b.Learn(key, time.Duration(i+1)*time.Second, false, time.Unix(1000, 0))
		}
	}
	b.Close()
}

func list(t *testing.T, path string) []Entry {
	t.Helper()
	all, err := List(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// learnOnce learns one window on the first thread.
func learnOnce(path string) {
	s := newStore(path, func(err error) { fmt.Println(err) })
	s.Learn("epoch/fault", time.Second, false, time.Unix(2000, 0))
	s.write()
}

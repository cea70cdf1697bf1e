package baseline

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// actAs makes a copy of the test's program be another user of the file in STALLSPAN_TEST_FILE.
const actAs = "STALLSPAN_TEST_ACT_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(actAs) {
	case "learner": // learns n times, as one program does
		n, _ := strconv.Atoi(os.Getenv("STALLSPAN_TEST_COUNT"))
		b := Open(os.Getenv("STALLSPAN_TEST_FILE"), func(err error) { fmt.Println(err) })
		for i := range n {
			b.Learn(Key("epoch/"+os.Getenv("STALLSPAN_TEST_KEY")), time.Duration(i+1)*time.Millisecond, false, time.Now())
		}
		b.Close()
		os.Exit(0)
	case "writer": // writes until it is killed
		for i := 1; ; i++ {
			b := Open(os.Getenv("STALLSPAN_TEST_FILE"), func(err error) { fmt.Println(err) })
			for k := range 20 {
				b.Learn(Key(fmt.Sprintf("load/nvme/cold/%d", (i+k)%300)), time.Second, false, time.Now())
			}
			b.Close()
		}
	}
	goleak.VerifyTestMain(m)
}

// other starts a copy of this program that uses the file.
func other(t *testing.T, role, path string, environment ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(environment, actAs+"="+role, "STALLSPAN_TEST_FILE="+path, "GORACE=atexit_sleep_ms=0")...)
	return cmd
}

// book opens a book that may have no problem.
func book(t *testing.T, path string) *Book {
	t.Helper()
	return Open(path, func(err error) { t.Errorf("a problem: %v", err) })
}

// learned makes a file in which each of some keys has been learned n times.
func learned(t *testing.T, path string, n int, keys ...Key) {
	t.Helper()
	b := book(t, path)
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

// asides are the files that were set aside.
func asides(t *testing.T, path string) []string {
	t.Helper()
	found, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

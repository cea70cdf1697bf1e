// Objects is an object store for one program: an HTTP server with ranges that answers late. It begins slow, and is fast
// after a request for /fast.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

func main() {
	port := flag.String("port", "", "file that gets the port")
	size := flag.Int("size", 1<<20, "bytes of an object")
	before := flag.Duration("before", 0, "wait before an answer")
	within := flag.Duration("within", 0, "wait in the middle of an answer")
	fail := flag.Int64("fail", 0, "each so many answers are 503; 0 for none")
	flag.Parse()
	if err := serve(*port, *size, *before, *within, *fail); err != nil {
		log.Fatal(err)
	}
}

func serve(port string, size int, before, within time.Duration, fail int64) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	text := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(port+".new", []byte(text), 0o644); err != nil {
		return err
	}
	if err := os.Rename(port+".new", port); err != nil {
		return err
	}
	object := make([]byte, size)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(object)
	var fast atomic.Bool
	var requests atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/fast", func(http.ResponseWriter, *http.Request) { fast.Store(true) })
	mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
		if !fast.Load() {
			time.Sleep(before)
		}
		_, _ = fmt.Fprintln(w, `{"step": 1, "stop": false}`)
	})
	mux.HandleFunc("/object/", func(w http.ResponseWriter, r *http.Request) {
		if fast.Load() {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(object))
			return
		}
		time.Sleep(before)
		if fail > 0 && requests.Add(1)%fail == 0 {
			http.Error(w, "slow down", http.StatusServiceUnavailable)
			return
		}
		http.ServeContent(&late{ResponseWriter: w, wait: within}, r, "", time.Time{}, bytes.NewReader(object))
	})
	return http.Serve(listener, mux)
}

// late waits once, in the middle of an answer.
type late struct {
	http.ResponseWriter
	wait time.Duration
	done bool
}

func (l *late) Write(p []byte) (int, error) {
	if l.done || l.wait == 0 {
		return l.ResponseWriter.Write(p)
	}
	l.done = true
	n, err := l.ResponseWriter.Write(p[:len(p)/2])
	if err != nil {
		return n, err
	}
	if f, ok := l.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
	time.Sleep(l.wait)
	more, err := l.ResponseWriter.Write(p[len(p)/2:])
	return n + more, err
}

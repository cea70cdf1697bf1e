// Bucket is an S3 server for one program. It answers late, or at a limited rate, until a request for /fast.
package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// bucket is the name of the only bucket.
const bucket = "data"

// options are the flags.
type options struct {
	port    string
	objects int
	size    int
	from    string
	seed    uint64
	trip    time.Duration
	slow    slow
}

// slow is how a server is slow.
type slow struct {
	before time.Duration // before an answer
	spread time.Duration // at most so much more
	rate   float64       // bytes per second of each request; 0 for no limit
	total  *pace         // of all requests together; nil for no limit
	fast   atomic.Bool
	random *rand.Rand
	lock   sync.Mutex // of random
}

func main() {
	var o options
	flag.StringVar(&o.port, "port", "", "file that gets the address")
	flag.IntVar(&o.objects, "objects", 0, "objects with random bytes")
	flag.IntVar(&o.size, "size", 1<<20, "bytes of each")
	flag.StringVar(&o.from, "from", "", "a folder whose files are objects, too")
	flag.Uint64Var(&o.seed, "seed", 1, "of the waits")
	flag.DurationVar(&o.trip, "round-trip", 0, "of the network in between; 0 to listen on this machine")
	flag.DurationVar(&o.slow.before, "before", 0, "wait before an answer")
	flag.DurationVar(&o.slow.spread, "spread", 0, "wait at most so much longer")
	flag.Float64Var(&o.slow.rate, "rate", 0, "bytes per second of each request; 0 for no limit")
	total := flag.Float64("total", 0, "bytes per second of all requests together; 0 for no limit")
	flag.Parse()
	if *total > 0 {
		o.slow.total = &pace{rate: *total}
	}
	o.slow.random = rand.New(rand.NewPCG(o.seed, 1))
	if err := o.serve(); err != nil {
		log.Fatal(err)
	}
}

func (o *options) serve() error {
	store := s3mem.New()
	if err := o.fill(store); err != nil {
		return err
	}
	listener, err := listen(o.trip, &o.slow.fast)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.port+".new", []byte(listener.Addr().String()), 0o644); err != nil {
		return err
	}
	if err := os.Rename(o.port+".new", o.port); err != nil {
		return err
	}
	return http.Serve(listener, o.slow.in(gofakes3.New(store).Server()))
}

// fill stores the objects.
func (o *options) fill(store *s3mem.Backend) error {
	if err := store.CreateBucket(bucket); err != nil {
		return err
	}
	put := func(name string, data []byte) error {
		_, err := store.PutObject(bucket, name, map[string]string{}, bytes.NewReader(data), int64(len(data)), nil)
		return err
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], o.seed)
	random := rand.NewChaCha8(seed)
	data := make([]byte, o.size)
	for i := range o.objects {
		_, _ = random.Read(data)
		if err := put(fmt.Sprintf("object/%d", i), data); err != nil {
			return err
		}
	}
	if o.from == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(o.from, "*"))
	if err != nil {
		return err
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := put("file/"+filepath.Base(path), data); err != nil {
			return err
		}
	}
	return nil
}

// in returns a handler in front of another one.
func (s *slow) in(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/fast", func(http.ResponseWriter, *http.Request) { s.fast.Store(true) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s.fast.Load() {
			next.ServeHTTP(w, r)
			return
		}
		time.Sleep(s.wait())
		own := &pace{rate: s.rate}
		r.Body = &lateBody{r.Body, own, s.total}
		next.ServeHTTP(&lateAnswer{w, own, s.total}, r)
	})
	return mux
}

func (s *slow) wait() time.Duration {
	if s.spread <= 0 {
		return s.before
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.before + time.Duration(s.random.Int64N(int64(s.spread)))
}

// pace is a limit of bytes per second.
type pace struct {
	rate float64 // 0 for no limit
	lock sync.Mutex
	next time.Time
}

// take waits until so many bytes may pass.
func (p *pace) take(n int) {
	if p == nil || p.rate <= 0 {
		return
	}
	p.lock.Lock()
	if now := time.Now(); p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	until := p.next
	p.lock.Unlock()
	time.Sleep(time.Until(until))
}

// piece is how much is passed on at a time, in bytes.
const piece = 64 << 10

type lateAnswer struct {
	http.ResponseWriter
	own, total *pace
}

func (l *lateAnswer) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), piece)]
		l.own.take(len(part))
		l.total.take(len(part))
		n, err := l.ResponseWriter.Write(part)
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

type lateBody struct {
	io.ReadCloser
	own, total *pace
}

func (l *lateBody) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p[:min(len(p), piece)])
	l.own.take(n)
	l.total.take(n)
	return n, err
}

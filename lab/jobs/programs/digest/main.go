//go:build linux

// Digest hashes files with a pool of goroutines, three times. Usage: digest FOLDER GOROUTINES PASSES
package main

import (
	"crypto/sha256"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// digest is the result of a file.
type digest struct {
	worker int
	sum    [sha256.Size]byte
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("usage: digest FOLDER GOROUTINES PASSES")
	}
	goroutines, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	passes, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "*"))
	if err != nil {
		log.Fatal(err)
	}
	truth := newTruth()
	for epoch := range 3 {
		end := truth.window(epoch)
		if sums := all(truth, paths, goroutines, passes); len(sums) == 0 {
			log.Fatal(os.Args[1], " has no files")
		}
		end()
	}
	truth.close()
}

// all hashes the files, each so many times over. The order of the results is that in which they are there.
func all(truth *truth, paths []string, goroutines, passes int) map[string]digest {
	results, jobs := make(chan digest, goroutines), make(chan string)
	var pool sync.WaitGroup
	for n := range goroutines {
		pool.Go(func() {
			for path := range jobs {
				results <- hash(truth, n, path, passes)
			}
		})
	}
	go func() {
		for _, path := range paths {
			jobs <- path
		}
		close(jobs)
		pool.Wait()
		close(results)
	}()
	sums := map[string]digest{}
	for {
		begin := now()
		result, more := <-results
		if !more {
			return sums
		}
		truth.record("main", "wait", begin, now(), worker(result.worker))
		sums[string(result.sum[:])] = result
	}
}

func worker(n int) string { return "worker" + strconv.Itoa(n) }

func hash(truth *truth, n int, path string, passes int) digest {
	begin := now()
	data, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	truth.record(worker(n), "read", begin, now(), strconv.Itoa(len(data))+":0")
	result := digest{worker: n}
	for range passes {
		sum := sha256.New()
		sum.Write(result.sum[:])
		sum.Write(data)
		result.sum = [sha256.Size]byte(sum.Sum(nil))
	}
	return result
}

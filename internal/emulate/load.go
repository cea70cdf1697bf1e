package emulate

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// castagnoli is the checksum with a CPU instruction: about 0.1 us per KiB.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// LoadOptions are options of Load. The zero value is valid.
type LoadOptions struct {
	Chunk int // bytes per read call, up to 64 MiB; default 1 MiB
}

// Loaded is what a Load did.
type Loaded struct {
	Bytes    int64
	Waited   time.Duration // inside read calls
	Total    time.Duration
	Checksum uint32 // CRC-32C of the model
}

// Load reads the whole model file sequentially through the page cache, like a program that loads weights, and computes
// its checksum. The accelerator is idle. When ctx ends it stops within one read, and returns its progress with ctx's
// error.
func Load(ctx context.Context, f *Files, o LoadOptions) (Loaded, error) {
	if o.Chunk <= 0 {
		o.Chunk = mib
	}
	buffer := make([]byte, min(o.Chunk, 64*mib))
	var done Loaded
	runtime.LockOSThread() // like a real training loop; the Go runtime would move it between threads
	defer runtime.UnlockOSThread()
	begin := sample.Now().Mono
	err := with(f.Model(), func(file *os.File) error {
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			before := sample.Now().Mono
			n, err := file.Read(buffer)
			done.Waited += sample.Now().Mono - before
			done.Bytes += int64(n)
			done.Checksum = crc32.Update(done.Checksum, castagnoli, buffer[:n])
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	done.Total = sample.Now().Mono - begin
	return done, err
}

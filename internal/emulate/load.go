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

// castagnoli is the checksum that processors compute themselves: about a tenth of a microsecond a KiB.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// LoadOptions says how Load reads. The zero value is fit for use.
type LoadOptions struct {
	Chunk int // bytes a read call, up to 64 MiB; default 1 MiB
}

// Loaded is what a Load did.
type Loaded struct {
	Bytes    int64
	Waited   time.Duration // inside read calls
	Total    time.Duration
	Checksum uint32 // CRC-32C of the model
}

// Load reads the whole model file from its beginning through the page cache, as a program does that loads weights,
// and computes its checksum. The accelerator idles meanwhile. When ctx ends it stops within one read and returns what it has
// done with ctx's error.
func Load(ctx context.Context, f *Files, o LoadOptions) (Loaded, error) {
	if o.Chunk <= 0 {
		o.Chunk = mib
	}
	buffer := make([]byte, min(o.Chunk, 64*mib))
	var done Loaded
	runtime.LockOSThread() // a training loop is a thread of its own; the runtime would pass it around
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

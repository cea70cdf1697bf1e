package follow

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/modelfile"
	"github.com/stallspan/stallspan/internal/source/process"
)

// openedFiles are the files of models that a program opens or maps, looked for again and again.
type openedFiles struct {
	processes func() []int
	reader    *process.Direct
	known     map[string]bool // those of earlier loads
	list      []string
	first     int // how many of them were open at the first look, which a fast program may be ahead of
	end       context.CancelFunc
	looking   sync.WaitGroup
}

const lookEvery = 100 * time.Millisecond

// lookForFiles looks for files that are not known until stop is called.
func lookForFiles(processes func() []int, known map[string]bool) *openedFiles {
	ctx, end := context.WithCancel(context.Background())
	o := &openedFiles{processes: processes, reader: process.NewDirect("/proc"), known: known, end: end}
	o.look()
	o.first = len(o.list)
	o.looking.Go(func() {
		again(ctx, lookEvery, func() time.Duration {
			_ = sample.Protect(o.look) // without it a load has no name
			return lookEvery
		})
	})
	return o
}

// again calls look after a while and, until the context ends, after each time that it returns.
func again(ctx context.Context, first time.Duration, look func() time.Duration) {
	tick := time.NewTicker(first)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Reset(look())
		}
	}
}

// look adds the files of models that are open now.
func (o *openedFiles) look() {
	for _, pid := range o.processes() {
		files, err := o.reader.ModelFiles(process.Key{PID: pid}, process.FilesWanted{Maps: true})
		if err != nil {
			continue // it has ended, or belongs to another user
		}
		for i := range files.List {
			f := &files.List[i]
			if len(o.known) < process.MaxFiles && !f.Write && !o.known[f.Path] && modelfile.IsWeights(f.Path) {
				o.known[f.Path] = true
				o.list = append(o.list, f.Path)
			}
		}
	}
}

// stop ends the looks, and returns the name of the model that was opened: its repository, its file, or the folder of
// its files; "" if there was none, or more than one.
func (o *openedFiles) stop() (model string) {
	if o == nil {
		return ""
	}
	o.end()
	o.looking.Wait()
	o.look()
	list := o.list
	if len(list) > o.first {
		list = list[o.first:]
	}
	for i, file := range list {
		name, folder := file, filepath.Dir(file)
		if repository := modelfile.Repository(file); repository != "" {
			name, folder = repository, repository
		}
		switch {
		case i == 0:
			model = name
		case name != model && folder == filepath.Dir(list[0]):
			model = folder
		case name != model && folder != model:
			return ""
		}
	}
	return model
}

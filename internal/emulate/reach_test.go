package emulate

// Dir returns the folder that holds only the files.
func (f *Files) Dir() string { return f.dir }

// Bytes returns the size of all files together, which may be less than requested.
func (f *Files) Bytes() int64 { return f.rounds * roundBytes }

// Cached returns how many bytes of the files are in the page cache, in whole pages, and how many bytes there are.
func (f *Files) Cached() (found, of int64, err error) { return f.cachedOf(f.paths()...) }

// StallShare returns the expected share of storage stall in the cold epoch, from 0 to 1: the time of reading minus the
// page cache's own time.
func (p Plan) StallShare() float64 {
	if p.ColdTime() <= 0 {
		return 0
	}
	return float64(p.ColdTime()-p.WarmTime()) / float64(p.ColdTime())
}

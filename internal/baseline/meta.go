package baseline

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
)

// meta is what the file begins with, twice: the newer of the two that are whole counts.
type meta struct {
	pageSize, root, freelist, pages, transaction uint64
}

// newest finds the newer of the two metas that are whole. The second one lies on the second page, whose size only a meta
// tells.
func newest(data []byte) (best meta, err error) {
	err = errForeign
	if len(bytes.TrimLeft(data[:min(len(data), headerSize+metaSize)], "\x00")) == 0 {
		err = fmt.Errorf("%w: it begins with nothing but zeros", errForeign)
	}
	found := false
	look := func(at int, id uint64) {
		m, wrong := metaAt(data, at, id)
		switch {
		case wrong == nil && (!found || m.transaction > best.transaction):
			best, found = m, true
		case wrong != nil && !errors.Is(wrong, errForeign):
			err = wrong
		}
	}
	if look(0, 0); found { // bbolt believes the first one's size, too
		look(int(best.pageSize), 1)
	}
	for size := 1 << 10; size <= 64<<10 && !found; size <<= 1 {
		look(size, 1)
	}
	if found {
		return best, nil
	}
	return best, err
}

func metaAt(data []byte, at int, id uint64) (m meta, err error) {
	if at+headerSize+metaSize > len(data) {
		return m, errForeign
	}
	b := data[at+headerSize:][:metaSize]
	if native.Uint32(b) != magic {
		return m, errForeign
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	if sum.Sum64() != native.Uint64(b[56:]) {
		return m, errors.New("its beginning is not what was written")
	}
	if v := native.Uint32(b[4:]); v != format {
		return m, errFormat(v)
	}
	m = meta{
		pageSize: uint64(native.Uint32(b[8:])), root: native.Uint64(b[16:]),
		freelist: native.Uint64(b[32:]), pages: native.Uint64(b[40:]), transaction: native.Uint64(b[48:]),
	}
	if m.pageSize < 1<<10 || m.pageSize > 64<<10 || m.pageSize&(m.pageSize-1) != 0 || id == 1 && uint64(at) != m.pageSize {
		return m, errors.New("its beginning tells a wrong size of pages")
	}
	return m, nil
}

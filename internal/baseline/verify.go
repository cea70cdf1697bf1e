package baseline

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// bbolt maps its file and follows the numbers in it without looking at them: a wrong one ends the program with a signal.
// So the file is read and checked here first, with ordinary reads, while its lock is held. What the check passes bbolt
// can walk through: all pages that the root leads to lie in the file, are what they say they are, are in order and are
// there once, and so are the elements on them; every other page is free. The numbers are those of bbolt's file format, version
// 2 (go.etcd.io/bbolt/internal/common), in the machine's byte order.
const (
	magic      = 0xED0CDAED
	format     = 2
	headerSize = 16 // id u64, flags u16, count u16, overflow u32
	metaSize   = 64 // and its checksum is in the last 8 of them
	itemSize   = 16 // of an element on a branch or leaf page
	noFreelist = ^uint64(0)

	branchPage = 0x01
	leafPage   = 0x02
	metaPage   = 0x04
	freePage   = 0x10
	bucketItem = 0x01

	largestFile = 64 << 20 // bytes, several times what MostKeys take
	deepest     = 16       // buckets and branches within one another
)

var native = binary.NativeEndian

var (
	errEmpty   = errors.New("it is empty")
	errForeign = errors.New("it is no file of baselines")
)

// errFormat is a file of a later version of bbolt.
type errFormat uint32

func (e errFormat) Error() string {
	return fmt.Sprintf("its format is version %d, not %d", uint32(e), format)
}

// errUnread is a file of which nothing is known to be wrong: it could not be read this time.
type errUnread struct{ why error }

func (e *errUnread) Error() string { return e.why.Error() }
func (e *errUnread) Unwrap() error { return e.why }

// pages is a file being checked.
type pages struct {
	data []byte
	meta
	met []bool // by page
}

// verify reads a file of that size and says what is wrong with it. The error is errEmpty, errForeign or errFormat where
// it is none that this version could have written, and *errUnread where that cannot be told.
func verify(file io.ReaderAt, size int64) error {
	if size == 0 {
		return errEmpty
	}
	if size > largestFile {
		return fmt.Errorf("%w: it has %d bytes", errForeign, size)
	}
	data := make([]byte, size)
	switch n, err := file.ReadAt(data, 0); {
	case int64(n) == size:
	case err != nil && !errors.Is(err, io.EOF):
		return &errUnread{err}
	default:
		return fmt.Errorf("it is cut short: %d bytes of %d", n, size)
	}
	m, err := newest(data)
	if err != nil {
		return err
	}
	if m.pages > uint64(size)/m.pageSize {
		return fmt.Errorf("it is cut short: %d bytes of %d pages", size, m.pages)
	}
	p := pages{data, m, make([]bool, m.pages)}
	if m.pages < 2 {
		return errors.New("it has no room for its own beginning")
	}
	p.met[0], p.met[1] = true, true
	if err := p.page(m.root, span{}, deepest); err != nil {
		return err
	}
	return p.free()
}

// take is the page of that number with those that continue it, once.
func (p *pages) take(id uint64) (page []byte, flags uint16, err error) {
	if id < 2 || id >= p.pages {
		return nil, 0, fmt.Errorf("it refers to page %d of %d", id, p.pages)
	}
	head := p.data[id*p.pageSize:]
	more := uint64(native.Uint32(head[12:]))
	if native.Uint64(head) != id || more >= p.pages-id {
		return nil, 0, fmt.Errorf("page %d is not what it should be", id)
	}
	for i := id; i <= id+more; i++ {
		if p.met[i] {
			return nil, 0, fmt.Errorf("page %d is used twice", i)
		}
		p.met[i] = true
	}
	return head[:(1+more)*p.pageSize], native.Uint16(head[8:]), nil
}

// span is what keys a page below a branch has: it begins with the first, by which bbolt finds its place again when it is
// written, and all come before the other. Nil is for no limit.
type span struct{ first, before []byte }

// page checks a page and all that it leads to.
func (p *pages) page(id uint64, s span, depth int) error {
	page, flags, err := p.take(id)
	switch {
	case err != nil:
		return err
	case depth <= 0:
		return errors.New("its pages lead too deep")
	case flags == leafPage:
		return p.leaf(page, s, depth)
	case flags != branchPage || native.Uint16(page[10:]) == 0:
		return fmt.Errorf("page %d holds no data", id)
	}
	var keys [][]byte
	var below []uint64
	err = items(page, s, func(item []byte, at int) (key []byte, err error) {
		key, err = within(page, at+int(native.Uint32(item)), int(native.Uint32(item[4:])))
		keys, below = append(keys, key), append(below, native.Uint64(item[8:]))
		return key, err
	})
	for i := range below {
		if err != nil {
			return err
		}
		part := span{keys[i], s.before}
		if i+1 < len(keys) {
			part.before = keys[i+1]
		}
		err = p.page(below[i], part, depth-1)
	}
	return err
}

// leaf checks a page of keys and values; those of a bucket within a value have no pages of their own.
func (p *pages) leaf(page []byte, s span, depth int) error {
	return items(page, s, func(item []byte, at int) ([]byte, error) {
		at += int(native.Uint32(item[4:]))
		length := int(native.Uint32(item[8:]))
		key, err := within(page, at, length)
		if err != nil {
			return nil, err
		}
		value, err := within(page, at+length, int(native.Uint32(item[12:])))
		if err == nil && native.Uint32(item)&bucketItem != 0 {
			err = p.bucket(value, depth)
		}
		return key, err
	})
}

func (p *pages) bucket(value []byte, depth int) error {
	if len(value) < 16 {
		return errors.New("it has a bucket without a beginning")
	}
	if root := native.Uint64(value); root != 0 {
		return p.page(root, span{}, depth-1)
	}
	page := value[16:]
	if len(page) < headerSize || native.Uint16(page[8:]) != leafPage || depth <= 1 {
		return errors.New("it has a bucket that holds no data")
	}
	return p.leaf(page, span{}, depth-1)
}

// items goes through the elements of a page, whose keys must ascend and lie in a span.
func items(page []byte, s span, look func(item []byte, at int) (key []byte, err error)) error {
	count := int(native.Uint16(page[10:]))
	if headerSize+count*itemSize > len(page) {
		return errors.New("a page of it tells of more than fits onto it")
	}
	if s.first != nil && count == 0 {
		return errors.New("a page of it has lost what it held")
	}
	var last []byte
	for i := range count {
		at := headerSize + i*itemSize
		key, err := look(page[at:at+itemSize], at)
		if err != nil {
			return err
		}
		if i > 0 && bytes.Compare(last, key) >= 0 || i == 0 && s.first != nil && !bytes.Equal(s.first, key) ||
			s.before != nil && bytes.Compare(key, s.before) >= 0 {
			return errors.New("its keys are out of order")
		}
		last = key
	}
	return nil
}

func within(page []byte, at, length int) ([]byte, error) {
	if at < headerSize || at > len(page) || length < 0 || length > len(page)-at {
		return nil, errors.New("a page of it refers to what lies outside")
	}
	return page[at : at+length], nil
}

// free checks the list of pages that may be written next: one that is in use must not be among them. Other programs may keep
// no such list, and bbolt would write one as soon as it opens their file.
func (p *pages) free() error {
	if p.freelist == noFreelist {
		return errForeign
	}
	page, flags, err := p.take(p.freelist)
	if err != nil {
		return err
	}
	count, at := uint64(native.Uint16(page[10:])), uint64(headerSize)
	if count == 0xFFFF {
		count, at = native.Uint64(page[at:]), at+8
	}
	if flags != freePage || count > (uint64(len(page))-at)/8 {
		return errors.New("its list of free pages is none")
	}
	for i := range count {
		id := native.Uint64(page[at+i*8:])
		if id < 2 || id >= p.pages || p.met[id] {
			return fmt.Errorf("its page %d is said to be free", id)
		}
		p.met[id] = true
	}
	if lost := slices.Index(p.met, false); lost >= 0 {
		return fmt.Errorf("its page %d is neither used nor free", lost)
	}
	return nil
}

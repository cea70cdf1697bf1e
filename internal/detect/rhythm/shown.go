package rhythm

import (
	"cmp"
	"math"
	"path"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

const (
	maxShown  = 4096 // opens of a job that are remembered
	maxSketch = 32   // files of a span that are remembered: those with the lowest hashes, which are the same in any span
	// seenMost bounds the share of a span's files that looks may have seen: they may always miss one.
	seenMost = 0.98
	// partly is how many times what a span read its files may have, if they were read as a whole.
	partly = 1.5
	// chance is the probability below which it is no chance that looks saw none of the files again. It is high: what is
	// refuted by mistake is found with the next span, whose files add to this.
	chance = 0.5
	// compared is how many spans before it one is compared with.
	compared = 3
	// fewAgain is the share of the files expected again below which a span is of others, and minAgain how many have to
	// be expected for that.
	fewAgain = 0.25
	minAgain = 4
)

// shown are the newest opens of data files that a job showed, by time.
type shown struct{ all []showing }

type showing struct {
	at   time.Duration
	key  detect.FileKey
	size int64
	modified
}

// add adds opens. Segments of memory that processes share are files of that folder, with a new name for each batch.
func (s *shown) add(list []opened) {
	for i := range list {
		if o := &list[i]; !o.was && o.size > 0 && o.key != (detect.FileKey{}) && path.Dir(o.path) != "/dev/shm" {
			s.all = append(s.all, showing{o.at, o.key, o.size, o.modified})
		}
	}
	if over := len(s.all) - maxShown; over > 0 {
		s.all = slices.Delete(s.all, 0, over)
	}
}

// sketch is what is remembered of the files of a span.
type sketch struct {
	files []shownFile // by the hash of their keys, maxSketch at most
	all   bool        // these are all
	share float64     // of what was read, that was of files that showed; 0 if that is not known
}

type shownFile struct {
	key detect.FileKey
	modified
}

// sketch returns what showed from one moment to another, in which so many bytes were read by calls. Of files that are
// only read in part, it is not known what share showed.
func (s *shown) sketch(from, to time.Duration, read float64) (k sketch) {
	last := map[detect.FileKey]showing{}
	for i := range s.all {
		if one := s.all[i]; one.at >= from && one.at < to {
			before := last[one.key]
			one.size, one.modified = max(one.size, before.size), cmp.Or(one.modified, before.modified)
			last[one.key] = one
		}
	}
	sum := 0.0
	for key, one := range last {
		k.files = append(k.files, shownFile{key, one.modified})
		sum += float64(one.size)
	}
	slices.SortFunc(k.files, byHash)
	k.all = len(k.files) <= maxSketch
	k.files = k.files[:min(len(k.files), maxSketch)]
	if read >= minRead && sum <= partly*read {
		k.share = min(seenMost, sum/read)
	}
	return k
}

func byHash(a, b shownFile) int { return cmp.Compare(hash(a.key), hash(b.key)) }

// again compares the files of a span with those of the one before: how many of them should have showed there if all are
// read again, the logarithm of the probability that none of them did, and how many did.
func (k *sketch) again(before *sketch) (expected, none, got float64) {
	if before.share == 0 || k.share == 0 || len(before.files) == 0 {
		return 0, 0, 0
	}
	highest := hash(before.files[len(before.files)-1].key)
	for _, one := range k.files {
		if !before.all && hash(one.key) > highest {
			break
		}
		expected += before.share
		none += math.Log(1 - before.share)
		i, found := slices.BinarySearchFunc(before.files, one, byHash)
		if found && !one.differs(before.files[i].modified) {
			got++
		}
	}
	return expected, none, got
}

// elsewhere reports whether spans read other files than those before them. Each is then a part of one pass.
func elsewhere(spans []*span) bool {
	expected, none, got := 0.0, 0.0, 0.0
	for i, s := range spans {
		for _, before := range spans[max(0, i-compared):i] {
			e, n, g := s.files.again(&before.files)
			expected, none, got = expected+e, none+n, got+g
		}
	}
	return got == 0 && none < math.Log(chance) || expected >= minAgain && got < fewAgain*expected
}

package perfetto

import (
	"fmt"
	"time"
)

// rank orders the tracks without a process. Perfetto may draw them in another order.
type rank uint64

const (
	rankNotes rank = iota + 1
	rankWindows
	rankStalls
	rankGPUs
	rankDisks
	rankPressure
	rankCPU
	rankJobs
)

// tracks describes tracks, each before its first event.
type tracks struct {
	out    *encoder
	used   uint64            // the newest number; 0 is Perfetto's own
	groups map[string]uint64 // by name
}

// begin gives tracks an order.
func (t *tracks) begin() {
	t.out.track(message{}.uint(trackUUID, 0).uint(trackOrdering, orderExplicit))
}

func (t *tracks) number() uint64 {
	t.used++
	return t.used
}

// lane is a new track for slices. Perfetto draws those with the same name as one.
func (t *tracks) lane(name string, r rank) uint64 {
	id := t.number()
	t.out.track(message{}.uint(trackUUID, id).text(trackName, name).uint(trackRank, uint64(r)))
	return id
}

// group is a track that holds others. There is one of each name.
func (t *tracks) group(name string, r rank) uint64 {
	if id, ok := t.groups[name]; ok {
		return id
	}
	if t.groups == nil {
		t.groups = map[string]uint64{}
	}
	id := t.number()
	t.groups[name] = id
	t.out.track(message{}.uint(trackUUID, id).text(trackName, name).uint(trackRank, uint64(r)).
		uint(trackMerge, mergeNone).uint(trackOrdering, orderExplicit))
	return id
}

// counter is a new counter in a group.
func (t *tracks) counter(group uint64, name, unit string, place int) uint64 {
	id := t.number()
	var kind message // empty for a plain number
	if unit != "" {
		kind = kind.text(counterUnit, unit)
	}
	t.out.track(message{}.uint(trackUUID, id).uint(trackParent, group).text(trackName, name).
		uint(trackRank, uint64(place)).uint(trackMerge, mergeNone).message(trackCounter, kind))
	return id
}

// process describes a process, or gives it another name.
func (t *tracks) process(id uint64, pid int, name string) {
	p := message{}.uint(processPID, uint64(pid)).text(processName, name)
	t.out.track(message{}.uint(trackUUID, id).message(trackProcess, p))
}

// thread describes the track of a thread, or gives it another name.
func (t *tracks) thread(id uint64, pid, tid int, name string) {
	th := message{}.uint(threadPID, uint64(pid)).uint(threadTID, uint64(tid)).text(threadName, name)
	t.out.track(message{}.uint(trackUUID, id).message(trackThread, th))
}

// notes is the track of what was left out.
func (t *tracks) notes() uint64 { return t.group("Left out of this trace", rankNotes) }

func sentence(n int, noun, one, several string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s %s", noun, one)
	}
	return fmt.Sprintf("%d %ss %s", n, noun, several)
}

// clockTimeOf is a moment in a sentence.
func clockTimeOf(wall time.Time) string { return wall.Format("15:04:05 UTC") }

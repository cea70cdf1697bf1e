package perfetto

import (
	"io"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields, from Perfetto's protos/perfetto/trace: trace.proto, trace_packet.proto, clock_snapshot.proto,
// interned_data.proto and those of track_event.
const (
	tracePacket = 1 // Trace.packet

	packetClocks      = 6 // TracePacket.clock_snapshot
	packetTime        = 8
	packetSequence    = 10 // trusted_packet_sequence_id
	packetEvent       = 11 // track_event
	packetInterned    = 12
	packetFlags       = 13 // sequence_flags
	packetClock       = 58 // timestamp_clock_id; the same in TracePacketDefaults
	packetDefaults    = 59
	packetTrack       = 60 // track_descriptor
	packetFirst       = 87 // first_packet_on_sequence
	flagCleared       = 1  // SEQ_INCREMENTAL_STATE_CLEARED
	flagNeedsInterned = 2  // SEQ_NEEDS_INCREMENTAL_STATE

	snapshotClock   = 1 // ClockSnapshot.clocks
	snapshotPrimary = 2 // primary_trace_clock
	clockID         = 1
	clockTime       = 2
	clockRealtime   = 1 // BuiltinClock
	clockMonotonic  = 3

	internedCategories  = 1 // of InternedData
	internedNames       = 2
	internedAnnotations = 3
	internedID          = 1 // of each of these
	internedText        = 2

	trackUUID     = 1 // of TrackDescriptor
	trackName     = 2
	trackProcess  = 3
	trackThread   = 4
	trackParent   = 5
	trackCounter  = 8
	trackOrdering = 11 // child_ordering
	trackRank     = 12 // sibling_order_rank
	trackMerge    = 15 // sibling_merge_behavior
	orderExplicit = 3
	mergeNone     = 2

	processPID  = 1
	processName = 6
	threadPID   = 1
	threadTID   = 2
	threadName  = 5
	counterUnit = 6 // unit_name

	eventCategory   = 3 // category_iids
	eventAnnotation = 4 // debug_annotations
	eventType       = 9
	eventName       = 10 // name_iid
	eventTrack      = 11
	eventNameText   = 23 // name
	eventValue      = 44 // double_counter_value
	sliceBegin      = 1
	sliceEnd        = 2
	instant         = 3
	counterValue    = 4

	annotationName   = 1 // name_iid
	annotationBool   = 2 // bool_value
	annotationDouble = 5 // double_value
	annotationText   = 6 // string_value
)

// sequence is the only packet sequence of a trace.
const sequence = 1

// Bounds of texts, which programs choose.
const (
	maxText    = 1024 // bytes of one
	maxInterns = 8192 // of each kind; later names stand in their events
)

// message is a protobuf message under construction.
type message []byte

func (m message) uint(field protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), v)
}

func (m message) double(field protowire.Number, v float64) message {
	return protowire.AppendFixed64(protowire.AppendTag(m, field, protowire.Fixed64Type), math.Float64bits(v))
}

func (m message) text(field protowire.Number, s string) message {
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), clean(s))
}

func (m message) message(field protowire.Number, inner message) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), inner)
}

// clean makes any bytes a short text that can be shown.
func clean(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	if utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// encoder writes packets. After an error it writes nothing.
type encoder struct {
	to    io.Writer
	err   error
	clock uint64 // of the timestamps
	zero  int64  // its reading at Stamp.Mono 0, ns

	interned [internedAnnotations + 1]map[string]uint64
	pending  message // InternedData for the next packet
	packet   message // reused
	event    message // reused
	inner    message // reused
	framed   message // reused
}

// time is the timestamp of a moment on the trace's clock.
func (e *encoder) time(at time.Duration) uint64 { return uint64(max(0, e.zero+int64(at))) }

// begin writes the first packet: what all packets have in common.
func (e *encoder) begin() {
	p := message{}.uint(packetSequence, sequence).uint(packetFlags, flagCleared).uint(packetFirst, 1)
	e.write(p.message(packetDefaults, message{}.uint(packetClock, e.clock)))
}

// clocks writes what two clocks showed at one moment. Later packets refer to the trace's clock.
func (e *encoder) clocks(at time.Duration, wall time.Time) {
	var s message
	if e.clock != clockRealtime {
		s = s.message(snapshotClock, message{}.uint(clockID, e.clock).uint(clockTime, e.time(at)))
	}
	s = s.message(snapshotClock, message{}.uint(clockID, clockRealtime).uint(clockTime, uint64(max(0, wall.UnixNano()))))
	e.write(message{}.message(packetClocks, s.uint(snapshotPrimary, e.clock)))
}

// track writes a TrackDescriptor.
func (e *encoder) track(descriptor message) {
	e.write(message{}.uint(packetSequence, sequence).uint(packetFlags, flagNeedsInterned).message(packetTrack, descriptor))
}

// intern returns the number of a text, or 0 if there are too many.
func (e *encoder) intern(kind protowire.Number, s string) uint64 {
	s = clean(s)
	ids := e.interned[kind]
	if ids == nil {
		ids = map[string]uint64{}
		e.interned[kind] = ids
	}
	if id, ok := ids[s]; ok || len(ids) >= maxInterns {
		return id
	}
	id := uint64(len(ids) + 1)
	ids[strings.Clone(s)] = id
	e.pending = e.pending.message(kind, message{}.uint(internedID, id).text(internedText, s))
	return id
}

// counter writes the value that a counter has from a moment on.
func (e *encoder) counter(track uint64, at time.Duration, value float64) {
	e.event = e.event[:0].uint(eventType, counterValue).uint(eventTrack, track).double(eventValue, value)
	e.send(at)
}

// start writes the begin of a slice. notes are its annotations.
func (e *encoder) start(track uint64, at time.Duration, name, category string, notes []note) {
	e.named(sliceBegin, track, name, category, notes)
	e.send(at)
}

func (e *encoder) end(track uint64, at time.Duration) {
	e.event = e.event[:0].uint(eventType, sliceEnd).uint(eventTrack, track)
	e.send(at)
}

// mark writes an event without a duration.
func (e *encoder) mark(track uint64, at time.Duration, name string) {
	e.named(instant, track, name, "", nil)
	e.send(at)
}

func (e *encoder) named(kind, track uint64, name, category string, notes []note) {
	e.event = e.event[:0].uint(eventType, kind).uint(eventTrack, track)
	if id := e.intern(internedNames, name); id != 0 {
		e.event = e.event.uint(eventName, id)
	} else {
		e.event = e.event.text(eventNameText, name)
	}
	if id := e.intern(internedCategories, category); category != "" && id != 0 {
		e.event = e.event.uint(eventCategory, id)
	}
	for _, n := range notes {
		e.inner = n.append(e.inner[:0].uint(annotationName, e.intern(internedAnnotations, n.name)))
		e.event = e.event.message(eventAnnotation, e.inner)
	}
}

// note is an annotation of a slice. Names are few and ours.
type note struct {
	name  string
	value any // string, float64 or bool
}

func (n note) append(m message) message {
	switch v := n.value.(type) {
	case string:
		return m.text(annotationText, v)
	case float64:
		return m.double(annotationDouble, v)
	case bool:
		return m.uint(annotationBool, protowire.EncodeBool(v))
	}
	return m
}

// send writes the event, with the names that it is the first to use.
func (e *encoder) send(at time.Duration) {
	p := e.packet[:0].uint(packetTime, e.time(at)).uint(packetSequence, sequence).uint(packetFlags, flagNeedsInterned)
	if len(e.pending) > 0 {
		p, e.pending = p.message(packetInterned, e.pending), e.pending[:0]
	}
	e.packet = p.message(packetEvent, e.event)
	e.write(e.packet)
}

func (e *encoder) write(packet message) {
	if e.err == nil {
		e.framed = e.framed[:0].message(tracePacket, packet)
		_, e.err = e.to.Write(e.framed)
	}
}

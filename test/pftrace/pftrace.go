// Package pftrace decodes traces of Perfetto, with the names and numbers of the published protos. For tests only.
package pftrace

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// schema has the fields that a trace may use here: a message, then a name, number and type of each field. An asterisk
// stands for repeated. They are those of protos/perfetto/trace in github.com/google/perfetto.
const schema = `
Trace packet=1:*TracePacket
TracePacket clock_snapshot=6:ClockSnapshot timestamp=8:uint64 trusted_packet_sequence_id=10:uint32
TracePacket track_event=11:TrackEvent interned_data=12:InternedData sequence_flags=13:uint32
TracePacket timestamp_clock_id=58:uint32 trace_packet_defaults=59:TracePacketDefaults
TracePacket track_descriptor=60:TrackDescriptor first_packet_on_sequence=87:bool
TracePacketDefaults timestamp_clock_id=58:uint32
ClockSnapshot clocks=1:*Clock primary_trace_clock=2:uint32
Clock clock_id=1:uint32 timestamp=2:uint64
InternedData event_categories=1:*Interned event_names=2:*Interned debug_annotation_names=3:*Interned
Interned iid=1:uint64 name=2:string
TrackDescriptor uuid=1:uint64 name=2:string process=3:ProcessDescriptor thread=4:ThreadDescriptor
TrackDescriptor parent_uuid=5:uint64 counter=8:CounterDescriptor child_ordering=11:uint32
TrackDescriptor sibling_order_rank=12:int32 sibling_merge_behavior=15:uint32
ProcessDescriptor pid=1:int32 process_name=6:string
ThreadDescriptor pid=1:int32 tid=2:int64 thread_name=5:string
CounterDescriptor unit_name=6:string
TrackEvent category_iids=3:*uint64 debug_annotations=4:*DebugAnnotation type=9:uint32 name_iid=10:uint64
TrackEvent track_uuid=11:uint64 name=23:string double_counter_value=44:double
DebugAnnotation name_iid=1:uint64 bool_value=2:bool double_value=5:double string_value=6:string
`

var scalars = map[string]descriptorpb.FieldDescriptorProto_Type{
	"uint32": descriptorpb.FieldDescriptorProto_TYPE_UINT32, "uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64,
	"int32": descriptorpb.FieldDescriptorProto_TYPE_INT32, "int64": descriptorpb.FieldDescriptorProto_TYPE_INT64,
	"bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL, "double": descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
	"string": descriptorpb.FieldDescriptorProto_TYPE_STRING,
}

// descriptor builds the message Trace from schema.
func descriptor(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("trace.proto"), Package: proto.String("perfetto.protos"), Syntax: proto.String("proto2"),
	}
	messages := map[string]*descriptorpb.DescriptorProto{}
	for line := range strings.Lines(strings.TrimSpace(schema)) {
		words := strings.Fields(line)
		m := messages[words[0]]
		if m == nil {
			m = &descriptorpb.DescriptorProto{Name: proto.String(words[0])}
			messages[words[0]] = m
			file.MessageType = append(file.MessageType, m)
		}
		for _, word := range words[1:] {
			name, rest, _ := strings.Cut(word, "=")
			text, kind, _ := strings.Cut(rest, ":")
			var number int32
			if _, err := fmt.Sscan(text, &number); err != nil {
				t.Fatalf("%s: %v", word, err)
			}
			f := &descriptorpb.FieldDescriptorProto{
				Name: proto.String(name), Number: proto.Int32(number),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}
			if kind = strings.TrimPrefix(kind, "*"); strings.Contains(rest, "*") {
				f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			}
			if scalar, ok := scalars[kind]; ok {
				f.Type = scalar.Enum()
			} else {
				f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
				f.TypeName = proto.String(".perfetto.protos." + kind)
			}
			m.Field = append(m.Field, f)
		}
	}
	built, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return built.Messages().ByName("Trace")
}

// Trace is a decoded trace. Times are on the trace's clock.
type Trace struct {
	Clock     uint32 // of the timestamps
	Primary   uint32
	Snapshots []map[uint32]uint64 // by clock
	Tracks    map[uint64]*Track
}

// Track is one track with its events, in the order of the file.
type Track struct {
	UUID, Parent uint64
	Name         string // also of a thread or process
	Unit         string
	PID          int32
	TID          int64
	Slices       []Slice // in the order of their ends
	Values       []Value
	Marks        []string
	open         []Slice
	last         uint64
}

// Slice is a slice with its annotations.
type Slice struct {
	Start, End     uint64
	Name, Category string
	Depth          int // slices around it
	Notes          map[string]any
}

// Value is the value of a counter from a time on.
type Value struct {
	At    uint64
	Value float64
}

// Of returns the track with a name in a group; "" for none.
func (tr *Trace) Of(group, name string) *Track {
	for _, track := range tr.Tracks {
		if parent := tr.Tracks[track.Parent]; track.Name == name && (group == "" || parent != nil && parent.Name == group) {
			return track
		}
	}
	return nil
}

// All returns the slices of all tracks with a name.
func (tr *Trace) All(name string) (all []Slice) {
	for _, track := range tr.Tracks {
		if track.Name == name {
			all = append(all, track.Slices...)
		}
	}
	return all
}

// decoder keeps what packets refer to.
type decoder struct {
	t        testing.TB
	out      *Trace
	interned [4]map[uint64]string // by the number in InternedData
	cleared  bool
}

// Decode decodes a trace, and fails the test where it breaks a rule: a field that Perfetto has not published, an event
// on a track without a descriptor, a name that is not interned yet, time that runs backwards on a track, an end
// without a begin, or a slice without an end.
func Decode(t testing.TB, data []byte) *Trace {
	t.Helper()
	m := dynamicpb.NewMessage(descriptor(t))
	if err := proto.Unmarshal(data, m); err != nil {
		t.Fatalf("got the error %v, want a trace", err)
	}
	d := &decoder{t: t, out: &Trace{Tracks: map[uint64]*Track{}}}
	for i := range d.interned {
		d.interned[i] = map[uint64]string{}
	}
	known(t, m)
	packets := field(m, "packet").List()
	for i := range packets.Len() {
		d.packet(packets.Get(i).Message())
	}
	for _, track := range d.out.Tracks {
		if n := len(track.open); n > 0 {
			t.Errorf("track %q: got %d slices without an end", track.Name, n)
		}
	}
	return d.out
}

// known fails if a message has a field that is not in the schema.
func known(t testing.TB, m protoreflect.Message) {
	t.Helper()
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		t.Fatalf("%s: got unknown fields: % x", m.Descriptor().Name(), []byte(unknown))
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				known(t, v.List().Get(i).Message())
			}
		default:
			known(t, v.Message())
		}
		return true
	})
}

func field(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}

func has(m protoreflect.Message, name protoreflect.Name) bool {
	return m.Has(m.Descriptor().Fields().ByName(name))
}

func (d *decoder) packet(p protoreflect.Message) {
	d.t.Helper()
	flags := field(p, "sequence_flags").Uint()
	if flags&1 != 0 {
		d.cleared = true
		d.out.Clock = uint32(field(field(p, "trace_packet_defaults").Message(), "timestamp_clock_id").Uint())
	}
	if flags&2 != 0 && !d.cleared {
		d.t.Fatal("got a packet that needs interned data before any was begun")
	}
	if has(p, "interned_data") {
		d.intern(field(p, "interned_data").Message())
	}
	switch {
	case has(p, "clock_snapshot"):
		d.clocks(field(p, "clock_snapshot").Message())
	case has(p, "track_descriptor"):
		d.track(field(p, "track_descriptor").Message())
	case has(p, "track_event"):
		d.event(field(p, "timestamp").Uint(), field(p, "track_event").Message())
	}
}

func (d *decoder) intern(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		for i := range v.List().Len() {
			e := v.List().Get(i).Message()
			d.interned[f.Number()][field(e, "iid").Uint()] = field(e, "name").String()
		}
		return true
	})
}

func (d *decoder) clocks(s protoreflect.Message) {
	snapshot := map[uint32]uint64{}
	clocks := field(s, "clocks").List()
	for i := range clocks.Len() {
		c := clocks.Get(i).Message()
		snapshot[uint32(field(c, "clock_id").Uint())] = field(c, "timestamp").Uint()
	}
	d.out.Snapshots = append(d.out.Snapshots, snapshot)
	d.out.Primary = uint32(field(s, "primary_trace_clock").Uint())
}

func (d *decoder) track(m protoreflect.Message) {
	id := field(m, "uuid").Uint()
	track := d.out.Tracks[id]
	if track == nil {
		track = &Track{UUID: id}
		d.out.Tracks[id] = track
	}
	track.Name, track.Parent = field(m, "name").String(), field(m, "parent_uuid").Uint()
	track.Unit = field(field(m, "counter").Message(), "unit_name").String()
	if has(m, "process") {
		p := field(m, "process").Message()
		track.PID, track.Name = int32(field(p, "pid").Int()), field(p, "process_name").String()
	}
	if has(m, "thread") {
		th := field(m, "thread").Message()
		track.PID, track.TID = int32(field(th, "pid").Int()), field(th, "tid").Int()
		track.Name = field(th, "thread_name").String()
	}
}

func (d *decoder) event(at uint64, e protoreflect.Message) {
	d.t.Helper()
	track := d.out.Tracks[field(e, "track_uuid").Uint()]
	if track == nil {
		d.t.Fatalf("got an event on track %d, which has no descriptor", field(e, "track_uuid").Uint())
	}
	if at < track.last {
		d.t.Errorf("track %q: got an event at %d after one at %d", track.Name, at, track.last)
	}
	track.last = at
	switch kind := field(e, "type").Uint(); kind {
	case 1:
		track.open = append(track.open, Slice{Start: at, Name: d.name(e), Category: d.category(e), Notes: d.notes(e)})
	case 2:
		n := len(track.open)
		if n == 0 {
			d.t.Fatalf("track %q: got an end at %d without a begin", track.Name, at)
		}
		s := track.open[n-1]
		s.End, s.Depth = at, n-1
		track.open, track.Slices = track.open[:n-1], append(track.Slices, s)
	case 3:
		track.Marks = append(track.Marks, d.name(e))
	case 4:
		track.Values = append(track.Values, Value{at, field(e, "double_counter_value").Float()})
	default:
		d.t.Errorf("got the event type %d", kind)
	}
}

func (d *decoder) name(e protoreflect.Message) string {
	d.t.Helper()
	if has(e, "name") {
		return field(e, "name").String()
	}
	return d.text(2, field(e, "name_iid").Uint())
}

func (d *decoder) category(e protoreflect.Message) string {
	d.t.Helper()
	ids := field(e, "category_iids").List()
	if ids.Len() == 0 {
		return ""
	}
	return d.text(1, ids.Get(0).Uint())
}

func (d *decoder) notes(e protoreflect.Message) map[string]any {
	d.t.Helper()
	all := map[string]any{}
	list := field(e, "debug_annotations").List()
	for i := range list.Len() {
		m := list.Get(i).Message()
		name := d.text(3, field(m, "name_iid").Uint())
		for _, kind := range []protoreflect.Name{"bool_value", "double_value", "string_value"} {
			if has(m, kind) {
				all[name] = field(m, kind).Interface()
			}
		}
	}
	return all
}

func (d *decoder) text(kind int, id uint64) string {
	d.t.Helper()
	s, ok := d.interned[kind][id]
	if !ok {
		d.t.Fatalf("got the interned text %d of kind %d before its definition", id, kind)
	}
	return s
}

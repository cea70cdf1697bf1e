package identity

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/stallspan/stallspan/test/fixture"
)

// message encodes a process context with an attribute of each type.
func message(t testing.TB) []byte {
	t.Helper()
	text := func(key, value string) *common.KeyValue {
		return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
	}
	r, err := proto.Marshal(&resource.Resource{Attributes: []*common.KeyValue{
		text("service.name", "llm"), text("host.name", "not-yours"),
		{Key: "int", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: -3}}},
		{Key: "double", Value: &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: 1.5}}},
		{Key: "bool", Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}}},
		{Key: "list", Value: &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{}}}},
		{Key: "none"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	other := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte("key"))
	return protowire.AppendBytes(protowire.AppendTag(other, resourceField, protowire.BytesType), r)
}

var published = []Attribute{
	{"service.name", "llm", true}, {"host.name", "not-yours", true}, {"int", "-3", true}, {"double", "1.5", true},
	{"bool", "true", true},
}

// headerOf makes the header of a context.
func headerOf(version uint32, size int, published, payload uint64) []byte {
	h := binary.NativeEndian.AppendUint32([]byte(signature), version)
	h = binary.NativeEndian.AppendUint32(h, uint32(size))
	h = binary.NativeEndian.AppendUint64(h, published)
	return binary.NativeEndian.AppendUint64(h, payload)
}

func TestProcessContext(t *testing.T) {
	payload := message(t)
	const at, heap, lib = 0x1000, 0x3000, 0x5000
	maps := "00001000-00002000 rw-p 00000000 00:01 1024                       /memfd:OTEL_CTX (deleted)\n" +
		"00003000-00004000 rw-p 00000000 00:00 0 \n" +
		"00005000-00006000 r--p 00000000 fd:01 77                         /usr/lib/lib with blanks.so\n"
	good := headerOf(version, len(payload), 1, at+headerBytes)
	for name, test := range map[string]struct {
		maps   string
		header []byte
		want   []Attribute
	}{
		"after the header":   {maps, good, published},
		"elsewhere":          {maps, headerOf(version, len(payload), 1, heap+5), published},
		"in a file":          {maps, headerOf(version, len(payload), 1, lib), nil},
		"in nothing":         {maps, headerOf(version, len(payload), 1, 0x9000), nil},
		"across the end":     {maps, headerOf(version, 0x1000, 1, heap+5), nil},
		"at the top":         {maps, headerOf(version, len(payload), 1, 1<<64-1), nil},
		"being changed":      {maps, headerOf(version, len(payload), 0, at+headerBytes), nil},
		"of another version": {maps, headerOf(1, len(payload), 1, at+headerBytes), nil},
		"too large":          {maps, headerOf(version, maxContext+1, 1, at+headerBytes), nil},
		"empty":              {maps, headerOf(version, 0, 1, at+headerBytes), nil},
		"without signature":  {maps, make([]byte, headerBytes), nil},
		"none":               {"00001000-00002000 rw-p 00000000 00:01 1024 /memfd:OTEL_CTX_OLD\n", good, nil},
		"not readable":       {"00001000-00002000 ---p 00000000 00:01 1024 /memfd:OTEL_CTX\n", good, nil},
		"named by prctl":     {"00001000-00002000 rw-p 00000000 00:00 0 [anon_shmem:OTEL_CTX]\n", good, published},
		"anonymous":          {"00001000-00002000 rw-p 00000000 00:00 0 [anon:OTEL_CTX]\n", good, published},
	} {
		root := t.TempDir()
		memory := make([]byte, 0x7000)
		copy(memory[at:], test.header)
		for _, place := range []int{at + headerBytes, heap + 5, lib} {
			copy(memory[place:], payload)
		}
		fixture.Write(t, root, "7/maps", []byte(test.maps))
		fixture.Write(t, root, "7/mem", memory)
		if diff := cmp.Diff(test.want, processContext(root, 7)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// What the SDK has published comes before the variables that it has read.
func TestContextComesFirst(t *testing.T) {
	var l list
	variables := []Attribute{{"int", "4", true}, {"x", "y", true}}
	l.claims(&claims{service: "variable", context: published, resource: variables}, &place{})
	want := []Attribute{{"bool", "true", true}, {"double", "1.5", true}, {"int", "-3", true},
		{"service.name", "llm", true}, {"x", "y", true}}
	if diff := cmp.Diff(want, l.sorted()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func FuzzContext(f *testing.F) {
	f.Add(message(f))
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, payload []byte) {
		if all := parseContext(payload); len(all) > maxAttributes {
			t.Errorf("got %d attributes", len(all))
		}
	})
}

func FuzzMapping(f *testing.F) {
	f.Add([]byte("7f12a000-7f12b000 rw-p 00000000 00:01 1024                       /memfd:OTEL_CTX (deleted)"))
	f.Add([]byte("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if m, ok := parseMapping(line); ok && (m.from >= m.to || int64(m.to) < 0) {
			t.Errorf("%q: got %+v", line, m)
		}
	})
}

// A real process, and a real mapping: this one's.
func TestRealContext(t *testing.T) {
	payload := message(t)
	publish(t, payload)
	if _, err := os.Open(fmt.Sprintf("/proc/%d/mem", os.Getpid())); err != nil {
		t.Skipf("needs the right to read its own memory: %v", err)
	}
	if diff := cmp.Diff(published, processContext("/proc", os.Getpid())); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

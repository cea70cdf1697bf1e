package identity

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"strconv"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// This file reads the process context that an SDK of OpenTelemetry publishes in a mapping of its memory (OTEP 4719,
// opentelemetry-specification/oteps/profiles). The mapping has a header, and the header has the place of a message in
// protobuf.

// Bounds of a process context.
const (
	maxMappings = 1 << 24 // bytes of /proc/PID/maps
	maxContext  = 64 << 10
	contextTry  = 3 // while the process changes it
)

// header is the mapping's beginning.
const (
	signature     = "OTEL_CTX"
	version       = 2 // 1 was for development
	headerBytes   = 32
	versionAt     = 8
	sizeAt        = 12
	publishedAt   = 16 // a time, or 0 while it is changed
	payloadAt     = 24
	resourceField = 1 // of the message ProcessContext
)

// processContext returns the attributes of the resource that a process has published. It needs the right to trace the
// process.
func processContext(proc string, pid int) []Attribute {
	folder := proc + "/" + strconv.Itoa(pid)
	at := mappingOf(folder)
	if at == 0 {
		return nil
	}
	memory, err := os.Open(folder + "/mem")
	if err != nil {
		return nil
	}
	defer func() { _ = memory.Close() }()
	for range contextTry {
		var h, again [headerBytes]byte
		if _, err := memory.ReadAt(h[:], int64(at)); err != nil {
			return nil
		}
		size, from := binary.NativeEndian.Uint32(h[sizeAt:]), binary.NativeEndian.Uint64(h[payloadAt:])
		switch {
		case string(h[:len(signature)]) != signature || binary.NativeEndian.Uint32(h[versionAt:]) != version:
			return nil
		case binary.NativeEndian.Uint64(h[publishedAt:]) == 0:
			continue
		case size == 0 || size > maxContext || !isOwnMemory(folder, from, uint64(size)):
			return nil
		}
		payload := make([]byte, size)
		if _, err := memory.ReadAt(payload, int64(from)); err != nil {
			continue
		}
		if _, err := memory.ReadAt(again[:], int64(at)); err == nil && h == again {
			return parseContext(payload)
		}
	}
	return nil
}

// mapping is a line of /proc/PID/maps (proc_pid_maps(5)).
type mapping struct {
	from, to uint64
	readable bool
	name     string
}

// eachMapping calls yield for the mappings of a process, until it returns false.
func eachMapping(folder string, yield func(mapping) bool) {
	file, err := os.Open(folder + "/maps")
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(io.LimitReader(file, maxMappings)); lines.Scan(); {
		if m, ok := parseMapping(lines.Bytes()); ok && !yield(m) {
			return
		}
	}
}

// parseMapping parses a line such as "7f12a000-7f12b000 rw-p 00000000 00:01 1024  /memfd:OTEL_CTX (deleted)".
func parseMapping(line []byte) (m mapping, ok bool) {
	const columns = 5 // before the name
	rest := line
	var words [columns][]byte
	for i := range words {
		words[i], rest, _ = bytes.Cut(bytes.TrimLeft(rest, " "), []byte{' '})
	}
	from, to, _ := strings.Cut(string(words[0]), "-")
	var err, err2 error
	m.from, err = strconv.ParseUint(from, 16, 63)
	m.to, err2 = strconv.ParseUint(to, 16, 63)
	m.readable = bytes.HasPrefix(words[1], []byte{'r'})
	m.name = strings.TrimSuffix(string(bytes.TrimSpace(rest)), " (deleted)")
	return m, err == nil && err2 == nil && m.from < m.to && len(words[columns-1]) > 0
}

// mappingOf returns the address of the mapping with the context, or 0.
func mappingOf(folder string) (at uint64) {
	eachMapping(folder, func(m mapping) bool {
		if m.readable && m.to-m.from >= headerBytes && isContext(m.name) {
			at = m.from
		}
		return at == 0
	})
	return at
}

func isContext(name string) bool {
	switch name {
	case "/memfd:" + signature, "[anon:" + signature + "]", "[anon_shmem:" + signature + "]":
		return true
	}
	return false
}

// isOwnMemory reports whether a range is in one mapping of memory that is of no file. A page of a file might come from
// a server that never answers, or be a register of a device.
func isOwnMemory(folder string, from, size uint64) (own bool) {
	eachMapping(folder, func(m mapping) bool {
		if from < m.from || from >= m.to {
			return true
		}
		named := strings.HasPrefix(m.name, "[anon") || m.name == "[heap]" || m.name == ""
		own = m.readable && size <= m.to-from && (named || isContext(m.name))
		return false
	})
	return own
}

// parseContext parses a message ProcessContext, whose first field is a resource.
func parseContext(payload []byte) []Attribute {
	for len(payload) > 0 {
		field, kind, n := protowire.ConsumeTag(payload)
		if n < 0 {
			return nil
		}
		payload = payload[n:]
		if field == resourceField && kind == protowire.BytesType {
			text, n := protowire.ConsumeBytes(payload)
			var r resource.Resource
			if n < 0 || proto.Unmarshal(text, &r) != nil {
				return nil
			}
			return attributesOf(&r)
		}
		if n = protowire.ConsumeFieldValue(field, kind, payload); n < 0 {
			return nil
		}
		payload = payload[n:]
	}
	return nil
}

// attributesOf returns the attributes of a resource that are no lists.
func attributesOf(r *resource.Resource) (all []Attribute) {
	for _, a := range r.GetAttributes() {
		var value string
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			value = v.StringValue
		case *common.AnyValue_IntValue:
			value = strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_DoubleValue:
			value = strconv.FormatFloat(v.DoubleValue, 'g', -1, 64)
		case *common.AnyValue_BoolValue:
			value = strconv.FormatBool(v.BoolValue)
		}
		if value != "" && len(all) < maxAttributes {
			all = append(all, Attribute{Key: a.GetKey(), Value: value, Claimed: true})
		}
	}
	return all
}

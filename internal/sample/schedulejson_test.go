package sample

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// aSchedule has every field of every kind.
func aSchedule() Schedule {
	at := 3 * time.Hour
	return Schedule{Until: at + time.Second, Lost: 7, Arch: "arm64", Events: []ThreadEvent{
		{At: at, Kind: ThreadBegan, TID: 12, PID: 10, Job: "train", Creator: 10, Name: "python3"},
		{At: at + 1, Kind: ThreadNamed, TID: 12, PID: 10, Name: "a\xff\n"},
		{At: at + 5, Kind: ThreadIn, TID: 12, PID: 10, Woken: at, Waker: 10, WakerPID: 10, WakerKind: UserThread},
		{
			At: at + 1000, Kind: ThreadOut, TID: 12, PID: 10, State: StateBlocked, IOWait: true, Syscall: 17,
			File: RegularFile, Detail: 1<<63 + 5, Fetching: time.Microsecond, Stolen: 3 * time.Microsecond,
			Fetched: 1 << 20, Chars: 4096,
		},
		{At: at + 2000, Kind: ThreadIn, TID: 12, PID: 10, Woken: at + 1990, WakerKind: Interrupt},
		{
			At: at + 2500, Kind: ThreadOut, TID: 12, PID: 10, State: StateAsleep, Syscall: 45, File: Socket, Detail: 9,
			Peer: "10.0.0.7:443",
		},
		{
			At: at + 30_000_000, Kind: ThreadSum, TID: 12, PID: 10, State: StateAsleep, Syscall: NoSyscall, File: Socket,
			Detail: 9, Peer: "10.0.0.7:443", From: at + 2500, Running: 1, Ready: 2, Blocked: 3, Asleep: 4,
			Waker: 11, WakerPID: 10, WakerKind: SoftIRQ, Fetching: 5, Chars: 1,
		},
		{At: at + 30_000_000, Kind: ThreadFound, TID: 12, PID: 10, Syscall: 7, File: Socket, Detail: 9, Peer: "unix"},
		{At: at + 30_000_000, Kind: ThreadIn, TID: 12, PID: 10},
		{At: at + 29_000_000, Kind: ThreadOut, TID: 13, PID: 10, State: StateDead, Syscall: 231},
	}}
}

func TestScheduleJSONKeepsEverything(t *testing.T) {
	for _, want := range []Schedule{{}, {Until: -5}, aSchedule()} {
		text, err := json.Marshal(Sample{Schedule: &want})
		if err != nil {
			t.Fatal(err)
		}
		var got Sample
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("unmarshal %s: %v", text, err)
		}
		if !reflect.DeepEqual(*got.Schedule, want) {
			t.Errorf("got %+v, want %+v", *got.Schedule, want)
		}
	}
}

// A typical reading: a loader's pauses in reads of one file, ended by interrupts.
func TestScheduleJSONIsSmall(t *testing.T) {
	var s Schedule
	for i := range 500 {
		at := time.Hour + time.Duration(i)*173*time.Microsecond
		s.Events = append(s.Events,
			ThreadEvent{
				At: at, Kind: ThreadOut, TID: 70001, PID: 70000, State: StateBlocked, IOWait: true, File: RegularFile,
				Detail: 131077,
			},
			ThreadEvent{
				At: at + 91*time.Microsecond, Kind: ThreadIn, TID: 70001, PID: 70000, Woken: at + 80*time.Microsecond,
				WakerKind: SoftIRQ,
			})
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if perEvent := len(text) / len(s.Events); perEvent > 16 {
		t.Errorf("got %d characters an event, want at most 16", perEvent)
	}
}

func TestScheduleJSONRefusesDamage(t *testing.T) {
	whole, err := json.Marshal(aSchedule())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawStdEncoding.DecodeString(strings.Trim(string(whole), `"`))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"no string":         `{"until":1}`,
		"not base64":        `"*"`,
		"empty":             `""`,
		"another version":   `"` + base64.RawStdEncoding.EncodeToString(append([]byte{9}, raw[1:]...)) + `"`,
		"cut":               `"` + base64.RawStdEncoding.EncodeToString(raw[:len(raw)-1]) + `"`,
		"more at the end":   `"` + base64.RawStdEncoding.EncodeToString(append(raw, 0)) + `"`,
		"too many events":   `"` + base64.RawStdEncoding.EncodeToString([]byte{scheduleVersion, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f}) + `"`,
		"an unknown kind":   `"` + base64.RawStdEncoding.EncodeToString([]byte{scheduleVersion, 0, 0, 0, 0, 1, 7, 0, 0, 2, 2}) + `"`,
		"an unknown thread": `"` + base64.RawStdEncoding.EncodeToString([]byte{scheduleVersion, 0, 0, 0, 0, 1, 3, 0, 9}) + `"`,
	} {
		var s Schedule
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	if _, err := json.Marshal(Schedule{Events: []ThreadEvent{{}}}); err == nil {
		t.Error("an event without a kind: got no error, want one")
	}
}

// What can be read is written and read again as the same.
func FuzzScheduleJSON(f *testing.F) {
	for _, s := range []Schedule{{}, aSchedule()} {
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s, again Schedule
		if json.Unmarshal(text, &s) != nil {
			return
		}
		written, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("unmarshal %s: %v", written, err)
		}
		if !reflect.DeepEqual(s, again) {
			t.Errorf("got %+v, want %+v", again, s)
		}
	})
}

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Limits of the reasons of other time, as shares of the window's GPU time.
const (
	smallPart   = 0.05 // the finding leaves out what is less, and the reasons of less
	smallReason = 0.01 // nor are smaller reasons named
	maxReasons  = 3
)

// evidence says what a ledger was made from.
var evidence = map[window.Evidence]string{
	window.FromSchedule: "every change of state of the program's threads",
	window.FromMoments:  "what the program's threads were in at random moments",
	window.FromPressure: "pressure (PSI), disk queues and CPU times",
}

// EvidenceOf returns a sentence on what the ledgers were made from, and on what would give more; "" without a ledger.
func EvidenceOf(reports []*window.Report) string {
	var kinds []string
	ledgers := map[string]int{}
	why := ""
	for _, r := range reports {
		kind := evidence[r.Evidence]
		if kind == "" {
			continue
		}
		if ledgers[kind]++; ledgers[kind] == 1 {
			kinds = append(kinds, kind)
		}
		if r.Evidence == window.FromPressure {
			why = cmp.Or(why, r.NoSchedule)
		}
	}
	text := "Evidence: " + strings.Join(kinds, "")
	switch {
	case len(kinds) == 0:
		return ""
	case len(kinds) > 1:
		for i, kind := range kinds {
			kinds[i] = fmt.Sprintf("of %s %s", count(uint64(ledgers[kind]), "window"), kind)
		}
		text = "Evidence: " + strings.Join(kinds, "; ")
	}
	if why != "" {
		text += "; " + why
	}
	return text + "."
}

// Reasons returns what the job waited for in the time that is other, the largest first, each with its share of the
// window: "timer (2 %)".
func Reasons(r *window.Report) []string {
	var texts []string
	for _, reason := range reasons(r) {
		texts = append(texts, reason.Name+" ("+percent(share(r, reason.Time))+")")
	}
	return texts
}

// reasons lists those with evidence and a share that counts.
func reasons(r *window.Report) []window.OtherReason {
	if !r.Evidence.Followed() {
		return nil
	}
	n := 0
	for n < min(maxReasons, len(r.OtherReasons)) && share(r, r.OtherReasons[n].Time) >= smallReason {
		n++
	}
	return r.OtherReasons[:n]
}

func share(r *window.Report, time time.Duration) float64 {
	return time.Seconds() / max(r.GPUTime().Seconds(), 1e-9)
}

// others names the reasons of other after a verdict that is about something else.
func others(r *window.Report, s window.Shares) string {
	texts := Reasons(r)
	if network := s.Network >= smallPart && (r.Verdict == window.NetworkBound || r.Verdict == window.Mixed); network {
		s.Other -= s.Network // the finding has it
		texts = slices.DeleteFunc(texts, func(text string) bool { return strings.HasPrefix(text, "receiving from ") })
	}
	main := r.Verdict == window.WaitBound || r.Verdict == window.Unknown && s.Other >= window.Thresholds.Other
	if s.Other < smallPart || len(texts) == 0 || main {
		return ""
	}
	return "; " + percent(s.Other) + " was other waiting: " + strings.Join(texts, ", ")
}

// waitedFor completes "The GPU waited".
var waitedFor = map[window.OtherKind]string{
	window.OtherGPU:     "for the GPU driver",
	window.OtherNetwork: "for the network",
	window.OtherPipe:    "for a pipe",
	window.OtherLock:    "for a lock",
	window.OtherTimer:   "for a timer",
	window.OtherChild:   "for a child process",
	window.OtherSteal:   "while the hypervisor ran something else",
	window.OtherStop:    "because something stopped it",
	window.OtherEvent:   "for an event",
}

// waitedElsewhere is the verdict because of other, with what it was.
func waitedElsewhere(r *window.Report, s window.Shares) string {
	who, rest, core := "The program", "; it was on the CPU "+percent(s.CPU), "for a core "
	switch {
	case len(r.GPUIDs) > 1:
		who, rest = "The GPUs", "; they were busy "+percent(s.Busy)
	case len(r.GPUIDs) == 1:
		who, rest = "The GPU", "; it was busy "+percent(s.Busy)
	}
	var stalls []string
	if s.Storage >= smallPart {
		stalls = append(stalls, "for storage "+percent(s.Storage))
	}
	if s.CPU >= smallPart && len(r.GPUIDs) > 0 {
		stalls = append(stalls, "for CPU work "+percent(s.CPU))
		core = "for a core for this work "
	}
	if s.Ready >= smallPart {
		stalls = append(stalls, core+percent(s.Ready)+takenCores(r))
	}
	if len(stalls) > 0 {
		rest += " and waited " + strings.Join(stalls, " and ")
	}
	what, part := "for neither storage nor CPU work", s.Other
	if kind, time := r.MainReason(); kind != "" {
		what, part = waitedFor[kind], share(r, time)
		if kind == window.OtherNetwork && local(r) {
			what = "for another program"
		}
	}
	text := who + " waited " + what + " " + percent(part) + " of the time"
	if list := reasons(r); len(list) > 1 || !strings.HasSuffix(what, " "+list[0].Name) {
		text += ": " + strings.Join(Reasons(r), ", ")
	}
	return text + rest
}

// local reports whether all waiting for the network was for unix sockets, which lead to a program on the machine.
func local(r *window.Report) bool {
	return !slices.ContainsFunc(reasons(r), func(reason window.OtherReason) bool {
		return reason.Kind == window.OtherNetwork && !strings.Contains(reason.Name, " a unix socket")
	})
}

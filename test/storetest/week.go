// Package storetest writes seven days of a machine whose values are known at each time, for tests.
package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// What the week has.
const (
	Disk   = "pastdisk"
	GPU    = "GPU-of-the-past"
	Name   = "GPU 7" // of the GPU
	Job    = "process 4242 of 1"
	Owner  = "uid 4242"       // of the windows
	Every  = 6 * time.Hour    // between two windows
	Length = 20 * time.Minute // of a window
	period = 10 * time.Second
)

// The agent was down between these ages.
const (
	DownFrom  = 51 * time.Hour
	DownUntil = 48 * time.Hour
)

// ReadBytes is the throughput of the disk at a time, in bytes per second: another one each hour.
func ReadBytes(at time.Time) float64 { return 10e6 * float64(1+at.Unix()/3600%24) }

// Busy is the share in which the GPU was busy at a time.
func Busy(at time.Time) float64 { return float64(1+at.Unix()/3600%4) / 5 }

// WriteWeek writes the seven days before a time, which is rounded down to an hour, and returns the rounded one.
func WriteWeek(folder string, now time.Time) (end time.Time, err error) {
	end = now.Truncate(time.Hour)
	w := store.New(store.Options{Folder: folder, MaxSize: store.DefaultMaxSize, MaxAge: store.DefaultMaxAge})
	err = w.Open()
	if err != nil {
		return end, err
	}
	devices := columns(store.Machine, "", "")
	devices = append(devices, columns(store.GPU, GPU, Name)...)
	devices = append(devices, columns(store.Disk, Disk, Disk)...)
	jobs := columns(store.Job, Job, "")
	number := 0
	began := end.Add(-7 * 24 * time.Hour)
	for at := began; at.Before(end); at = at.Add(period) {
		if down := end.Sub(at); down > DownUntil && down <= DownFrom {
			continue
		}
		w.Add(store.Devices, devices, at, period, values(devices, at))
		w.Add(store.Jobs, jobs, at, period, values(jobs, at))
		if next := at.Add(period); next.Truncate(Every).Equal(next) {
			if err := addWindow(w, next, number); err != nil {
				return end, err
			}
			addEvents(w, next, number)
			number++
		}
		if at.Add(period).Truncate(time.Minute).Equal(at.Add(period)) {
			if err := w.Flush(sample.Stamp{Wall: at, Mono: at.Sub(began)}); err != nil {
				return end, err
			}
		}
	}
	return end, w.Close(sample.Stamp{Wall: end, Mono: end.Sub(began)})
}

func columns(of store.Kind, id, name string) (all []store.Column) {
	for _, q := range store.Quantities {
		if q.Of == of {
			all = append(all, store.Column{Of: of, ID: id, Name: name, Quantity: q.Name, Step: q.Step})
		}
	}
	return all
}

func values(columns []store.Column, at time.Time) []float64 {
	all := make([]float64, len(columns))
	for i, c := range columns {
		switch c.Quantity {
		case store.Busy:
			all[i] = Busy(at)
		case store.Storage:
			all[i] = (1 - Busy(at)) / 2
		case store.CPU:
			all[i] = (1 - Busy(at)) / 4
		case store.ReadBytes:
			all[i] = ReadBytes(at)
		case store.Reads:
			all[i] = ReadBytes(at) / 1e6
		case store.ReadAwait:
			all[i] = 2e-3
		case store.Cores, store.Queue:
			all[i] = 1
		case store.Power:
			all[i] = 1000 * Busy(at)
		}
	}
	return all
}

// addEvents adds the events of a window that ends at a time: that it is slow, and that the disk failed in its middle.
func addEvents(w *store.Writer, end time.Time, number int) {
	slow := emit.Event{
		ID: fmt.Sprint("slow", number), Name: semconv.WindowSlowEvent.Name, Time: end.Add(-Length / 4), Severity: emit.Warn,
		Body: fmt.Sprintf("epoch %d: 75 %% of it was storage stall", number), Client: Owner,
		Attributes: []attribute.KeyValue{
			semconv.WindowKindKey.String("epoch"), semconv.TrainingEpochIndexKey.Int(number),
		},
	}
	failed := emit.Event{
		ID: fmt.Sprint("failed", number), Name: semconv.DiskHealthEvent.Name, Time: end.Add(-Length / 2),
		Severity: emit.Error, Body: Disk + " is failing: replace it",
		Attributes: []attribute.KeyValue{
			semconv.HwIDKey.String("disk-of-the-past"), semconv.SystemDeviceNameKey.String(Disk),
		},
	}
	for _, e := range []*emit.Event{&failed, &slow} {
		w.AddEntry(store.Entry{Kind: store.Event, At: e.Time, Client: e.Client, Text: e.JSON()})
	}
}

// addWindow adds an epoch that ends at a time.
func addWindow(w *store.Writer, end time.Time, number int) error {
	r := &window.Report{Window: window.Window{Kind: window.Epoch, Epoch: number, HasEpoch: true}}
	r.ID = fmt.Sprintf("past%d", number)
	r.Start.Wall, r.End.Wall, r.End.Mono = end.Add(-Length), end, Length
	r.Split, r.GPUIDs = true, []string{GPU}
	r.Busy, r.Storage = Length/4, 3*Length/4
	r.Verdict = window.StorageBound
	text, err := json.Marshal(explain.NewReport(r))
	if err == nil {
		w.AddEntry(store.Entry{Kind: store.Window, At: end, Client: Owner, Text: text})
	}
	return err
}

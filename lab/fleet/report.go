package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// report prints what was measured. It returns an error if something is missing that no counter has.
func (f *fleet) report(ctx context.Context, sending, whole time.Duration, queued int64) error {
	simulated := time.Duration(f.intervals) * f.interval
	samples, series, err := stored(ctx, f.storeURL, f.began.Add(simulated+time.Second), simulated+20*time.Minute)
	if err != nil {
		return err
	}
	refused, failed := 0.0, 0.0
	for _, g := range f.gateways {
		refused += g.sum(ctx, "otelcol_receiver_refused_metric_points_total", "")
		failed += g.sum(ctx, "otelcol_exporter_send_failed_metric_points_total", "") +
			g.sum(ctx, "otelcol_exporter_enqueue_failed_metric_points_total", "")
	}
	ignored := f.store.sum(ctx, "vm_rows_ignored_total", "")
	received := f.store.sum(ctx, "vm_tcplistener_read_bytes_total", "")
	slow, roots := f.sink.count(f.slow)
	say := func(name, format string, values ...any) {
		fmt.Printf("%-34s"+format+"\n", append([]any{name}, values...)...)
	}
	seconds := simulated.Seconds()
	say("agents", "%d", f.agents)
	say("simulated", "%v, sent in %.0f s, stored after %.0f s", simulated, sending.Seconds(), whole.Seconds())
	say("points of an agent and interval", "%.0f", float64(f.sent)/float64(f.agents*f.intervals))
	say("active series", "%d, %.0f of each agent", f.active, float64(f.active)/float64(f.agents))
	say("series stored", "%d", series)
	later := (simulated - f.interval).Hours()
	say("jobs an hour", "%.0f, with %.0f new series an hour", float64(f.jobs)/later, float64(f.made)/later)
	say("requests a simulated second", "%.0f", float64(f.wire.requests.Load())/seconds)
	compressed := float64(f.wire.compressed.Load())
	say("agents to gateways, gzip", "%.2f MB/s (%.2f before), %.2f bytes a point", compressed/1e6/seconds,
		float64(f.wire.plain.Load())/1e6/seconds, compressed/float64(max(f.sent, 1)))
	say("gateways to store", "%.2f MB/s since it started last", received/1e6/seconds)
	for _, p := range append(f.gateways[:], f.store) {
		cpu, _ := p.measure()
		say(p.name, "%.3f cores in simulated time, %.2f us a point, %.0f MB of memory at most", cpu.Seconds()/seconds,
			cpu.Seconds()*1e6/float64(max(f.sent, 1)), float64(p.peak)/1e6)
	}
	say("queues on disk, at most", "%.0f MB, now %.0f MB", float64(queued)/1e6,
		float64(size(f.folder+"/gateway-0")+size(f.folder+"/gateway-1"))/1e6)
	say("points sent", "%d; %d no gateway took; %d requests again", f.sent, f.lost, f.retry)
	say("points refused, failed, ignored", "%.0f, %.0f, %.0f", refused, failed, ignored)
	say("samples stored", "%d", samples)
	say("windows sent", "%d, %d of them slow; %d no gateway took", f.roots, len(f.slow), f.gone)
	say("windows arrived", "%d, %d of them slow", roots, slow)
	f.store.stop(syscall.SIGTERM) // writes what it has in memory
	disk := size(f.folder + "/store")
	say("store on disk", "%.0f MB, %.2f bytes a sample", float64(disk)/1e6, float64(disk)/float64(max(samples, 1)))
	missing := f.sent - samples
	say("missing, and in no counter", "%d points, %d slow windows", missing, len(f.slow)-slow)
	switch {
	case missing > 0 || missing < -f.unsure:
		return fmt.Errorf("%d points were sent and %d are stored: want as many, and up to %d more", f.sent, samples, f.unsure)
	case slow < len(f.slow):
		return fmt.Errorf("%d slow windows are missing of %d", len(f.slow)-slow, len(f.slow))
	}
	return nil
}

//go:build linux && (amd64 || arm64)

package receiver

import (
	"os"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// exemplarsOf returns the exemplars of the time that jobs without a GPU lost to storage, and how many such points there
// are.
func exemplarsOf(all pmetric.Metrics) (list []pmetric.Exemplar, points int) {
	for _, r := range all.ResourceMetrics().All() {
		for _, s := range r.ScopeMetrics().All() {
			for _, m := range s.Metrics().All() {
				if m.Name() != "stallspan.job.stall.time" {
					continue
				}
				for _, p := range m.Sum().DataPoints().All() {
					points++
					for _, e := range p.Exemplars().All() {
						list = append(list, e)
					}
				}
			}
		}
	}
	return list, points
}

// The time that a job lost to storage leads to the span of the slow window that ended since the last collection.
func TestExemplarsOfSlowWindows(t *testing.T) {
	c := laboratory(t)
	c.Sampling.RootPath = ""
	r := newReceiver(settings(), c)
	if err := r.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Shutdown(t.Context()) })
	const job = "this test"
	if err := r.monitor.Jobs.FollowOwn(job, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	defer r.monitor.Jobs.Unfollow(job)
	scraped := func() ([]pmetric.Exemplar, int) {
		all, _ := r.scrape(t.Context())
		return exemplarsOf(all)
	}
	eventually(t, "time of the job", func() bool { _, points := scraped(); return points == 2 })
	now := sample.Now()
	span := emit.SpanContext(trace.SpanContext{}, true)
	r.metrics.Durations.Add(&window.Report{Judgement: window.Judgement{Slow: true}, Ledger: window.Ledger{Storage: 5 * time.Second}, Window: window.Window{Kind: window.Epoch,
		Job: job, Start: sample.Stamp{Mono: now.Mono - time.Minute, Wall: now.Wall.Add(-time.Minute)}, End: now}}, span)
	got, points := scraped()
	if points != 2 || len(got) != 1 || got[0].DoubleValue() != 5 || [8]byte(got[0].SpanID()) != span.SpanID() ||
		[16]byte(got[0].TraceID()) != span.TraceID() {
		t.Errorf("got %v at %d points, want 5 s of the span %v at one of two", got, points, span)
	}
	if again, _ := scraped(); len(again) != 0 {
		t.Errorf("the next collection: got %v, want none", again)
	}
}

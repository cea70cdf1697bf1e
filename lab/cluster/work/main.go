// Work is what pods of the cluster's tests do: epochs over real files, which it shows as spans or announces.
//
//	work spans HOST:PORT     sends a span for each epoch over OTLP/gRPC, with claims about where it runs
//	work train SOCKET        announces each epoch on the socket of the API
//	work reach SOCKET        tries to announce a window and to remove the socket, once, and prints what came of it
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emulate"
	"github.com/stallspan/stallspan/internal/window"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if len(os.Args) != 3 {
		fail("want two arguments, got", os.Args[1:])
	}
	switch where := os.Args[2]; os.Args[1] {
	case "spans":
		spans(ctx, where)
	case "train":
		train(ctx, api.NewClient(where))
	case "reach":
		reach(ctx, where)
	default:
		fail("no such work:", os.Args[1])
	}
}

func fail(what ...any) {
	fmt.Fprintln(os.Stderr, what...)
	os.Exit(1)
}

// epochs calls epoch with numbers from 0 and the work of each, until ctx ends.
func epochs(ctx context.Context, epoch func(number int, work func())) {
	files, err := emulate.Prepare(ctx, "/data", emulate.Options{Bytes: 128 << 20})
	if err != nil {
		fail(err)
	}
	defer func() { _ = files.Close() }()
	gpu := emulate.NewAccelerator("emulated")
	plan, err := emulate.Calibrate(ctx, files, gpu, 3*time.Second)
	if err != nil {
		fail(err)
	}
	for number := 0; ctx.Err() == nil; number++ {
		if err := files.Cold(); err != nil {
			fmt.Println(err)
		}
		epoch(number, func() { _ = emulate.Epoch(ctx, files, gpu, plan) })
	}
}

func spans(ctx context.Context, endpoint string) {
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(endpoint), otlptracegrpc.WithInsecure(),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: time.Second,
			MaxInterval: 5 * time.Second, MaxElapsedTime: 10 * time.Minute})) // a busy machine is slow to upgrade
	if err != nil {
		fail(err)
	}
	// None of what it claims is true, except for its name and its process.
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter, sdktrace.WithBatchTimeout(time.Second)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "work"),
			attribute.String("k8s.pod.name", "claimed"), attribute.String("k8s.namespace.name", "claimed"),
			attribute.String("container.id", "claimed"), attribute.String("host.name", "claimed"))))
	defer func() { _ = provider.Shutdown(context.WithoutCancel(ctx)) }()
	tracer := provider.Tracer("work")
	epochs(ctx, func(number int, work func()) {
		_, span := tracer.Start(ctx, fmt.Sprintf("epoch %d", number),
			trace.WithAttributes(attribute.Int("work.number", number)))
		work()
		span.End()
	})
}

func train(ctx context.Context, client *api.Client) {
	epochs(ctx, func(number int, work func()) {
		begun, err := client.Begin(ctx, api.Announcement{Kind: window.Epoch, Run: "work", Epoch: &number})
		work()
		if err != nil { // the server is being replaced
			fmt.Println(err)
			return
		}
		report, err := client.End(ctx, begun.ID)
		fmt.Println(string(report), err)
	})
}

func reach(ctx context.Context, socket string) {
	begun, err := api.NewClient(socket).Begin(ctx, api.Announcement{Kind: window.Custom, Name: "reach"})
	fmt.Printf("announced: %t %v\n", begun.ID != "", err)
	err = os.Remove(socket)
	fmt.Printf("removed: %t %v\n", err == nil, err)
}

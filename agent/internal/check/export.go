package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"

	"github.com/stallspan/stallspan/agent/internal/export"
)

// otlp is the subject of what is exported by this shell's programs.
const otlp = "OTLP"

// export tries to connect to each backend. Nothing is sent over the connections.
func (m *machine) export(ctx context.Context) []Finding {
	f := Finding{Area: Export, What: otlp}
	switch {
	case m.ExportError != nil:
		return f.as(Missing, "correct that variable, or unset it", "No telemetry is exported: %v.", m.ExportError)
	case len(m.Export) == 0:
		return f.as(Off, "export OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317",
			"No telemetry is exported: no OTLP backend is set for metrics and spans.")
	}
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	routes := routesOf(m.Export)
	found := make([]Finding, len(routes))
	var all sync.WaitGroup
	for i, targets := range routes {
		all.Go(func() { found[i] = try(ctx, targets)[0] })
	}
	all.Wait()
	return found
}

// routesOf groups the targets with the same address and proxy.
func routesOf(targets []export.Target) [][]export.Target {
	var routes [][]export.Target
	for _, t := range targets {
		i := slices.IndexFunc(routes, func(r []export.Target) bool {
			return r[0].Network == t.Network && r[0].Address == t.Address && r[0].Proxy == t.Proxy
		})
		if i < 0 {
			routes = append(routes, []export.Target{t})
		} else {
			routes[i] = append(routes[i], t)
		}
	}
	return routes
}

// try connects once for all signals of a route.
func try(ctx context.Context, targets []export.Target) []Finding {
	t := targets[0]
	var signals []string
	for _, target := range targets {
		signals = append(signals, target.Signal)
	}
	f := Finding{Area: Export, What: otlp,
		Details: map[string]any{"signals": signals, "address": t.Address, "proxy": t.Proxy, "variable": t.Variable}}
	what := upper(list(signals))
	if t.Network == "" {
		return f.as(Seen, "", "%s go to the target in %s, which was not tried: it is not a plain address.", what, t.Variable)
	}
	network, address, via := t.Network, t.Address, ""
	if t.Proxy != "" {
		network, address, via = "tcp", t.Proxy, " through the proxy "+t.Proxy
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return f.as(Missing, "start the backend there, or set "+t.Variable+" to where it is",
			"%s go to %s%s, but %s: they will be dropped.", what, t.Address, via, connectError(err))
	}
	_ = conn.Close()
	return f.as(Seen, "", "%s go to %s%s, which accepts connections; nothing was sent.", what, t.Address, via)
}

// connectError explains why there is no connection.
func connectError(err error) string {
	var name *net.DNSError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "the name does not resolve"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("nothing answers within %v", maxCall)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = cmp.Or(op.Err, err)
	}
	return "there is no connection (" + reason(err) + ")"
}

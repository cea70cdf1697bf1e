package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Target is where one kind of telemetry goes.
type Target struct {
	Signal   string // "traces", "metrics"
	Variable string // that says so
	Network  string // "tcp" or "unix"; "" where the backend is not found by a plain address
	Address  string // as net.Dial takes it; "" without a network
	Proxy    string // the address of the proxy that is asked instead; "" for none
}

// export tries to connect to each backend. Nothing is sent over the connections.
func (m *machine) export(ctx context.Context) []Finding {
	f := Finding{Area: Export, What: "OTLP"}
	switch {
	case m.ExportError != nil:
		f.State = Missing
		f.Says = "Stallspan refuses to send anything: " + m.ExportError.Error() + "."
		f.Fix = "correct that variable, or unset it"
		return []Finding{f}
	case len(m.Export) == 0:
		f.State = Off
		f.Says = "Nothing leaves this machine: reports are printed, and no OTLP backend is set for metrics and spans."
		f.Fix = "export OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317"
		return []Finding{f}
	}
	ctx, cancel := context.WithTimeout(ctx, mostCall)
	defer cancel()
	routes := together(m.Export)
	found := make([]Finding, len(routes))
	var all sync.WaitGroup
	for i, targets := range routes {
		all.Go(func() { found[i] = try(ctx, targets) })
	}
	all.Wait()
	return found
}

// together groups the targets that take the same way.
func together(targets []Target) [][]Target {
	var routes [][]Target
	for _, t := range targets {
		i := slices.IndexFunc(routes, func(r []Target) bool {
			return r[0].Network == t.Network && r[0].Address == t.Address && r[0].Proxy == t.Proxy
		})
		if i < 0 {
			routes = append(routes, []Target{t})
		} else {
			routes[i] = append(routes[i], t)
		}
	}
	return routes
}

// try connects, for all signals of one route.
func try(ctx context.Context, targets []Target) Finding {
	t := targets[0]
	var signals []string
	for _, target := range targets {
		signals = append(signals, target.Signal)
	}
	f := Finding{Area: Export, What: "OTLP", State: Seen,
		Details: map[string]any{"signals": signals, "address": t.Address, "proxy": t.Proxy, "variable": t.Variable}}
	what := sentence(list(signals))
	if t.Network == "" {
		f.Says = fmt.Sprintf("%s go where %s says, which was not tried: it is no plain address.", what, t.Variable)
		return f
	}
	network, address, via := t.Network, t.Address, ""
	if t.Proxy != "" {
		network, address, via = "tcp", t.Proxy, fmt.Sprintf(" through the proxy %s", t.Proxy)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err == nil {
		_ = conn.Close()
		f.Says = fmt.Sprintf("%s go to %s%s, where something listens; nothing was sent to it now.", what, t.Address, via)
		return f
	}
	f.State = Missing
	f.Says = fmt.Sprintf("%s go to %s%s, and %s: what is not taken in time is lost.", what, t.Address, via, deaf(err))
	f.Fix = fmt.Sprintf("start the backend there, or set %s to where it is", t.Variable)
	return f
}

// deaf says why there was no connection.
func deaf(err error) string {
	var name *net.DNSError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "that name is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("nothing answers within %v", mostCall)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = cmp.Or(op.Err, err)
	}
	return "there is no connection (" + reason(err) + ")"
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

package export

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// signal is one of the kinds of telemetry that leave, as the names of variables spell it.
type signal string

const (
	traces  signal = "TRACES"
	metrics signal = "METRICS"
	logs    signal = "LOGS"
)

// lookup is the value of a variable; an empty one counts as unset, as OpenTelemetry has it.
func lookup(variable string) string { return strings.TrimSpace(os.Getenv(variable)) }

// variables are those that may hold an exporter's setting, the general one first; the later one wins.
func (s signal) variables(setting string) [2]string {
	return [2]string{"OTEL_EXPORTER_OTLP_" + setting, "OTEL_EXPORTER_OTLP_" + string(s) + "_" + setting}
}

// setting is the value that holds for this signal, and the variable that it comes from.
func (s signal) setting(name string) (value, variable string) {
	for _, v := range s.variables(name) {
		if found := lookup(v); found != "" {
			value, variable = found, v
		}
	}
	return value, variable
}

// each calls check for every variable that is set, in force or not: the SDK reads them all, and complains of them all.
func (s signal) each(setting string, check func(variable, value string) error) error {
	for _, variable := range s.variables(setting) {
		if value := lookup(variable); value != "" {
			if err := check(variable, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted says whether the signal leaves at all.
func (s signal) wanted() (bool, error) {
	endpoint, _ := s.setting("ENDPOINT")
	if endpoint == "" || strings.EqualFold(lookup("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	variable := "OTEL_" + string(s) + "_EXPORTER"
	switch value := lookup(variable); strings.ToLower(value) {
	case "", "otlp":
		return true, nil
	case "none":
		return false, nil
	default:
		return false, fmt.Errorf("%s is %.40q: otlp and none are possible", variable, value)
	}
}

// checkEndpoint accepts what the exporter of this protocol understands. A gRPC target may lack the scheme, and may
// have one of gRPC's own ("dns:///backend:4317", "unix:///run/otlp.sock").
func checkEndpoint(protocol string) func(variable, value string) error {
	return func(variable, value string) error {
		u, err := url.Parse(value)
		isHTTP := err == nil && (strings.EqualFold(u.Scheme, "http") || strings.EqualFold(u.Scheme, "https"))
		if isHTTP && u.Hostname() != "" || protocol == protocolGRPC && err == nil && !isHTTP {
			return nil
		}
		port := "4317"
		if protocol == protocolHTTP {
			port = "4318"
		}
		return fmt.Errorf("%s is %.80q: write it like http://localhost:%s", variable, value, port)
	}
}

// checkHeaders never shows the value: it holds keys.
func checkHeaders(variable, value string) error {
	for i, pair := range strings.Split(value, ",") {
		name, text, found := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(text); err != nil || !found || !isToken(strings.TrimSpace(name)) {
			return fmt.Errorf("%s: header %d is not of the form name=value, with %%20 for a space", variable, i+1)
		}
	}
	return nil
}

// isToken says whether s can be the name of a header (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	const also = "!#$%&'*+-.^_`|~"
	for _, c := range s {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune(also, c) {
			return false
		}
	}
	return s != ""
}

func checkCompression(variable, value string) error {
	if value != "gzip" && value != "none" {
		return fmt.Errorf("%s is %.40q: gzip and none are possible", variable, value)
	}
	return nil
}

// longestSetting bounds durations: more milliseconds than this overflow, and nobody waits for so long.
const longestSetting = 365 * 24 * time.Hour

// milliseconds reads a duration as OpenTelemetry writes them.
func milliseconds(variable, value string, least int64) (time.Duration, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > longestSetting.Milliseconds() {
		return 0, fmt.Errorf("%s is %.40q: give whole milliseconds, at least %d", variable, value, least)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// checkSampler refuses what the SDK would refuse.
func checkSampler() error {
	const variable, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	switch value := lookup(variable); strings.ToLower(value) {
	case "", "always_on", "always_off", "parentbased_always_on", "parentbased_always_off":
		return nil
	case "traceidratio", "parentbased_traceidratio":
		given := lookup(argument)
		ratio, err := strconv.ParseFloat(given, 64)
		if given == "" || err == nil && ratio >= 0 && ratio <= 1 {
			return nil
		}
		return fmt.Errorf("%s is %.40q: give a number from 0 to 1", argument, given)
	default:
		return fmt.Errorf("%s is %.40q: always_on, always_off and traceidratio are possible, each also after parentbased_",
			variable, value)
	}
}

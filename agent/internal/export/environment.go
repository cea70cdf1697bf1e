package export

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

// signal is a kind of telemetry, spelled as in the names of environment variables.
type signal string

const (
	traces  signal = "TRACES"
	metrics signal = "METRICS"
	logs    signal = "LOGS"
)

// The protocols of OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	protocolGRPC = "grpc" // our default
	protocolHTTP = "http/protobuf"
)

// otlp is the value of OTEL_*_EXPORTER that is possible.
const otlp = "otlp"

// lookup returns the value of a variable. An empty variable counts as unset, as OpenTelemetry specifies.
func lookup(variable string) string { return strings.TrimSpace(os.Getenv(variable)) }

// setting returns the OTLP setting of this signal and the variable that it comes from. The signal's own variable wins.
func (s signal) setting(name string) (value, variable string) {
	general, own := "OTEL_EXPORTER_OTLP_"+name, "OTEL_EXPORTER_OTLP_"+string(s)+"_"+name
	if value = lookup(own); value != "" {
		return value, own
	}
	return lookup(general), general
}

// exported reports whether the environment selects OTLP for the signal, or else which other exporter in spite of an
// endpoint. Without one, the variables are meant for another program.
func (s signal) exported() (on bool, other string) {
	if endpoint, _ := s.setting("ENDPOINT"); endpoint == "" || strings.EqualFold(lookup("OTEL_SDK_DISABLED"), "true") {
		return false, ""
	}
	switch name := cmp.Or(strings.ToLower(lookup(s.exporterVariable())), otlp); name {
	case otlp:
		return true, ""
	case "none":
		return false, ""
	default:
		return false, name
	}
}

// lower returns the signal as a word of a sentence.
func (s signal) lower() string { return strings.ToLower(string(s)) }

func (s signal) exporterVariable() string { return "OTEL_" + string(s) + "_EXPORTER" }

// protocol returns the OTLP protocol of the signal.
func (s signal) protocol() (string, error) {
	value, variable := s.setting("PROTOCOL")
	switch protocol := cmp.Or(strings.ToLower(value), protocolGRPC); protocol {
	case protocolGRPC, protocolHTTP:
		return protocol, nil
	default:
		return "", fmt.Errorf("%s is %.40q: set it to %s or %s", variable, value, protocolGRPC, protocolHTTP)
	}
}

// reportIgnored reports OTLP settings of the signal that the SDK ignores without an error, and a host without a port,
// for which gRPC takes 443: any word is one.
func (s signal) reportIgnored(report func(line string)) {
	endpoint, endpointVariable := s.setting("ENDPOINT")
	ca, caVariable := s.setting("CERTIFICATE")
	certificate, certificateVariable := s.setting("CLIENT_CERTIFICATE")
	key, keyVariable := s.setting("CLIENT_KEY")
	if value, variable := s.setting("COMPRESSION"); value != "" && value != "gzip" && value != "none" {
		report(fmt.Sprintf("%s is %.40q and ignored: set it to gzip or none", variable, value))
	}
	switch {
	case certificate != "" && key == "":
		report(fmt.Sprintf("%s is ignored: set %s, too", certificateVariable, keyVariable))
	case certificate == "" && key != "":
		report(fmt.Sprintf("%s is ignored: set %s, too", keyVariable, certificateVariable))
	}
	if protocol, _ := s.protocol(); protocol != protocolGRPC { // over HTTP, the rest is an error
		return
	}
	if ca != "" && strings.HasPrefix(strings.ToLower(endpoint), "http:") {
		report(fmt.Sprintf("%s is ignored: %s begins with http:, which is not encrypted", caVariable, endpointVariable))
	}
	if !strings.Contains(endpoint, ":") {
		report(fmt.Sprintf("%s is %.80q, without a port, so 443 is tried: write it like http://localhost:4317",
			endpointVariable, withoutUser(endpoint)))
	}
}

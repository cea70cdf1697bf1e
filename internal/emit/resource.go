package emit

import (
	"crypto/rand"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/semconv"
)

// serviceName is the default of service.name.
const serviceName = "stallspan"

// Resource returns the resource attributes of this program and its machine, for all signals of an output. Each call
// makes a new service instance. root is the folder that is the host's "/".
func Resource(root string) []attribute.KeyValue {
	l := list{
		semconv.ServiceNameKey.String(serviceName),
		semconv.ServiceInstanceIDKey.String(randomUUID()),
	}
	l.text(semconv.HostIDKey, locate.HostID(root))
	l.text(semconv.HostNameKey, locate.HostName(root))
	return l
}

// OwnProcess returns the resource attribute of this process, which only spans have.
func OwnProcess() attribute.KeyValue { return semconv.ProcessPIDKey.Int(os.Getpid()) }

// randomUUID returns a UUID of version 4 (RFC 9562).
func randomUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

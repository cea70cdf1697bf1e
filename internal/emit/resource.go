package emit

import (
	"crypto/rand"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/host"
	"github.com/stallspan/stallspan/semconv"
)

// serviceName is who emits, where nobody says otherwise.
const serviceName = "stallspan"

// Resource describes who emits and on which machine, for all signals of a door. Each call is another instance of the
// service. root is the folder that stands for the machine's "/". What is not known is left out.
func Resource(root string) []attribute.KeyValue {
	l := list{
		semconv.ServiceNameKey.String(serviceName),
		semconv.ServiceInstanceIDKey.String(randomUUID()),
	}
	l.text(semconv.HostIDKey, host.ID(root))
	l.text(semconv.HostNameKey, host.Name(root))
	return l
}

// OwnProcess is what spans alone add to the resource: the process that made them.
func OwnProcess() attribute.KeyValue { return semconv.ProcessPIDKey.Int(os.Getpid()) }

// randomUUID is a UUID of version 4 (RFC 9562).
func randomUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, says its package
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

package emit

import (
	"os"

	"github.com/google/uuid"
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
		semconv.ServiceInstanceIDKey.String(uuid.NewString()),
	}
	l.text(semconv.HostIDKey, locate.HostID(root))
	l.text(semconv.HostNameKey, locate.HostName(root))
	return l
}

// OwnProcess returns the resource attribute of this process, which only spans have.
func OwnProcess() attribute.KeyValue { return semconv.ProcessPIDKey.Int(os.Getpid()) }

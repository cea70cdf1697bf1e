package identity

import (
	"bytes"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/semconv"
)

// Bounds of an environment, in bytes.
const (
	maxEnvironment = 1 << 20
	maxVariable    = 16 << 10 // longer ones are left out
)

// claims are what a process says of itself in its environment. Other variables are not kept: they may be secrets.
type claims struct {
	job, step, jobName string      // SLURM_JOB_ID, SLURM_STEP_ID, SLURM_JOB_NAME
	rank, localRank    string      // RANK, LOCAL_RANK
	service            string      // OTEL_SERVICE_NAME
	resource           []Attribute // OTEL_RESOURCE_ATTRIBUTES
	program            string      // the path of its program: another one has an environment of its own
}

// environment reads the claims of a process, as they were at its start. They are empty without the right to read them.
// It reports whether the process has an environment: during execve(2) it has none yet.
func environment(proc string, pid int) (c claims, some bool) {
	file, err := os.Open(proc + "/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return claims{}, true
	}
	defer func() { _ = file.Close() }()
	r := &io.LimitedReader{R: file, N: maxEnvironment}
	return parseEnvironment(r), r.N < maxEnvironment
}

// parseEnvironment reads variables. Each ends with a zero byte. The first of a name counts, as for getenv(3).
func parseEnvironment(r io.Reader) (c claims) {
	buf := make([]byte, maxVariable)
	defer clear(buf) // it had all variables
	seen := make(map[string]bool, len(variables))
	filled, skip := 0, false
	for {
		n, err := r.Read(buf[filled:])
		filled += n
		rest := buf[:filled]
		for {
			variable, after, whole := bytes.Cut(rest, []byte{0})
			if !whole {
				break
			}
			if !skip {
				c.take(variable, seen)
			}
			skip, rest = false, after
		}
		if skip || len(rest) == len(buf) {
			skip, rest = true, nil
		}
		filled = copy(buf, rest)
		if err != nil {
			return c
		}
	}
}

// variables are what is read, and where it goes.
var variables = map[string]func(c *claims, value string){
	"SLURM_JOB_ID":             func(c *claims, value string) { c.job = number(value) },
	"SLURM_STEP_ID":            func(c *claims, value string) { c.step = number(value) },
	"SLURM_JOB_NAME":           func(c *claims, value string) { c.jobName = clean(value, maxValue) },
	"RANK":                     func(c *claims, value string) { c.rank = number(value) },
	"LOCAL_RANK":               func(c *claims, value string) { c.localRank = number(value) },
	"OTEL_SERVICE_NAME":        func(c *claims, value string) { c.service = clean(value, maxValue) },
	"OTEL_RESOURCE_ATTRIBUTES": func(c *claims, value string) { c.resource = parseResource(value) },
}

func (c *claims) take(variable []byte, seen map[string]bool) {
	key, value, ok := bytes.Cut(variable, []byte{'='})
	if take := variables[string(key)]; ok && take != nil && !seen[string(key)] {
		seen[string(key)] = true
		take(c, string(value))
	}
}

// number returns text if it is a number.
func number(text string) string {
	if isNumber(text) {
		return text
	}
	return ""
}

// parseResource parses OTEL_RESOURCE_ATTRIBUTES: key=value,key=value, with percent-encoded values (the specification's
// resource/sdk.md).
func parseResource(text string) (all []Attribute) {
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || len(all) == maxAttributes {
			continue
		}
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil {
			continue
		}
		all = append(all, Attribute{Key: strings.TrimSpace(key), Value: decoded, Claimed: true})
	}
	return all
}

// ofOthers are the beginnings of keys that say who a job is, or where it runs. Jobs do not decide these.
var ofOthers = [...]string{
	"cloud.", "container.", "host.", "hw.", "k8s.", "os.", "process.", "slurm.", "stallspan.", "system.", "systemd.",
	"telemetry.", "user.",
}

// mayClaim reports whether a process may say this of itself.
func mayClaim(key string) bool {
	ours := func(prefix string) bool { return strings.HasPrefix(strings.ToLower(key), prefix) }
	return key != "" && len(key) <= maxKey && !strings.ContainsFunc(key, isOdd) && !slices.ContainsFunc(ofOthers[:], ours)
}

// isOdd reports whether a character is not one of those that keys have.
func isOdd(r rune) bool {
	plain := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !plain && !strings.ContainsRune("._-/", r)
}

// claims adds what a process says of itself. at is what its cgroups say.
func (l *list) claims(c *claims, at *place) {
	if at.job == "" && c.job != "" {
		l.add(semconv.SlurmJobIDKey, c.job, true)
		l.add(semconv.SlurmStepIDKey, c.step, true)
	}
	if at.job == "" || at.job == c.job {
		l.add(semconv.SlurmJobNameKey, c.jobName, true)
	}
	l.add(semconv.NvDlRankKey, c.rank, true)
	l.add(semconv.NvDlLocalRankKey, c.localRank, true)
	l.add(semconv.ServiceNameKey, c.service, true)
	l.resource(c.resource, at)
}

const podPrefix = "k8s."

// resource adds claimed attributes of a resource. In a pod whose name is not known from outside, it may name itself,
// but not with another pod's UID.
func (l *list) resource(all []Attribute, at *place) {
	named := func(a Attribute) bool { return a.Key == string(semconv.K8SPodNameKey) && !a.Claimed }
	other := func(a Attribute) bool { return a.Key == string(semconv.K8SPodUIDKey) && a.Value != at.pod }
	ofPod := at.pod != "" && !slices.ContainsFunc(*l, named) && !slices.ContainsFunc(all, other)
	for _, a := range all {
		if mayClaim(a.Key) || ofPod && strings.HasPrefix(a.Key, podPrefix) && mayClaim(strings.TrimPrefix(a.Key, podPrefix)) {
			l.add(attribute.Key(a.Key), a.Value, true)
		}
	}
}

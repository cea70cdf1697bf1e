package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is far more than any step needs on a busy machine.
const timeout = 3 * time.Minute

// passwordOfTests is what Prometheus shows to agents.
const passwordOfTests = "open sesame"

// cluster is the one that hack/cluster.sh started.
type cluster struct {
	t       *testing.T
	folder  string // of its files
	backend *backend
}

// command runs a command, with standard input if it is not empty.
func (c cluster) command(input, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), timeout)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &out
	err := cmd.Run()
	return out.String(), err
}

// must runs a command that has to succeed.
func (c cluster) must(name string, args ...string) string {
	c.t.Helper()
	out, err := c.command("", name, args...)
	if err != nil {
		c.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return out
}

// helm installs or upgrades a release of the chart.
func (c cluster) helm(release, namespace string, values ...string) {
	c.t.Helper()
	args := []string{"upgrade", "--install", release, "../../deploy/helm/stallspan", "--namespace", namespace,
		"--wait", "--timeout", timeout.String(), "--values", "testdata/values.yaml"}
	for _, image := range []string{"collector", "agent"} {
		values = append(values, "images."+image+".tag="+os.Getenv("STALLSPAN_VERSION"))
	}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	c.must(os.Getenv("HELM"), args...)
}

// until waits until done returns true.
func (c cluster) until(what string, done func() bool) {
	c.t.Helper()
	for end := time.Now().Add(timeout); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("not within %v: %s", timeout, what)
		}
	}
}

// names gives the names of Services to the DNS server.
func (c cluster) names() {
	c.t.Helper()
	text := c.must("kubectl", "get", "services", "--all-namespaces", "-o", "jsonpath={range .items[*]}"+
		"{.spec.clusterIP} {.metadata.name}.{.metadata.namespace}.svc.cluster.local{\"\\n\"}{end}")
	if err := os.WriteFile(filepath.Join(c.folder, "hosts/services"), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// pod is a pod of lab/cluster/work.
type pod struct {
	name, namespace string
	args            []string
	user            int
	socket          bool // mounts the folder of the socket
}

func (c cluster) manifest(p pod) string {
	mount, volume := "", ""
	if p.socket {
		mount = ", {name: socket, mountPath: /run/stallspan, readOnly: true}"
		volume = fmt.Sprintf(", {name: socket, hostPath: {path: %s/socket/root, type: Directory}}", c.folder)
	}
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s}, spec: {restartPolicy: Never,
  automountServiceAccountToken: false, terminationGracePeriodSeconds: 5,
  containers: [{name: work, image: "localhost/work:test", imagePullPolicy: Never, args: [%s],
    securityContext: {runAsUser: %d}, volumeMounts: [{name: data, mountPath: /data}%s]}],
  volumes: [{name: data, emptyDir: {}}%s]}}`,
		p.name, p.namespace, strings.Join(p.args, ", "), p.user, mount, volume)
}

func (c cluster) run(p pod) {
	c.t.Helper()
	if out, err := c.command(c.manifest(p), "kubectl", "apply", "-f", "-"); err != nil {
		c.t.Fatalf("pod %s: %v\n%s", p.name, err, out)
	}
}

// log returns what a pod that ends has printed.
func (c cluster) log(p pod) string {
	c.t.Helper()
	c.run(p)
	c.must("kubectl", "-n", p.namespace, "wait", "pod/"+p.name, "--timeout", timeout.String(),
		"--for=jsonpath={.status.phase}=Succeeded")
	return c.must("kubectl", "-n", p.namespace, "logs", p.name)
}

// numbers returns the numbers of the epochs whose spans have arrived, sorted.
func (c cluster) numbers() (all []int64) {
	for _, s := range c.backend.found(func(s span) bool { return s.attrs["work.number"] != nil }) {
		if n, ok := s.attrs["work.number"].(int64); ok {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// more waits for the spans of two more epochs, and of a window that is announced from now on.
func (c cluster) more(after string) {
	c.t.Helper()
	spans, windows := len(c.numbers()), len(c.backend.found(announced))
	c.until("spans of two more epochs "+after, func() bool { return len(c.numbers()) > spans+1 })
	c.until("a span of an announced epoch "+after, func() bool { return len(c.backend.found(announced)) > windows })
}

func announced(s span) bool {
	return s.attrs["stallspan.window.source"] == "announced" && s.attrs["stallspan.window.kind"] == "epoch" &&
		s.attrs["stallspan.window.unfinished"] == nil
}

// pairOfTests returns a certificate and its key, in PEM.
func pairOfTests(t *testing.T) (public, private []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	text, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// webConfig makes the Secret with the user of agents' ports for Prometheus.
func (c cluster) webConfig(namespace string) {
	c.t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(passwordOfTests), bcrypt.MinCost)
	if err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.t.TempDir(), "web.yaml")
	public, private := pairOfTests(c.t)
	text := fmt.Appendf(nil, "basic_auth_users: {prometheus: %q}\ntls_server_config: {cert: %q, key: %q}\n", hash, public,
		private)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.must("kubectl", "-n", namespace, "create", "secret", "generic", "web-config", "--from-file", path)
}

// agentPod is a pod of an agent, as the cluster knows it.
type agentPod struct{ name, uid, address string }

// agent returns the pod of the agent in a namespace, when there is one alone.
func (c cluster) agent(namespace string) (a agentPod) {
	c.t.Helper()
	c.until("one pod of an agent", func() bool {
		out := strings.Fields(c.must("kubectl", "-n", namespace, "get", "pods", "-o",
			"jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.podIP}{\"\\n\"}{end}"))
		if len(out) == 3 {
			a = agentPod{out[0], out[1], out[2]}
		}
		return len(out) == 3
	})
	return a
}

// scraped tests the port of an agent as Prometheus uses it.
func (c cluster) scraped(namespace string) {
	c.t.Helper()
	a := c.agent(namespace)
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the certificate has no address of a pod
	}}
	get := func(password string) (status int, text string) {
		request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "https://"+a.address+":9464/metrics", nil)
		if err != nil {
			c.t.Fatal(err)
		}
		request.SetBasicAuth("prometheus", password)
		request.Close = true // so that no goroutine waits for the next one
		response, err := client.Do(request)
		if err != nil {
			c.t.Fatalf("the port for Prometheus of the pod %s: %v", a.name, err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if status, _ := get("another"); status != http.StatusUnauthorized {
		c.t.Errorf("with a wrong password: got %d, want 401", status)
	}
	status, text := get(passwordOfTests)
	for _, want := range []string{"stallspan_gpu_busy_time_seconds_total{", `k8s_pod_name="` + a.name + `"`,
		`k8s_pod_uid="` + a.uid + `"`, `k8s_node_name="node-1"`} {
		if status != http.StatusOK || !strings.Contains(text, want) {
			c.t.Errorf("with the password: got %d %s, want %s", status, text, want)
		}
	}
}

// The steps build on one another: there is one cluster.
func TestChart(t *testing.T) {
	folder := os.Getenv("STALLSPAN_CLUSTER")
	if folder == "" {
		t.Skip("make cluster starts a cluster and runs this test")
	}
	c := cluster{t: t, folder: folder, backend: serve(t, os.Getenv("STALLSPAN_NODE_ADDRESS")+":4317")}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, args := range []string{"get pods --all-namespaces -o wide", "get events --all-namespaces",
			"-n apps logs spans --tail=20", "-n privileged logs train --tail=20",
			"-n stallspan logs daemonset/stallspan-node --tail=40", "-n stallspan logs deployment/stallspan-gateway --tail=40"} {
			command := exec.CommandContext(context.WithoutCancel(t.Context()), "kubectl", strings.Fields(args)...)
			out, err := command.CombinedOutput()
			t.Logf("kubectl %s: %v\n%s", args, err, out)
		}
	})
	for namespace, labels := range map[string][]string{
		"stallspan":  {"pod-security.kubernetes.io/enforce=privileged"},
		"privileged": {"pod-security.kubernetes.io/enforce=privileged", "stallspan-spans=allowed"},
		"apps":       {"pod-security.kubernetes.io/enforce=baseline", "stallspan-spans=allowed"},
		"agents":     {"pod-security.kubernetes.io/enforce=privileged"},
	} {
		c.must("kubectl", "create", "namespace", namespace)
		c.must("kubectl", append([]string{"label", "namespace", namespace}, labels...)...)
	}
	socket := "node.socket.hostPath=" + filepath.Join(folder, "socket")
	c.helm("stallspan", "stallspan", socket, "gateway.enabled=true")
	c.names()
	c.run(pod{name: "spans", namespace: "apps", args: []string{"spans", "stallspan.stallspan:4317"}})
	c.run(pod{name: "train", namespace: "privileged", socket: true,
		args: []string{"train", "/run/stallspan/stallspan.sock"}})
	c.more("from the start")

	t.Run("spans", func(t *testing.T) {
		for _, s := range c.backend.found(func(s span) bool { return s.attrs["work.number"] != nil }) {
			for key, want := range map[string]any{"k8s.pod.name": "spans", "k8s.namespace.name": "apps",
				"k8s.node.name": "node-1", "k8s.cluster.name": "one-node", "service.name": "work", "host.name": nil} {
				if s.resource[key] != want {
					t.Errorf("%s, %s: got %v, want %v", s.name, key, s.resource[key], want)
				}
			}
			if id := fmt.Sprint(s.resource["container.id"]); len(id) != 64 {
				t.Errorf("%s, container.id: got %s, want the id of a container", s.name, id)
			}
			if s.attrs["stallspan.verdict"] == nil || s.attrs["stallspan.window.gpu.busy.time"] == nil {
				t.Errorf("%s: got %v, want a verdict and the time of a GPU", s.name, s.attrs)
			}
			t.Logf("%s: %v", s.name, s.attrs["stallspan.finding"])
			if scope := s.attrs["stallspan.window.scope"]; scope != "container" {
				t.Errorf("%s: got the scope %v, want container", s.name, scope)
			}
		}
	})
	t.Run("verdicts", func(t *testing.T) {
		c := c
		c.t = t
		c.until("a verdict that is not unknown", func() bool {
			return len(c.backend.found(func(s span) bool {
				return s.attrs["work.number"] != nil && s.attrs["stallspan.verdict"] != "unknown"
			})) > 0
		})
	})
	t.Run("announced", func(t *testing.T) {
		for _, s := range c.backend.found(announced) {
			if s.resource["k8s.node.name"] != "node-1" || s.attrs["stallspan.window.scope"] != "host" {
				t.Errorf("got %v with %v, want the node and the scope host", s.resource, s.attrs)
			}
			t.Logf("announced: %v, %v", s.attrs["stallspan.window.scope"], s.attrs["stallspan.finding"])
		}
	})
	t.Run("metrics", func(t *testing.T) {
		c := c
		c.t = t
		node := map[string]any{"k8s.node.name": "node-1", "k8s.cluster.name": "one-node", "service.name": "stallspan"}
		c.until("busy time of a GPU", func() bool { return c.backend.has("stallspan.gpu.busy.time", node) })
		c.until("operations of a disk", func() bool { return c.backend.has("system.disk.operations", node) })
		c.until("durations of the pod's spans", func() bool {
			return c.backend.has("traces.span.metrics.duration",
				map[string]any{"k8s.pod.name": "spans", "k8s.namespace.name": "apps"})
		})
		if c.backend.has("traces.span.metrics", map[string]any{"k8s.pod.name": "claimed"}) {
			t.Error("got metrics of the pod that another claims to be, want none")
		}
	})
	t.Run("refused", func(t *testing.T) {
		c := c
		c.t = t
		reach := []string{"reach", "/run/stallspan/stallspan.sock"}
		refused := c.manifest(pod{name: "reach", namespace: "apps", args: reach, socket: true})
		out, err := c.command(refused, "kubectl", "apply", "-f", "-")
		if err == nil || !strings.Contains(out, "hostPath volumes") {
			t.Errorf("a pod with the socket in a namespace of level baseline: got %v, %s, want it refused", err, out)
		}
		for _, p := range []struct {
			pod
			want string // of the lines
		}{
			{pod{name: "no-mount", namespace: "apps", args: reach}, "no such file"},
			{pod{name: "other-user", namespace: "privileged", args: reach, user: 1000, socket: true}, "permission denied"},
		} {
			if got := c.log(p.pod); !strings.Contains(got, "announced: false") || !strings.Contains(got, p.want) ||
				!strings.Contains(got, "removed: false") {
				t.Errorf("%s: got %s, want no window, and %q", p.name, got, p.want)
			}
		}
		got := c.log(pod{name: "root", namespace: "privileged", args: reach, socket: true})
		if !strings.Contains(got, "announced: true") || !strings.Contains(got, "read-only file system") {
			t.Errorf("root with the socket: got %s, want a window, and a socket that stays", got)
		}
	})
	t.Run("upgrade", func(t *testing.T) {
		c := c
		c.t = t
		before := c.must("kubectl", "-n", "stallspan", "get", "pods", "-o", "name")
		c.helm("stallspan", "stallspan", socket, "gateway.enabled=true", "gateway.podAnnotations.upgraded=yes",
			"node.hostPID=true", "node.collectorConfig.receivers.stallspan.collection_interval=2s")
		c.until("all pods are new", func() bool {
			after := c.must("kubectl", "-n", "stallspan", "get", "pods", "-o", "name")
			return !slices.ContainsFunc(strings.Fields(before), func(name string) bool { return strings.Contains(after, name) })
		})
		c.more("after the upgrade")
		c.until("a window with the scope of its caller", func() bool {
			return len(c.backend.found(func(s span) bool {
				return announced(s) && s.attrs["stallspan.window.scope"] == "process" && s.attrs["stallspan.verdict"] != "unknown"
			})) > 0
		})
		all := c.numbers()
		last := all[len(all)-1]
		c.until("all spans until then", func() bool {
			all := slices.Compact(c.numbers())
			return slices.Index(all, last) == int(last)
		})
	})
	t.Run("killed", func(t *testing.T) {
		c := c
		c.t = t
		c.must("kubectl", "-n", "stallspan", "delete", "pod", "-l", "app.kubernetes.io/component=node", "--grace-period=0",
			"--force")
		c.must("kubectl", "-n", "stallspan", "rollout", "status", "daemonset/stallspan-node", "--timeout", timeout.String())
		c.more("after the pod was killed")
	})
	t.Run("agent", func(t *testing.T) {
		c := c
		c.t = t
		c.webConfig("agents")
		values := []string{"mode=agent", "clusterName=of-agents", "node.socket.hostPath=" + filepath.Join(folder, "agent"),
			"prometheus.scrape=true", "prometheus.webConfigSecret=web-config"}
		c.helm("stallspan", "agents", values...)
		c.until("busy time of a GPU", func() bool {
			return c.backend.has("stallspan.gpu.busy.time", map[string]any{"k8s.cluster.name": "of-agents"})
		})
		c.scraped("agents")
		c.helm("stallspan", "agents", append(values, "node.readOtherUsers=false", "clusterName=confined-agents")...)
		c.until("own metrics with the pod", func() bool {
			return c.backend.has("stallspan.reading.late", map[string]any{"k8s.cluster.name": "confined-agents",
				"k8s.pod.name": c.agent("agents").name, "k8s.namespace.name": "agents"})
		})
		c.scraped("agents")
	})
	t.Run("unprivileged", func(t *testing.T) {
		c := c
		c.t = t
		c.helm("stallspan", "agents", "clusterName=unprivileged", "node.readOtherUsers=false")
		c.until("operations of a disk", func() bool {
			return c.backend.has("system.disk.operations", map[string]any{"k8s.cluster.name": "unprivileged"})
		})
	})
}

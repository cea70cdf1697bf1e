package chart

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

var update = flag.Bool("update", false, "write the manifests again")

const (
	folder    = "../../deploy/helm/stallspan"
	namespace = "stallspan"
	version   = "1.34.0" // helm does not know one if it is built with go build
)

// manifests are the plain manifests in deploy/kubernetes, made from values in the chart's ci folder.
const manifests = "../../deploy/kubernetes"

var plain = []string{"agent", "collector"}

// run runs helm and returns what it prints.
func run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, messages bytes.Buffer
	command := exec.CommandContext(t.Context(), "../../hack/tool.sh", append([]string{"helm"}, args...)...)
	command.Stdout, command.Stderr = &out, &messages
	err = command.Run()
	return out.String(), messages.String(), err
}

// template renders the chart with args.
func template(t *testing.T, args ...string) string {
	t.Helper()
	return templateOf(t, folder, args...)
}

// templateOf renders a chart, which is a folder or an archive.
func templateOf(t *testing.T, chart string, args ...string) string {
	t.Helper()
	stdout, stderr, err := run(t, append([]string{"template", "stallspan", chart, "--namespace", namespace,
		"--kube-version", version}, args...)...)
	if err != nil {
		t.Fatalf("helm template %v: %v\n%s", args, err, stderr)
	}
	return stdout
}

// cases returns the names of the values in the chart's ci folder.
func cases(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(folder + "/ci/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("values in %s/ci: got %v, %v, want some", folder, files, err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".yaml"))
	}
	return names
}

func values(name string) string { return filepath.Join(folder, "ci", name+".yaml") }

func TestLint(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			if stdout, stderr, err := run(t, "lint", "--strict", "--values", values(name), folder); err != nil {
				t.Errorf("helm lint: got %v, want no error\n%s%s", err, stdout, stderr)
			}
		})
	}
}

// pack packs the chart and returns the path of the archive.
func pack(t *testing.T, number, images string) string {
	t.Helper()
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), "../../hack/chart.sh", folder, number, images)
	command.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("hack/chart.sh: %v\n%s", err, out)
	}
	return filepath.Join(folder, "stallspan-"+number+".tgz")
}

// A packed chart makes the same objects as its folder, is the same when it is packed again, and has the version of the
// images.
func TestPackage(t *testing.T) {
	text, err := os.ReadFile(folder + "/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`(?m)^version: (.+)$`).FindStringSubmatch(string(text))[1]
	first := pack(t, number, number)
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // helm writes seconds
	one, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := os.ReadFile(pack(t, number, number)); err != nil || !bytes.Equal(one, other) {
		t.Errorf("packed again: got other bytes (%v), want the same", err)
	}
	if got := templateOf(t, first, "--values", values("collector")); got != template(t, "--values", values("collector")) {
		t.Errorf("got another manifest from the packed chart than from its folder:\n%s", got)
	}
	released := pack(t, "1.2.3+f00", "1.2.3")
	got := templateOf(t, released, "--values", values("collector"))
	if !strings.Contains(got, "image: stallspan/otelcol-stallspan:1.2.3\n") {
		t.Errorf("got no image with the version 1.2.3:\n%s", got)
	}
	// What Artifact Hub shows.
	shown, _, err := run(t, "show", "chart", released)
	for _, want := range []string{`image: "stallspan/otelcol-stallspan:1.2.3"`, `image: "stallspan/stallspan:1.2.3"`,
		`artifacthub.io/prerelease: "false"`, "icon: https://", "maintainers:"} {
		if err != nil || !strings.Contains(shown, want) {
			t.Errorf("helm show chart: got %v and no %s in\n%s", err, want, shown)
		}
	}
}

// What the chart makes is as reviewed. The plain manifests are two of these cases.
func TestManifests(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			path, text := filepath.Join("testdata", name+".yaml"), template(t, "--values", values(name))
			if slices.Contains(plain, name) {
				text = template(t, "--values", values(name), "--skip-tests")
				path = filepath.Join(manifests, name+".yaml")
				text = "# Generated from deploy/helm/stallspan by \"make chart UPDATE=1\"; do not edit.\n" + withoutHelm(text)
			}
			if *update {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if text != string(want) {
				t.Errorf("got another manifest than %s: run `make chart UPDATE=1` and review the difference:\n%s", path,
					difference(t, path, text))
			}
		})
	}
}

// withoutHelm leaves out the labels that only helm uses.
func withoutHelm(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		label, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if label != "helm.sh/chart" && label != "app.kubernetes.io/managed-by" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func difference(t *testing.T, path, text string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "diff", "-u", path, "-")
	command.Stdin = strings.NewReader(text)
	out, _ := command.Output() // exit code 1 means that they differ
	return string(out)
}

// objects decodes a manifest as the API server does with strict field validation: unknown and repeated keys are errors.
func objects(t *testing.T, text string) (all []runtime.Object) {
	t.Helper()
	known := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(known))
	utilruntime.Must(monitoring.AddToScheme(known))
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	for document := range strings.SplitSeq(text, "\n---\n") {
		if !strings.Contains(document, "kind:") {
			continue
		}
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("got %v, want an object of Kubernetes, from\n%s", err, document)
		}
		all = append(all, object)
	}
	return all
}

// pods returns the pod templates, by the name of their object.
func pods(all []runtime.Object) map[string]core.PodTemplateSpec {
	found := map[string]core.PodTemplateSpec{}
	for _, object := range all {
		switch o := object.(type) {
		case *apps.DaemonSet:
			found[o.Name] = o.Spec.Template
		case *apps.Deployment:
			found[o.Name] = o.Spec.Template
		case *core.Pod:
			found[o.Name] = core.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
		}
	}
	return found
}

// All pods are confined, whatever is turned on. Mounts of the node are read-only, except for the socket and the state.
func TestPodsAreConfined(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	// What the node's pods need beyond the strictest level of Pod Security. Nothing else may be refused.
	allowed := []string{"hostPath volumes", "restricted volume types", "runAsUser=0", "runAsNonRoot != true",
		"unrestricted capabilities", "non-default capabilities", "forbidden AppArmor profile"}
	for _, name := range cases(t) {
		for pod, p := range pods(objects(t, template(t, "--values", values(name)))) {
			refused := policy.AggregateCheckResults(evaluator.EvaluatePod(
				api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &p.ObjectMeta, &p.Spec))
			for _, reason := range refused.ForbiddenReasons {
				if pod != "stallspan-node" || !slices.Contains(allowed, reason) {
					t.Errorf("%s, %s: got it refused for %s (%s)", name, pod, reason, refused.ForbiddenDetail())
				}
			}
			if *p.Spec.AutomountServiceAccountToken && (pod != "stallspan-node" || strings.HasPrefix(name, "agent")) {
				t.Errorf("%s, %s: got a token of the API, want none", name, pod)
			}
			hostPaths := map[string]string{}
			for _, v := range p.Spec.Volumes {
				if v.HostPath != nil {
					hostPaths[v.Name] = v.HostPath.Path
				}
			}
			for _, c := range p.Spec.Containers {
				security := c.SecurityContext
				if !*security.ReadOnlyRootFilesystem || c.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s, %s: got a root that can be written or memory without a limit, want neither", name, pod)
				}
				if strings.HasSuffix(name, "unprivileged") && (*security.RunAsUser == 0 || len(security.Capabilities.Add) > 0) {
					t.Errorf("%s, %s: got rights %v, want none", name, pod, security)
				}
				for _, m := range c.VolumeMounts {
					path, ofNode := hostPaths[m.Name]
					if m.Name == "pod-resources" { // where the agent looks for it, wherever the kubelet has its files
						path = "/var/lib/kubelet/pod-resources"
					}
					if ofNode && m.Name != "socket" && m.Name != "state" && (!m.ReadOnly || m.MountPath != "/hostfs"+path) {
						t.Errorf("%s, %s, mount of %s: got %s, read-only %v, want /hostfs%[3]s, read-only", name, pod, path,
							m.MountPath, m.ReadOnly)
					}
				}
			}
		}
	}
}

// The kubelet's socket is mounted where the agent may connect to it, unless that is switched off.
func TestPodResources(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true},
		{[]string{"--set", "mode=agent"}, true},
		{[]string{"--set", "node.podResources.enabled=false"}, false},
		{[]string{"--set", "node.readOtherUsers=false"}, false},
	} {
		text := template(t, append([]string{"--set", "export.endpoint=backend:4317"}, c.args...)...)
		if got := strings.Count(text, "pod-resources"); (got > 0) != c.want {
			t.Errorf("%v: got it mounted: %v, want %v", c.args, got > 0, c.want)
		}
	}
}

// Each port of a pod is limited to known senders.
func TestPortsAreLimited(t *testing.T) {
	for _, name := range cases(t) {
		if name == "unprivileged" {
			continue // has no policies
		}
		all := objects(t, template(t, "--values", values(name)))
		limited := map[string]map[string]bool{}
		for _, object := range all {
			p, ok := object.(*networking.NetworkPolicy)
			if !ok {
				continue
			}
			limited[p.Name] = map[string]bool{}
			for _, rule := range p.Spec.Ingress {
				for _, port := range rule.Ports {
					limited[p.Name][port.Port.String()] = len(rule.From) > 0
				}
			}
		}
		for pod, p := range pods(all) {
			if limited[pod] == nil && pod != "stallspan-test" { // has no port
				t.Errorf("%s, %s: got no NetworkPolicy, want one", name, pod)
			}
			for _, port := range p.Spec.Containers[0].Ports {
				if !limited[pod][port.Name] {
					t.Errorf("%s, %s, port %s: got no rule with senders, want one", name, pod, port.Name)
				}
			}
		}
	}
}

// The agent has no port, unless it is scraped. Then its policy lets in the named scrapers alone, and only its user may
// read the Secret with their names.
func TestAgentScrape(t *testing.T) {
	off := objects(t, template(t, "--values", values("agent")))
	if ports := pods(off)["stallspan-node"].Spec.Containers[0].Ports; len(ports) > 0 {
		t.Errorf("without prometheus.scrape: got ports %v, want none", ports)
	}
	for name, mode := range map[string]int32{"agent-tls": 0o400, "agent-unprivileged": 0o440} {
		all := objects(t, template(t, "--values", values(name)))
		pod := pods(all)["stallspan-node"].Spec
		if ports := pod.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 9464 {
			t.Errorf("%s: got ports %v, want 9464 alone", name, ports)
		}
		secret := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == "web-config" })
		if secret < 0 || *pod.Volumes[secret].Secret.DefaultMode != mode {
			t.Fatalf("%s: got volumes %v, want web-config with the mode %o", name, pod.Volumes, mode)
		}
		group := pod.Containers[0].SecurityContext.RunAsGroup
		if mode == 0o440 && (pod.SecurityContext == nil || *pod.SecurityContext.FSGroup != *group) {
			t.Errorf("%s: got the pod's context %v, want a group that reads the Secret", name, pod.SecurityContext)
		}
		for _, object := range all {
			p, ok := object.(*networking.NetworkPolicy)
			if !ok {
				continue
			}
			if len(p.Spec.Ingress) != 1 || len(p.Spec.Ingress[0].From) != 1 || len(p.Spec.Ingress[0].Ports) != 1 ||
				p.Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "monitoring" {
				t.Errorf("%s: got who may connect %+v, want the namespace monitoring to one port", name, p.Spec.Ingress)
			}
		}
	}
}

// Values that cannot work are refused with what to do.
func TestRefused(t *testing.T) {
	endpoint := []string{"--set", "export.endpoint=backend:4317"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "export.endpoint: give host:port of a backend that takes OTLP over gRPC"},
		{[]string{"--set", "export.endpoint=http://backend:4317"}, "export/endpoint"},
		{append(endpoint, "--set", "mode=agnet"), "mode"},
		{append(endpoint, "--set", "node.tolerance=x"), "tolerance"},
		{append(endpoint, "--set", "mode=agent", "--set", "prometheus.scrape=true"),
			"prometheus.webConfigSecret: name a Secret with web.yaml"},
		{append(endpoint, "--set", "prometheus.scrape=true", "--set", "prometheus.webConfigSecret=x"),
			"prometheus.webConfigSecret: only agents ask"},
		{append(endpoint, "--set", "mode=agent", "--set", "prometheus.podMonitor.enabled=true"),
			"prometheus.podMonitor.enabled: agents have metrics to scrape with prometheus.scrape alone"},
		{append(endpoint, "--set", "serviceAccount.create=false"), "serviceAccount.name: name an existing one"},
		{append(endpoint, "--set", "images.agent.digest=latest"), "digest"},
		{append(endpoint, "--set", "node.podResources.hostPath=pod-resources"), "podResources"},
	} {
		args := append([]string{"template", "stallspan", folder, "--kube-version", version}, c.args...)
		stdout, stderr, err := run(t, args...)
		if err == nil || !strings.Contains(stderr, c.want) {
			t.Errorf("helm template %v: got %v, %s, want an error with %q\n%s", c.args, err, stderr, c.want, stdout)
		}
	}
}

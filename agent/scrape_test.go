package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

// epochSeries is a histogram whose labels are texts of a program.
const epochSeries = "stallspan_training_epoch_duration_seconds"

// scraping starts an agent with a config, in which an epoch has ended, and returns where its metrics are.
func scraping(t *testing.T, config string) (socket, address string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	socket = socketIn(t)
	agent, said := startAgent(t, socket, "--config", path)
	t.Cleanup(func() { stop(t, agent) })
	said.until(t, 1, "metrics for Prometheus are at ")
	found := regexp.MustCompile(`metrics for Prometheus are at (\S+)`).FindStringSubmatch(said.String())
	client, epoch := api.NewClient(socket), 1
	begun, err := client.Begin(t.Context(), api.Announcement{Kind: window.Epoch, Epoch: &epoch, Run: "secret-project"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.End(t.Context(), begun.ID); err != nil {
		t.Fatal(err)
	}
	return socket, found[1]
}

const openMetrics = "application/openmetrics-text; version=1.0.0"

// get returns the status and the body of a response. change alters the request.
func get(t *testing.T, client *http.Client, address string, change func(*http.Request)) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// overSocket is a client of a unix socket.
func overSocket(t *testing.T, socket string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// A loopback port shows the machine. The histograms of windows, whose labels are texts of users, are on the socket, for
// root and the agent's user, with the spans of windows as exemplars.
func TestScrape(t *testing.T) {
	t.Parallel()
	socket, address := scraping(t, "prometheus: {endpoint: 0}\n")
	status, text := get(t, http.DefaultClient, address, nil)
	if status != http.StatusOK || strings.Contains(text, "secret-project") || strings.Contains(text, epochSeries) {
		t.Errorf("the port: got %d %s, want the machine's metrics alone", status, text)
	}
	known, err := os.ReadFile("../semconv/testdata/prometheus.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(text, -1) {
		if names++; found[1] != "target_info" && !regexp.MustCompile("(?m)^"+found[1]+"( |$)").Match(known) {
			t.Errorf("%s is not in semconv/testdata/prometheus.txt", found[1])
		}
	}
	if names < 10 || !strings.Contains(text, `,host_name="`) {
		t.Errorf("got %d names and no host_name, want at least 10: %s", names, text)
	}
	for what, change := range map[string]func(*http.Request){
		"a page of another site": func(r *http.Request) { r.Host = "evil.example:80" },
		"a wrong method":         func(r *http.Request) { r.Method = http.MethodPost },
		"another path":           func(r *http.Request) { r.URL.Path = "/v1/windows" },
	} {
		if status, _ := get(t, http.DefaultClient, address, change); status < 400 || status > 405 {
			t.Errorf("%s: got %d, want it refused", what, status)
		}
	}
	status, text = get(t, overSocket(t, socket), "http://stallspan/metrics", func(r *http.Request) {
		r.Header.Set("Accept", openMetrics)
	})
	if status != http.StatusOK || !strings.Contains(text, epochSeries+"_count{") ||
		!strings.Contains(text, `stallspan_training_run_name="secret-project"`) || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("the socket: got %d %s, want the histogram of epochs in OpenMetrics", status, text)
	}
	_, text = get(t, overSocket(t, socket), "http://stallspan/metrics", nil)
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool for the last part (Debian: prometheus)")
	}
	check := exec.CommandContext(t.Context(), program, "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if said, err := check.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("promtool check metrics: got %v and %s, want nothing", err, said)
	}
}

// certificate writes a certificate for 127.0.0.1 and its key to a folder.
func certificate(t *testing.T, folder string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	text, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text})
	for name, text := range map[string][]byte{
		"cert.pem": public, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	return pool
}

// With a web_config, clients come over TLS, name themselves, and get all metrics.
func TestScrapeWithWebConfig(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	pool := certificate(t, folder)
	hash, err := bcrypt.GenerateFromPassword([]byte("open sesame"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	web := filepath.Join(folder, "web.yaml")
	text := "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n" +
		fmt.Sprintf("basic_auth_users: {prom: %q}\n", hash)
	if err := os.WriteFile(web, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, address := scraping(t, fmt.Sprintf("prometheus: {endpoint: '127.0.0.1:0', web_config: %s}\n", web))
	if !strings.HasPrefix(address, "https://") {
		t.Errorf("got %s, want https", address)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	if status, _ := get(t, client, address, nil); status != http.StatusUnauthorized {
		t.Errorf("without a password: got %d, want 401", status)
	}
	wrong := func(r *http.Request) { r.SetBasicAuth("prom", "open") }
	if status, _ := get(t, client, address, wrong); status != http.StatusUnauthorized {
		t.Errorf("with a wrong password: got %d, want 401", status)
	}
	status, metrics := get(t, client, address, func(r *http.Request) { r.SetBasicAuth("prom", "open sesame") })
	if status != http.StatusOK || !strings.Contains(metrics, epochSeries) {
		t.Errorf("with the password: got %d %s, want the histogram of epochs, too", status, metrics)
	}
}

// What the config asks for and would be unsafe is refused at the start.
func TestScrapeRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const hash = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"
	for config, want := range map[string]string{
		"{endpoint: '0.0.0.0:0', web_config: " + file("plain", "basic_auth_users: {a: "+hash+"}", 0o600) + "}": "need TLS",
		"{endpoint: '0.0.0.0:0'}":            "0.0.0.0:0 is open to other machines: use localhost",
		"{endpoint: 'x'}":                    "is not a port",
		"{web_config: /x}":                   "set endpoint",
		"{endpoint: 0, web_config: x}":       "web_config needs an absolute path",
		"{endpoint: 0, web_config: /absent}": "no such file",
		"{endpoint: 0, web_config: " + file("open", "{}", 0o644) + "}":                               "is open to all users",
		"{endpoint: 0, web_config: " + file("bad", "basic_auth: {}", 0o600) + "}":                    "basic_auth",
		"{endpoint: '0.0.0.0:0', web_config: " + file("none", "http_server_config: {}", 0o600) + "}": "is open to other machines",
	} {
		v := stallspan(t, "agent", "--config", file("config", "prometheus: "+config+"\n", 0o600))
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+socketIn(t))
		code := v.run()
		if got := v.err.String(); code == 0 || !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: got exit code %d and %q, want one line with %q", config, code, got, want)
		}
	}
}

// A real Prometheus scrapes an agent, and our rules work with what it gets.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("needs prometheus (Debian: prometheus)")
	}
	folder := t.TempDir()
	_, address := scraping(t, "prometheus: {endpoint: 0}\n")
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../docs/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: stallspan
    honor_labels: true
    static_configs: [{targets: ['%s']}]
`, rules, target.Host)
	if err := os.WriteFile(filepath.Join(folder, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	_ = free.Close()
	prometheus := exec.CommandContext(t.Context(), program, "--config.file="+folder+"/prometheus.yml",
		"--storage.tsdb.path="+folder+"/data", "--web.listen-address="+at)
	var said bytes.Buffer
	prometheus.Stdout, prometheus.Stderr = &said, &said
	if err := prometheus.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = prometheus.Process.Signal(syscall.SIGTERM); _ = prometheus.Wait() }()
	for _, query := range []string{
		`system_disk_io_bytes_total{host_name!="",system_device_name!=""}`,
		`stallspan:host_io_pressure:ratio1m`, // from a rule
	} {
		if got := askPrometheus(t, at, query); got == 0 {
			t.Errorf("%s: got no series, want some; Prometheus said %s", query, &said)
		}
	}
}

// askPrometheus returns the number of series that a query has, when it has some.
func askPrometheus(t *testing.T, at, query string) (series int) {
	t.Helper()
	for end := time.Now().Add(slowest / 2); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		response, err := http.Get("http://" + at + "/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			continue // it starts
		}
		var answer struct {
			Data struct {
				Result []json.RawMessage `json:"result"`
			} `json:"data"`
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		_ = response.Body.Close()
		if err == nil && len(answer.Data.Result) > 0 {
			return len(answer.Data.Result)
		}
	}
	return 0
}

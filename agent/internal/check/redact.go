package check

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stallspan/stallspan/internal/trust"
)

// redacted stands for what is left out.
const redacted = "REDACTED"

// minSecret is the shortest text that is looked for elsewhere, in bytes: a shorter one is a part of many words.
const minSecret = 5

// redactor takes secrets out of texts: those that it knows, and what looks like one.
type redactor struct{ secrets []string }

// know adds a secret. It is taken out of each text from then on.
func (r *redactor) know(secret string) {
	if secret = strings.TrimSpace(secret); len(secret) < minSecret || slices.Contains(r.secrets, secret) {
		return
	}
	r.secrets = append(r.secrets, secret)
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
}

var (
	userInfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'@]+@`)
	query    = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'?]+)\?[^\s"']+`)
	secretly = regexp.MustCompile(
		`(?i)(authorization|bearer|token|passwd|password|secret|credential|api[-_]?key)` +
			`("?\s*[:= ]\s*"?(?:(?:bearer|basic|digest)\s+)?)[^\s",}]{5,}`)
)

// text returns a text without secrets.
func (r *redactor) text(text string) string {
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	text = userInfo.ReplaceAllString(text, "${1}"+redacted+"@")
	return query.ReplaceAllString(text, "${1}?"+redacted)
}

// log returns lines of a log without secrets, and without what follows a word such as token.
func (r *redactor) log(text string) string {
	return secretly.ReplaceAllString(r.text(text), "${1}${2}"+redacted)
}

// open are the keys of a config file whose texts are no secrets. The texts of all others are left out. So a new key is
// a secret until it is added here.
var open = []string{
	"socket", "endpoint", "token_file", "web_config", "secret_file", "interval", "root_path", "nvml", "schedule",
	"baseline", "learn", "factor", "load", "epoch", "slow_status", "span_names", "stall_spans", "smartctl",
	"max_size", "max_age", "on",
	"severity", "timeout", "device", "type",
}

var errNotYAML = errors.New("it is not YAML, and is left out")

// yaml returns a config file without comments and secrets. It learns what it leaves out, and the secrets in files that
// the config names. Numbers and booleans stay.
func (r *redactor) yaml(text string) (string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return "", errNotYAML // the error has parts of the file
	}
	r.node(&root, "")
	var out strings.Builder
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return "", errNotYAML
	}
	return r.text(out.String()), nil
}

// node redacts a node below a key.
func (r *redactor) node(n *yaml.Node, key string) {
	n.HeadComment, n.LineComment, n.FootComment, n.Anchor = "", "", "", ""
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			n.Content[i].HeadComment, n.Content[i].LineComment, n.Content[i].FootComment = "", "", ""
			r.node(n.Content[i+1], n.Content[i].Value)
		}
	case yaml.AliasNode:
		*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: redacted}
	case yaml.ScalarNode:
		if key == "token_file" || key == "secret_file" {
			if secret, err := trust.Secret(key, n.Value); err == nil {
				r.know(string(secret))
			}
		}
		if n.Tag == "!!str" && !slices.Contains(open, key) {
			r.know(n.Value)
			n.Value, n.Style = redacted, 0
		}
	default:
		for _, c := range n.Content {
			r.node(c, key)
		}
	}
}

package agentconfig

import (
	"os"
	"regexp"
	"testing"
)

// The config of the packages is all comments. Its settings are the ones of the agent, and those with a default show it.
func TestConfigOfThePackages(t *testing.T) {
	text, err := os.ReadFile("../../../packaging/etc/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(text); err != nil {
		t.Errorf("as it is: got error %v, want none", err)
	}
	// "# " begins a sentence, "#" and "#  " a setting. The token is in a file that tests lack.
	settings := regexp.MustCompile(`(?m)^#(\S|  )`).ReplaceAll(text, []byte("$1"))
	settings = regexp.MustCompile(`(?m)^token_file:.*$`).ReplaceAll(settings, nil)
	c, err := Parse(settings)
	if err != nil {
		t.Fatalf("without the signs of comments: got error %v, want none", err)
	}
	if want := Default().Sampling.Interval; c.Endpoint == "" || c.Sampling.Interval != want {
		t.Errorf("got the endpoint %q and the interval %v, want a port and %v", c.Endpoint, c.Sampling.Interval, want)
	}
}

package agent

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

func TestList(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	agent, _ := startAgent(t, socket)
	defer stop(t, agent)
	list := func(args ...string) string {
		v := stallspan(t, append([]string{"ls"}, args...)...)
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
		if code := v.run(); code != 0 {
			t.Fatalf("ls %v: got exit code %d: %s", args, code, &v.err)
		}
		return v.out.String()
	}
	if got := list(); !strings.HasPrefix(got, "No windows are open") {
		t.Errorf("got %q, want a line that says so", got)
	}
	client := api.NewClient(socket)
	var ids []string
	for epoch := range 4 {
		begun, err := client.Begin(t.Context(), api.Announcement{Kind: window.Epoch, Epoch: &epoch})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, begun.ID)
	}
	for _, id := range ids[:3] {
		if _, err := client.End(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	got := list("--last", "2")
	want := fmt.Sprintf(`^ID .*verdict\n%s \S+ epoch 3 .* open, .*\n\.\.\. 1 earlier.*\n%s .* epoch 1 .*\n%s .* epoch 2 .*\n$`,
		ids[3], ids[1], ids[2])
	if !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("got:\n%swant: %s", got, want)
	}
	if got := list("--json"); strings.Count(got, `"finding"`) != 4 {
		t.Errorf("got %s, want four reports", got)
	}
}

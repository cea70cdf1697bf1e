package api

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tryingEvents makes TestTrying the program of another user.
const tryingEvents = "STALLSPAN_TEST_TRYING_EVENTS"

// TestTrying is the other user's program. It prints what it gets for a test event.
func TestTrying(t *testing.T) {
	path := os.Getenv(tryingEvents)
	if path == "" {
		t.Skip("the program of another user, for TestTestEventsOfOthers")
	}
	_, err := NewClient(path).Try(t.Context(), "known")
	fmt.Println(err)
}

// Test events start programs and take places of real ones, so that another user cannot emit any.
func TestTestEventsOfOthers(t *testing.T) {
	tried := 0
	s := serve(t, func(s *Server) {
		s.With(Events{Try: func(context.Context, string) (Tried, error) { tried++; return Tried{}, nil }})
	})
	for path, mode := range map[string]os.FileMode{s.path: 0o666, filepath.Dir(s.path): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if got := as(t, 65534, "TestTrying", tryingEvents, s.path, 1); !strings.Contains(got[0], "as root") || tried > 0 {
		t.Errorf("another user: got %q and %d test events, want it refused", got[0], tried)
	}
	if _, err := s.Try(t.Context(), "known"); err != nil || tried != 1 {
		t.Errorf("root: got %v and %d test events, want one", err, tried)
	}
}

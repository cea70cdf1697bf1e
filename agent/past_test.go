package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/internal/window"
)

// entriesIn returns the windows and events in a folder, as one text.
func entriesIn(t *testing.T, folder string) (text string) {
	t.Helper()
	err := store.Each(folder, time.Time{}, time.Time{}, func(_ string, file io.Reader) error {
		r := store.NewReader(file)
		for {
			item, err := r.Next()
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			for _, e := range item.Entries {
				text += e.Kind.String() + " " + string(e.Text) + "\n"
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What happens while an agent runs is in its files afterwards.
func TestAgentKeepsThePast(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	v, _ := startAgent(t, socket)
	client := api.NewClient(socket)
	begun, err := client.Begin(context.Background(), api.Announcement{Kind: window.Epoch, Name: "of the test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.End(context.Background(), begun.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Try(context.Background(), "stallspan.gpu.lost"); err != nil {
		t.Fatal(err)
	}
	stop(t, v)
	folder := filepath.Join(v.temp, "stallspan", "history")
	text := entriesIn(t, folder)
	for _, want := range []string{"window {", begun.ID, "event {", "stallspan.gpu.lost"} {
		if !strings.Contains(text, want) {
			t.Errorf("got the entries\n%swant one with %q", text, want)
		}
	}
	files, err := store.Files(folder)
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, %v, want a file", files, err)
	}
	if info, err := os.Stat(files[0].Path); err != nil || info.Mode() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info.Mode(), err)
	}
}

func TestAgentWithoutPast(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	config := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(config, []byte("history: {enabled: false}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v, _ := startAgent(t, socket, "--config", config)
	_, err := api.NewClient(socket).History(context.Background(), time.Time{}, time.Time{})
	if err == nil || !strings.Contains(err.Error(), "keeps no history") {
		t.Errorf("got %v, want that there is no history", err)
	}
	stop(t, v)
	if _, err := os.Stat(filepath.Join(v.temp, "stallspan", "history")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no folder", err)
	}
}

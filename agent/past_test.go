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

func TestHistoryConfig(t *testing.T) {
	for text, want := range map[string]store.Options{
		"history: {max_size: 50MB, max_age: 48h}": {Folder: "f", MaxSize: 50_000_000, MaxAge: 48 * time.Hour},
		"": {Folder: "f", MaxSize: store.DefaultMaxSize, MaxAge: store.DefaultMaxAge},
	} {
		c, err := parseConfig([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.History.options("f"); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"{max_size: 5}": "history: max_size \"5\" is too small", "{max_size: x}": "is not a size",
		"{max_age: 1h}": "history: max_age: 1h0m0s is under 24h0m0s", "{size: 1}": "size",
	} {
		if _, err := parseConfig([]byte("history: " + text + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

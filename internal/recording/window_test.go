package recording

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stallspan/stallspan/internal/window"
)

// A window comes back from its JSON as it was.
func TestWindow(t *testing.T) {
	for _, want := range []window.Window{
		{ID: "w", Kind: window.Custom},
		{ID: "w", Kind: window.Custom, Job: "j", PID: 7, ByClient: true},
		{ID: "w", Kind: window.Epoch, HasEpoch: true, Run: "r", Job: "j", PID: 7, Source: window.Announced, Owned: true},
		{ID: "w", Kind: window.ModelLoad, Model: "m", Path: "/p", Seen: window.Seen{Size: 5, HasCached: true, Device: window.InMemory}},
		{ID: "w", Kind: window.ModelLoad, GPUs: []string{"g"}, Seen: window.Seen{Size: 5, Cached: 4, HasCached: true, Before: 5, Layer: true, Under: []string{"sda"}}},
	} {
		text, err := json.Marshal(NewWindow(&want))
		if err != nil {
			t.Fatal(err)
		}
		var read Window
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if got := read.Window("w"); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

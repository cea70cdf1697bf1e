package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// builtIn are the panels that come with Grafana.
var builtIn = []string{"row", timeseries, table, stateTimeline}

// used matches Grafana's variables in a text, except those of the time range and of legends.
var used = regexp.MustCompile(`\$\{?([a-z_]+)`)

type drawnBoard struct {
	UID, Title  string
	Panels      []jsonPanel
	Annotations struct{ List []struct{ Name, Expr string } }
	Templating  struct{ List []struct{ Name, Type string } }
}

func TestDashboards(t *testing.T) {
	mixin, err := os.ReadFile(filepath.Join(root, "docs/mixin.libsonnet"))
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for path, text := range written(t, registered(t)) {
		if !strings.HasSuffix(path, ".json") {
			continue
		}
		var b drawnBoard
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatalf("dashboard %s: %v", path, err)
		}
		if uids[b.UID] != "" || b.UID == "" || len(b.UID) > 40 || b.Title == "" {
			t.Errorf("%s: uid %q and title %q have to be its own", path, b.UID, b.Title)
		}
		uids[b.UID] = path
		name := filepath.Base(path)
		if entry := "'" + name + "': import 'grafana/" + name + "'"; !strings.Contains(string(mixin), entry) {
			t.Errorf("docs/mixin.libsonnet lacks %s", entry)
		}
		if len(b.Panels) < 4 {
			t.Errorf("%s has %d panels", path, len(b.Panels))
		}
		checkGrid(t, path, b.Panels)
		for _, p := range b.Panels {
			checkPanel(t, path, p)
		}
		variables := []string{"__all", "__range", "__rate_interval"}
		for _, v := range b.Templating.List {
			variables = append(variables, v.Name)
		}
		for _, use := range used.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(variables, use[1]) {
				t.Errorf("%s uses the variable %s, which it does not have", path, use[1])
			}
		}
	}
	if len(uids) != 5 {
		t.Errorf("%d dashboards", len(uids))
	}
}

func checkPanel(t *testing.T, path string, p jsonPanel) {
	t.Helper()
	if !slices.Contains(builtIn, p.Type) {
		t.Errorf("%s: panel %q is a %s, which is no panel of Grafana's own", path, p.Title, p.Type)
	}
	if p.Type == "row" {
		return
	}
	if len(p.Targets) == 0 || p.Title == "" {
		t.Errorf("%s: panel %d, %q, shows nothing", path, p.ID, p.Title)
	}
	refs := map[string]bool{}
	for _, target := range p.Targets {
		id, _ := target["refId"].(string)
		if refs[id] || id == "" {
			t.Errorf("%s: panel %q has two queries %q", path, p.Title, id)
		}
		refs[id] = true
		of, _ := target["datasource"].(map[string]any)
		if of["uid"] != p.Datasource.UID || !slices.Contains([]any{"${prometheus}", "${tempo}"}, of["uid"]) {
			t.Errorf("%s: panel %q asks %v", path, p.Title, of)
		}
	}
}

// checkGrid checks that panels have different ids, are within 24 columns, and do not overlap.
func checkGrid(t *testing.T, path string, panels []jsonPanel) {
	t.Helper()
	ids := map[int]bool{}
	for i, p := range panels {
		if ids[p.ID] || p.ID <= 0 {
			t.Errorf("%s: two panels have number %d", path, p.ID)
		}
		ids[p.ID] = true
		g := p.Grid
		if g.X < 0 || g.Y < 0 || g.W <= 0 || g.H <= 0 || g.X+g.W > 24 {
			t.Errorf("%s: panel %q lies outside: %+v", path, p.Title, g)
		}
		for _, q := range panels[:i] {
			o := q.Grid
			if g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H {
				t.Errorf("%s: panels %q and %q lie on one another", path, q.Title, p.Title)
			}
		}
	}
}

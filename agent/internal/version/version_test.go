package version

import (
	"runtime/debug"
	"testing"
)

func TestIdentityOfABuild(t *testing.T) {
	git := func(modified string) *debug.BuildInfo {
		return &debug.BuildInfo{
			Main: debug.Module{Version: "v0.0.0-20261123115038-6b63198f0a12"},
			Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "6b63198f0a12aaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
				{Key: "vcs.modified", Value: modified},
			},
		}
	}
	for _, test := range []struct {
		name           string
		number, commit string
		info           *debug.BuildInfo
		want           string
	}{
		{"linked", "1.2.3", "6b63198f0a12", git("true"), "1.2.3 6b63198f0a12"},
		{"in a repository", "0.1.0-dev", "", git("false"), "0.1.0-dev 6b63198f0a12"},
		{"with changes", "0.1.0-dev", "", git("true"), "0.1.0-dev 6b63198f0a12.dirty"},
		{"go install", "0.1.0-dev", "", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "1.2.3 "},
		{"no stamp", "0.1.0-dev", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "0.1.0-dev "},
		{"no information", "0.1.0-dev", "", nil, "0.1.0-dev "},
	} {
		number, commit := identify(test.number, test.commit, test.info)
		if got := number + " " + commit; got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// Package version is the version of this build.
package version

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// The version of this tree, without a v, and the commit. hack/dist.sh links what hack/version.sh says into them; other
// builds find the commit where Go stamped it. lab/collector compares the number with the Collector's.
var (
	versionNumber = "0.1.0-dev"
	versionCommit = ""
)

// shortCommit is how much of a commit names it.
const shortCommit = 12

// Number is that of a release, such as 1.2.3, or of a tree between two, with the commit: 0.1.0-dev+6b63198f0a12.
func Number() string {
	info, _ := debug.ReadBuildInfo()
	number, commit := identify(versionNumber, versionCommit, info)
	if commit == "" || !strings.Contains(number, "-") {
		return number
	}
	return number + "+" + commit
}

// identify returns the version and the short commit of a build. A commit from the linker comes first.
func identify(number, commit string, info *debug.BuildInfo) (string, string) {
	if commit != "" || info == nil {
		return number, commit
	}
	modified := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(len(s.Value), shortCommit)]
		case "vcs.modified":
			if s.Value == "true" {
				modified = ".dirty"
			}
		}
	}
	if commit != "" {
		return number, commit + modified
	}
	// go install MODULE@VERSION builds from no repository, but knows the version.
	if v := info.Main.Version; strings.HasPrefix(v, "v") {
		return strings.TrimPrefix(v, "v"), ""
	}
	return number, ""
}

// Describe is the line of --version.
func Describe() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	number, commit := identify(versionNumber, versionCommit, info)
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	line := "stallspan version " + number + " (commit " + cmp.Or(commit, "unknown") + ", " + info.GoVersion + ", " +
		settings["GOOS"] + "/" + settings["GOARCH"]
	if settings["CGO_ENABLED"] == "0" {
		line += ", built without GPUs"
	}
	return line + ")"
}

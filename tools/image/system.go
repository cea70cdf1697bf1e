package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// wanted are the files of each package that the image gets. The C library is for programs that are built with cgo, and
// for the driver's library, which needs all of these. No shell and no other program is among them.
var wanted = map[string][]string{
	"base-files":      {"usr/lib/os-release"},
	"ca-certificates": {"usr/share/ca-certificates/mozilla/*.crt"},
	"libc6": {
		"usr/lib/*/ld-linux-*.so.?", "usr/lib/ld-linux-*.so.?", "usr/lib64/ld-linux-*.so.?",
		"usr/lib/*/libc.so.6", "usr/lib/*/libdl.so.2", "usr/lib/*/libm.so.6", "usr/lib/*/libpthread.so.0",
		"usr/lib/*/libresolv.so.2", "usr/lib/*/librt.so.1",
	},
}

// system returns the files that both programs need, and the packages that these are from, with their versions.
func system(debs string) (*tree, []string, error) {
	t := &tree{}
	var packages []string
	for _, name := range sorted(wanted) {
		found, err := filepath.Glob(filepath.Join(debs, name+"_*.deb"))
		if err != nil {
			return nil, nil, err
		}
		if len(found) != 1 {
			return nil, nil, fmt.Errorf("%s has %d packages %s: want one", debs, len(found), name)
		}
		version, err := t.unpack(name, found[0])
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", found[0], err)
		}
		packages = append(packages, name+" "+version)
	}

	var certificates bytes.Buffer
	for _, file := range sorted(t.entries) {
		if strings.HasSuffix(file, ".crt") {
			certificates.Write(t.entries[file].data)
			delete(t.entries, file)
		}
	}
	if certificates.Len() == 0 {
		return nil, nil, errors.New("ca-certificates has no certificates")
	}
	for _, folder := range []string{"usr/share/ca-certificates/mozilla", "usr/share/ca-certificates"} {
		delete(t.entries, folder)
	}
	t.file("etc/ssl/certs/ca-certificates.crt", 0o644, certificates.Bytes())
	t.link("etc/os-release", "../usr/lib/os-release")
	t.link("lib", "usr/lib")
	if _, ok := t.entries["usr/lib64"]; ok {
		t.link("lib64", "usr/lib64")
	}
	t.file("etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0:root:/:/nonexistent\n"+
		"stallspan:x:%d:%[1]d:Stallspan:/var/lib/stallspan:/nonexistent\n", user))
	t.file("etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\nstallspan:x:%d:\n", user))
	t.file("etc/nsswitch.conf", 0o644, []byte("passwd: files\ngroup: files\nhosts: files dns\n"))
	t.folder("tmp", 0o1777, 0)
	t.folder("run/stallspan", 0o750, user)
	t.folder("var/lib/stallspan", 0o700, user)
	t.folder("etc/stallspan", 0o755, 0)
	return t, packages, nil
}

// unpack adds the wanted files of a package, its licence, and what scanners read of it: its version.
func (t *tree) unpack(name, deb string) (version string, err error) {
	control, err := run("dpkg-deb", "--field", deb)
	if err != nil {
		return "", err
	}
	t.file("var/lib/dpkg/status.d/"+name, 0o644, control)
	fields, err := run("dpkg-deb", "--field", deb, "Version")
	if err != nil {
		return "", err
	}
	files, err := run("dpkg-deb", "--fsys-tarfile", deb)
	if err != nil {
		return "", err
	}
	found := map[string]bool{}
	r := tar.NewReader(bytes.NewReader(files))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		file := path.Clean(header.Name)
		if strings.HasPrefix(file, "lib/") || strings.HasPrefix(file, "lib64/") {
			file = "usr/" + file // as Debian's usrmerge does
		}
		pattern, ok := match(append(wanted[name], "usr/share/doc/"+name+"/copyright"), file)
		if !ok || header.Typeflag == tar.TypeDir {
			continue
		}
		found[pattern] = true
		if header.Typeflag == tar.TypeSymlink {
			t.link(file, header.Linkname)
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return "", err
		}
		t.file(file, header.Mode&0o755, data)
	}
	for _, pattern := range wanted[name] {
		if !found[pattern] && !strings.Contains(pattern, "ld-linux") { // each architecture has its own place for that
			return "", fmt.Errorf("it has no %s", pattern)
		}
	}
	return strings.TrimSpace(string(fields)), nil
}

func match(patterns []string, file string) (pattern string, ok bool) {
	for _, pattern := range patterns {
		if ok, _ := path.Match(pattern, file); ok {
			return pattern, true
		}
	}
	return "", false
}

func run(name string, args ...string) ([]byte, error) {
	var problem bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(problem.Bytes()))
	}
	return out, nil
}

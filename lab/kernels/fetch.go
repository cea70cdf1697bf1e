//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// parts are the packages of a kernel, among those that its package needs.
var parts = regexp.MustCompile(`(?m)^ *(?:Depends: )?(linux-(?:image|binary|modules)-\d\S*)`)

// apt runs a program of apt in dir, with the machine's own suite and architecture.
func (m *machine) apt(dir string, line ...string) ([]byte, error) {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = dir
	if m.suite != "" {
		cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(dir, "apt.conf"))
	}
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(line, " "), err, failed.Stderr)
	}
	return out, err
}

// sources writes lists of apt for the machine's suite in dir, from the mirrors that this machine uses.
func (m *machine) sources(dir string) error {
	if m.suite == "" {
		return nil
	}
	here := machine{}
	out, err := here.apt(dir, "apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Identifier: Packages",
		"Origin: Debian")
	if err != nil {
		return err
	}
	var text strings.Builder
	for line := range strings.Lines(string(out)) {
		label, mirror, _ := strings.Cut(strings.TrimSpace(line), " ")
		suite := m.suite
		if label == "Debian-Security" {
			if suite == "sid" {
				continue
			}
			suite += "-security"
		}
		source := fmt.Sprintf("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", mirror, suite)
		if !strings.Contains(text.String(), source) {
			text.WriteString(source)
		}
	}
	if text.Len() == 0 {
		return errors.New("apt-get has no source of Debian")
	}
	conf := fmt.Sprintf("Dir::State \"%[1]s\";\nDir::Cache \"%[1]s\";\nDir::Etc::SourceList \"%[1]s/sources\";\n"+
		"Dir::Etc::SourceParts \"-\";\nAPT::Architecture \"%[2]s\";\nAPT::Architectures {\"%[2]s\";};\n"+
		"APT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n", dir, m.arch)
	return errors.Join(os.MkdirAll(filepath.Join(dir, "lists/partial"), 0o755),
		os.MkdirAll(filepath.Join(dir, "archives/partial"), 0o755),
		os.WriteFile(filepath.Join(dir, "status"), nil, 0o644),
		os.WriteFile(filepath.Join(dir, "sources"), []byte(text.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "apt.conf"), []byte(conf), 0o644))
}

// unpack fetches the package of a kernel, and returns its image and its modules.
func (m *machine) unpack(dir string) (image, modules string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	find := func(patterns ...string) string {
		for _, pattern := range patterns {
			found, _ := filepath.Glob(filepath.Join(dir, "root", pattern)) // the pattern is valid
			if len(found) > 0 {
				return found[0]
			}
		}
		return ""
	}
	images := []string{"boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz"}
	if find(images...) == "" {
		if err := m.fetch(dir); err != nil {
			return "", "", err
		}
	}
	image, modules = find(images...), find("lib/modules/*", "usr/lib/modules/*")
	if image == "" || modules == "" {
		return "", "", fmt.Errorf("%s has no kernel, or no modules", m.kernel)
	}
	if m.release != "" {
		image, err = m.rename(dir, image, filepath.Base(modules))
	}
	return image, modules, err
}

func (m *machine) fetch(dir string) error {
	if err := m.sources(dir); err != nil {
		return err
	}
	if m.suite != "" {
		if _, err := m.apt(dir, "apt-get", "-q", "update"); err != nil {
			return err
		}
	}
	list, err := m.apt(dir, "apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts",
		"--no-breaks", "--no-replaces", "--no-enhances", m.kernel)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, found := range parts.FindAllSubmatch(list, -1) {
		names[string(found[1])] = true
	}
	for name := range names {
		if _, err := m.apt(dir, "apt-get", "download", name); err != nil {
			return err
		}
		if _, err := m.apt(dir, "sh", "-c", "dpkg -x "+name+"_*.deb root"); err != nil {
			return err
		}
	}
	return nil
}

// rename writes the kernel that is compressed in an image, with another release of the same length.
func (m *machine) rename(dir, image, release string) (string, error) {
	if len(release) != len(m.release) {
		return "", fmt.Errorf("%s and %s differ in length", release, m.release)
	}
	packed, err := os.ReadFile(image)
	if err != nil {
		return "", err
	}
	at := bytes.Index(packed, []byte("\xfd7zXZ\x00"))
	if at < 0 {
		return "", errors.New("the kernel is not compressed with xz")
	}
	cmd := exec.Command("xz", "-dcq", "--single-stream")
	cmd.Stdin = bytes.NewReader(packed[at:])
	kernel, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("decompress the kernel: %w", err)
	}
	kernel = bytes.ReplaceAll(kernel, []byte(release), []byte(m.release))
	image = filepath.Join(dir, "vmlinux")
	return image, os.WriteFile(image, kernel, 0o644)
}

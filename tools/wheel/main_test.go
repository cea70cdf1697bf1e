package main

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestTags(t *testing.T) {
	for _, test := range []struct {
		name string
		n    needs
		want []string
	}{
		{"static", needs{machine: elf.EM_X86_64},
			[]string{"manylinux2014_x86_64", "manylinux_2_17_x86_64", "musllinux_1_1_x86_64"}},
		{"cgo", needs{machine: elf.EM_X86_64, loader: true, libraries: []string{"libc.so.6"},
			versions: []string{"GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.32"}}, []string{"manylinux_2_34_x86_64"}},
		{"an old C library", needs{machine: elf.EM_AARCH64, loader: true, versions: []string{"GLIBC_2.17"}},
			[]string{"manylinux2014_aarch64", "manylinux_2_17_aarch64"}},
	} {
		if got, err := test.n.tags(); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got the tags %q and the error %v, want %q", test.name, got, err, test.want)
		}
	}
	for _, test := range []struct {
		n    needs
		want string
	}{
		{needs{machine: elf.EM_RISCV}, "want x86-64 or aarch64"},
		{needs{machine: elf.EM_X86_64, libraries: []string{"libc.so.6", "libcuda.so.1"}}, "it needs libcuda.so.1"},
		{needs{machine: elf.EM_X86_64, versions: []string{"GLIBC_PRIVATE"}}, "the symbol version GLIBC_PRIVATE"},
	} {
		if got, err := test.n.tags(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got the tags %q and the error %v, want an error with %q", got, err, test.want)
		}
	}
}

// TestBuild makes a wheel of a real static binary.
func TestBuild(t *testing.T) {
	folder := t.TempDir()
	source := filepath.Join(folder, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(1) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(folder, "program")
	compile := exec.Command("go", "build", "-o", binary, source)
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	pure := filepath.Join(folder, "stallspan-1.2-py3-none-any.whl")
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for name, text := range map[string]string{
		"stallspan/__init__.py":          "",
		"stallspan-1.2.dist-info/WHEEL":  "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n\n",
		"stallspan-1.2.dist-info/RECORD": "stale,,\n",
		"stallspan-1.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: stallspan\nLicense: Apache-2.0\n" +
			"License-File: LICENSE\n\n# Text\n\nLicense: none\n",
		"stallspan-1.2.dist-info/LICENSE": "Apache License\n",
	} {
		file, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = file.Write([]byte(text))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pure, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}

	path, err := build(pure, binary, folder)
	if err != nil {
		t.Fatal(err)
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	want := strings.ReplaceAll("stallspan-1.2-py3-none-manylinux2014_@.manylinux_2_17_@.musllinux_1_1_@.whl", "@", machine)
	if got := filepath.Base(path); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	first, _ := os.ReadFile(path)
	if _, err := build(pure, binary, folder); err != nil {
		t.Fatal(err)
	}
	if second, _ := os.ReadFile(path); !bytes.Equal(first, second) {
		t.Error("got other bytes from the same input, want the same")
	}

	wheel, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer wheel.Close()
	files := map[string]string{}
	for _, file := range wheel.File {
		data, err := contents(file)
		if err != nil {
			t.Fatal(err)
		}
		files[file.Name] = string(data)
		if strings.HasSuffix(file.Name, "/scripts/stallspan") && file.Mode() != 0o755 {
			t.Errorf("got the mode %v of %s, want 0755", file.Mode(), file.Name)
		}
	}
	program, _ := os.ReadFile(binary)
	if files["stallspan-1.2.data/scripts/stallspan"] != string(program) {
		t.Error("the script is not the binary")
	}
	for _, line := range []string{"Root-Is-Purelib: false\n", "Tag: py3-none-musllinux_1_1_" + machine + "\n"} {
		if got := files["stallspan-1.2.dist-info/WHEEL"]; !strings.Contains(got, line) {
			t.Errorf("got WHEEL %q, want the line %q", got, line)
		}
	}
	const metadata = "Metadata-Version: 2.4\nName: stallspan\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\n\n" +
		"# Text\n\nLicense: none\n"
	if got := files["stallspan-1.2.dist-info/METADATA"]; got != metadata {
		t.Errorf("got METADATA %q, want %q", got, metadata)
	}
	if got := files["stallspan-1.2.dist-info/licenses/LICENSE"]; got != "Apache License\n" {
		t.Errorf("got the license %q, want its text", got)
	}
	record := files["stallspan-1.2.dist-info/RECORD"]
	if strings.Count(record, "\n") != len(files) || strings.Contains(record, "stale") {
		t.Errorf("got RECORD %q, want a line for each of %d files", record, len(files))
	}
	// The checksum is that of no bytes.
	const line = "stallspan/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"
	if !strings.Contains(record, line) {
		t.Errorf("got RECORD %q, want the line %q", record, line)
	}
}

// Command wheel puts the program into the Python package's wheel, once for each binary:
//
//	hack/tool.sh wheel -out DIR PURE.whl BINARY...
//
// PURE.whl is what setuptools builds. The binary becomes a script of the wheel, so pip copies it into the environment's
// bin as it is, and no Python runs before it. The platform tags are read from the binary: which C library it needs.
package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	out := flag.String("out", ".", "the `folder` of the wheels")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: wheel -out DIR PURE.whl BINARY...")
		os.Exit(2)
	}
	for _, binary := range flag.Args()[1:] {
		name, err := build(flag.Arg(0), binary, *out)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", binary, err)
			os.Exit(1)
		}
		fmt.Println(name)
	}
}

// build writes the wheel with the binary into the folder out, and returns its path.
func build(pure, binary, out string) (string, error) {
	n, err := read(binary)
	if err != nil {
		return "", err
	}
	tags, err := n.tags()
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	release, ok := strings.CutSuffix(filepath.Base(pure), "-py3-none-any.whl")
	if !ok {
		return "", fmt.Errorf("%s is no wheel for any platform: its name must end in -py3-none-any.whl", pure)
	}
	wheel, err := repack(pure, release, tags, program)
	if err != nil {
		return "", err
	}
	path := filepath.Join(out, release+"-py3-none-"+strings.Join(tags, ".")+".whl")
	return path, os.WriteFile(path, wheel, 0o644)
}

// needs is what a binary asks of the machine.
type needs struct {
	machine   elf.Machine
	loader    bool // it names a dynamic loader
	libraries []string
	versions  []string // of symbols, such as GLIBC_2.34
}

func read(binary string) (needs, error) {
	file, err := elf.Open(binary)
	if err != nil {
		return needs{}, err
	}
	defer file.Close()
	n := needs{machine: file.Machine}
	n.loader = slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if n.libraries, err = file.ImportedLibraries(); err != nil {
		return needs{}, err
	}
	needed, err := file.DynamicVersionNeeds()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return needs{}, err
	}
	for _, library := range needed {
		for _, version := range library.Needs {
			n.versions = append(n.versions, version.Dep)
		}
	}
	return n, nil
}

var machines = map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}

// libraries may be needed: PEP 600 names them, and the package of the C library has them.
var libraries = []string{"libc.so.6", "libdl.so.2", "libpthread.so.0", "libresolv.so.2"}

// oldest is the C library of manylinux2014, for which there is no older tag of both machines.
const oldest = 17

// tags returns the platforms on which the binary runs, as PEP 600 and PEP 656 name them.
func (n needs) tags() ([]string, error) {
	machine, ok := machines[n.machine]
	if !ok {
		return nil, fmt.Errorf("it is for %v: want x86-64 or aarch64", n.machine)
	}
	minor := oldest
	for _, library := range n.libraries {
		if !slices.Contains(libraries, library) && !strings.HasPrefix(library, "ld-linux-") {
			return nil, fmt.Errorf("it needs %s, and manylinux has no such library: build without it", library)
		}
	}
	for _, version := range n.versions {
		rest, ok := strings.CutPrefix(version, "GLIBC_2.")
		if !ok {
			return nil, fmt.Errorf("it needs the symbol version %s: want versions of GLIBC_2 only", version)
		}
		rest, _, _ = strings.Cut(rest, ".") // 2.2.5
		v, err := strconv.Atoi(rest)
		if err != nil {
			return nil, fmt.Errorf("it needs the symbol version %s: want a number", version)
		}
		minor = max(minor, v)
	}
	tags := []string{fmt.Sprintf("manylinux_2_%d_%s", minor, machine)}
	if minor == oldest {
		tags = append([]string{"manylinux2014_" + machine}, tags...)
	}
	if !n.loader {
		tags = append(tags, "musllinux_1_1_"+machine) // static: the C library does not matter
	}
	return tags, nil
}

// repack returns the wheel with the program, with fixed times, so that the same input gives the same bytes.
func repack(pure, release string, tags []string, program []byte) ([]byte, error) {
	from, err := zip.OpenReader(pure)
	if err != nil {
		return nil, err
	}
	defer from.Close()

	info := release + ".dist-info/"
	w := newWriter()
	for _, file := range from.File {
		data, err := contents(file)
		if err != nil {
			return nil, err
		}
		name := file.Name
		switch name {
		case info + "RECORD":
			continue
		case info + "WHEEL":
			if data, err = retag(data, tags); err != nil {
				return nil, err
			}
		case info + "METADATA":
			if data, err = license(data); err != nil {
				return nil, err
			}
		case info + "LICENSE":
			name = info + "licenses/LICENSE"
		}
		w.add(name, data, 0o644)
	}
	w.add(release+".data/scripts/stallspan", program, 0o755)
	return w.finish(info + "RECORD")
}

func contents(file *zip.File) ([]byte, error) {
	r, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// license gives the metadata the form that has the license as an SPDX expression (PEP 639), which setuptools writes
// from version 77 on. There, the text of the license is in the folder licenses.
func license(metadata []byte) ([]byte, error) {
	header, description, _ := strings.Cut(string(metadata), "\n\n")
	for _, change := range [][2]string{
		{"Metadata-Version: 2.1\n", "Metadata-Version: 2.4\n"},
		{"\nLicense: ", "\nLicense-Expression: "},
	} {
		if strings.Count(header, change[0]) != 1 {
			return nil, fmt.Errorf("METADATA lacks %q: is it of another setuptools than Debian 12 has?", change[0])
		}
		header = strings.Replace(header, change[0], change[1], 1)
	}
	return []byte(header + "\n\n" + description), nil
}

// retag changes the tags in the file WHEEL.
func retag(data []byte, tags []string) ([]byte, error) {
	const anywhere, purelib = "Tag: py3-none-any\n", "Root-Is-Purelib: true\n"
	text := string(data)
	if !strings.Contains(text, anywhere) || !strings.Contains(text, purelib) {
		return nil, fmt.Errorf("WHEEL lacks %q or %q: is it the wheel of setuptools?", anywhere, purelib)
	}
	lines := ""
	for _, tag := range tags {
		lines += "Tag: py3-none-" + tag + "\n"
	}
	text = strings.Replace(text, anywhere, lines, 1)
	return []byte(strings.Replace(text, purelib, "Root-Is-Purelib: false\n", 1)), nil
}

// writer writes a wheel, and its list of files.
type writer struct {
	zip    *zip.Writer
	buffer *bytes.Buffer
	record strings.Builder
	err    error // the first
}

func newWriter() *writer {
	w := &writer{buffer: &bytes.Buffer{}}
	w.zip = zip.NewWriter(w.buffer)
	return w
}

func (w *writer) add(name string, data []byte, mode os.FileMode) {
	sum := sha256.Sum256(data)
	fmt.Fprintf(&w.record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(data))
	w.put(name, data, mode)
}

func (w *writer) put(name string, data []byte, mode os.FileMode) {
	if w.err != nil {
		return
	}
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(mode)
	file, err := w.zip.CreateHeader(header)
	if err == nil {
		_, err = file.Write(data)
	}
	w.err = err
}

func (w *writer) finish(record string) ([]byte, error) {
	w.put(record, []byte(w.record.String()+record+",,\n"), 0o644)
	err := errors.Join(w.err, w.zip.Close())
	return w.buffer.Bytes(), err
}

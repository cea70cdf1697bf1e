// Command image makes the container images from binaries and a few files of Debian's packages, without a daemon:
//
//	image -debs DIR -out DIR -title NAME -version VERSION -created SECONDS ARCH=BINARY...
//
// DIR/ARCH has the packages. It writes an OCI layout and its tar file with all architectures, and for each architecture
// an archive for `docker load`. The same input gives the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

type options struct {
	debs, out, title, repository, version, revision string
	created                                         time.Time
	binaries                                        map[string]string // by architecture
}

func main() {
	var o options
	var seconds int64
	flag.StringVar(&o.debs, "debs", "", "the `folder` with a folder of Debian packages for each architecture")
	flag.StringVar(&o.out, "out", "", "the `folder` to write")
	flag.StringVar(&o.title, "title", "", "the image's and the program's name: stallspan or otelcol-stallspan")
	flag.StringVar(&o.repository, "repository", "stallspan", "where the image will be")
	flag.StringVar(&o.version, "version", "", "the program's version")
	flag.StringVar(&o.revision, "revision", "", "the program's commit")
	flag.Int64Var(&seconds, "created", 0, "the time of all files, in Unix seconds")
	flag.Parse()
	o.created = time.Unix(seconds, 0).UTC()
	o.binaries = map[string]string{}
	for _, arg := range flag.Args() {
		arch, path, ok := strings.Cut(arg, "=")
		if !ok {
			fmt.Fprintf(os.Stderr, "%s: want ARCH=BINARY\n", arg)
			os.Exit(2)
		}
		o.binaries[arch] = path
	}
	if err := o.write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// programs has the default arguments of each.
var programs = map[string][]string{
	"stallspan":         {"agent"},
	"otelcol-stallspan": {"--config=/etc/stallspan/collector.yaml"},
}

// user may do nothing but run the program. Its number is that of other images without a shell.
const user = 65532

// tag is the image's, in which no build metadata may be.
func (o *options) tag() string {
	return o.repository + "/" + o.title + ":" + strings.ReplaceAll(o.version, "+", "-")
}

func (o *options) write() error {
	if _, ok := programs[o.title]; !ok || len(o.binaries) == 0 || o.version == "" {
		return errors.New("want -title stallspan or otelcol-stallspan, -version, and a binary")
	}
	tag, err := name.NewTag(o.tag())
	if err != nil {
		return err
	}
	full, err := reference.ParseNormalizedNamed(o.tag())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range sorted(o.binaries) {
		image, err := o.image(arch)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
		if err := tarball.WriteToFile(o.file(arch+".docker.tar"), tag, image); err != nil {
			return err
		}
	}
	folder := o.file("oci")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	// What is in the layout is the index of all architectures, under its name for podman (ref.name) and for containerd,
	// which takes the full one as kubelets ask for it.
	names := map[string]string{
		"org.opencontainers.image.ref.name": tag.TagStr(),
		"io.containerd.image.name":          full.String(),
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s\n", o.tag(), digest)
	return o.pack(folder, o.file("oci.tar"))
}

func (o *options) file(kind string) string { return filepath.Join(o.out, o.title+"."+kind) }

// pack writes the layout as one file.
func (o *options) pack(folder, path string) error {
	var t tree
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name, _ := filepath.Rel(folder, path)
		if entry.IsDir() {
			t.folder(name, 0o755, 0)
			return nil
		}
		data, err := os.ReadFile(path)
		t.file(name, 0o644, data)
		return err
	})
	if err != nil {
		return err
	}
	data, err := t.tar(o.created)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func (o *options) image(arch string) (v1.Image, error) {
	base, packages, err := system(filepath.Join(o.debs, arch))
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(o.binaries[arch])
	if err != nil {
		return nil, err
	}
	var program tree
	program.file("usr/bin/"+o.title, 0o755, data)

	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, layer := range []struct {
		tree *tree
		by   string
	}{
		{base, "Debian: " + strings.Join(packages, ", ")},
		{&program, o.title + " " + o.version},
	} {
		data, err := layer.tree.tar(o.created)
		if err != nil {
			return nil, err
		}
		packed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:   packed,
			History: v1.History{Created: v1.Time{Time: o.created}, CreatedBy: layer.by},
		})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: o.created}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Entrypoint: []string{"/usr/bin/" + o.title},
		Cmd:        programs[o.title],
		WorkingDir: "/",
		Env: []string{
			"PATH=/usr/bin",
			"STALLSPAN_SOCKET=/run/stallspan/stallspan.sock",
			"XDG_STATE_HOME=/var/lib",
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":    o.title,
			"org.opencontainers.image.version":  o.version,
			"org.opencontainers.image.revision": o.revision,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source":   "https://github.com/stallspan/stallspan",
		},
	}
	return mutate.ConfigFile(image, config)
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// tree is the files of a layer.
type tree struct {
	entries map[string]entry
}

type entry struct {
	header tar.Header
	data   []byte
}

func (t *tree) add(header tar.Header, data []byte) {
	if t.entries == nil {
		t.entries = map[string]entry{}
	}
	for dir := filepath.Dir(header.Name); dir != "."; dir = filepath.Dir(dir) {
		if _, ok := t.entries[dir]; !ok {
			t.entries[dir] = entry{header: tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}}
		}
	}
	t.entries[header.Name] = entry{header, data}
}

func (t *tree) file(name string, mode int64, data []byte) {
	t.add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}, data)
}

func (t *tree) link(name, to string) {
	t.add(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}, nil)
}

func (t *tree) folder(name string, mode int64, owner int) {
	t.add(tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner}, nil)
}

// tar returns the files sorted by name, which is after the folder that they are in.
func (t *tree) tar(created time.Time) ([]byte, error) {
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	for _, name := range sorted(t.entries) {
		e := t.entries[name]
		e.header.ModTime, e.header.Format = created, tar.FormatPAX
		if e.header.Typeflag == tar.TypeDir {
			e.header.Name += "/"
		}
		if err := w.WriteHeader(&e.header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return data.Bytes(), err
}

// Package modelfile finds the files of a model: the weights that a program loads.
package modelfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// extensions of files with weights, in lower case. Some are used for other data, too (.bin, .pt): see minSize.
var extensions = []string{
	".safetensors", ".gguf", ".ggml", // Hugging Face, llama.cpp
	".pt", ".pth", ".ckpt", ".bin", ".distcp", // PyTorch
	".engine", ".plan", // TensorRT, Triton
	".onnx", ".onnx_data", ".pb", ".h5", ".keras", ".tflite", ".npz", ".msgpack", ".nemo", ".mar",
}

// minSize is the size of a file with weights, in bytes: settings and vocabularies are smaller.
const minSize = 1 << 20

// Bounds of a folder.
const (
	maxFiles   = 4096
	maxEntries = 100_000
)

// File is one file of a model.
type File struct {
	Path string
	Size int64 // bytes
}

// Is reports whether the name of a file is that of a model's weights.
func Is(name string) bool {
	return slices.Contains(extensions, strings.ToLower(filepath.Ext(name)))
}

// IsBlob reports whether a path is of a file that a store of models keeps under the SHA-256 of its content: in a cache
// of Hugging Face, where links of a snapshot lead to, or in a folder of blobs with names such as sha256-HASH.
// Vocabularies of over 10 MB are there, too. Caches of data sets have such folders, and do not count.
func IsBlob(name string) bool {
	dir, base := filepath.Split(name)
	hash, named := strings.CutPrefix(base, "sha256-")
	return len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == "" && strings.HasSuffix(dir, "/blobs/") &&
		(named || Repository(name) != "")
}

// IsWeights reports whether a path is of a file with weights that is complete.
func IsWeights(name string) bool { return Is(name) || IsBlob(name) }

// Repository returns the name of a model in a cache of Hugging Face, such as org/name, by the path of a file in it; ""
// elsewhere.
func Repository(name string) string {
	_, rest, found := strings.Cut(name, "/models--")
	if !found {
		return ""
	}
	folder, _, _ := strings.Cut(rest, "/")
	return strings.ReplaceAll(folder, "--", "/")
}

// PartialEnds are added to the name of a file that is being downloaded.
var PartialEnds = [...]string{".incomplete", ".part", ".partial", ".download", ".aria2", ".tmp"}

// IsPartial reports whether a path is of a file that is being downloaded, which gets its name when it is complete.
func IsPartial(name string) bool {
	base := filepath.Base(name)
	for _, end := range PartialEnds {
		if rest, found := strings.CutSuffix(base, end); found {
			return end == ".incomplete" && Repository(name) != "" || Is(rest)
		}
	}
	return false
}

// IsCompiled reports whether a path is in a cache of compiled kernels: of torch.compile, Triton, vLLM or CUDA.
func IsCompiled(name string) bool {
	for _, folder := range [...]string{
		"/torchinductor_", "/.triton/", "/triton_cache/", "/torch_compile_cache/", "/torch_extensions/", "/ComputeCache/",
		"/.nv/", "/.cache/flashinfer/", "/.cache/tvm", "/neuron-compile-cache/",
	} {
		if strings.Contains(name, folder) {
			return true
		}
	}
	return false
}

// Find returns the files of a model, by name: the file itself, whatever its name is, or those below a folder with the
// name of weights and at least 1 MiB. It follows symbolic links to files, as in the cache of Hugging Face, and counts a
// file once. It does not follow links to folders below.
func Find(path string) ([]File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		return []File{{path, info.Size()}}, nil
	case !info.IsDir():
		return nil, fmt.Errorf("%s is neither a file nor a folder: give those of a model", path)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil { // WalkDir does not follow a link
		return nil, err
	}
	var found []File
	var infos []fs.FileInfo
	entries := 0
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		if entries++; entries > maxEntries || len(found) == maxFiles {
			return errMany
		}
		if err != nil || entry.IsDir() || !Is(at) {
			return nil //nolint:nilerr // what may not be read is no file that a loader of this user reads
		}
		info, err := os.Stat(at)
		if err != nil || !info.Mode().IsRegular() || info.Size() < minSize ||
			slices.ContainsFunc(infos, func(x fs.FileInfo) bool { return os.SameFile(x, info) }) {
			return nil //nolint:nilerr // a link to nothing
		}
		found = append(found, File{at, info.Size()})
		infos = append(infos, info)
		return nil
	})
	switch {
	case errors.Is(err, errMany):
		return nil, fmt.Errorf("%s has too many files for a model (over %d, or %d entries): give a folder below it, or "+
			"one file", path, maxFiles, maxEntries)
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("there is no model below %s, as no file of 1 MiB or more ends in %s: give the file itself",
			path, strings.Join(extensions, ", "))
	}
	return found, nil
}

var errMany = errors.New("too many files")

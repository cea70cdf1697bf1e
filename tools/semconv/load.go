package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const manifestName = "manifest.yaml"

// registry holds all files. They stay separate, because the documentation has a section for each.
type registry struct {
	Manifest manifest
	Areas    []area // by name

	attributes map[string]*attribute
	groups     map[string]*group
	entities   map[string]*entity
}

// area is one file: "disk" for disk.yaml.
type area struct {
	Name string
	file
}

// load reads and validates every YAML file at the root of dir.
func load(dir fs.FS) (*registry, error) {
	r := &registry{
		attributes: map[string]*attribute{},
		groups:     map[string]*group{},
		entities:   map[string]*entity{},
	}
	paths, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, err
	}
	if !slices.Contains(paths, manifestName) {
		return nil, fmt.Errorf("no %s: run the generator in the semconv folder", manifestName)
	}
	for _, name := range paths {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		if name == manifestName {
			err = decode(text, &r.Manifest)
		} else {
			a := area{Name: strings.TrimSuffix(path.Base(name), ".yaml")}
			err = decode(text, &a.file)
			r.Areas = append(r.Areas, a)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r, r.validate()
}

// decode decodes the one document in text. It refuses unknown keys.
func decode(text []byte, v any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(v); err != nil {
		return err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document: keep to one a file")
	}
	return nil
}

// strict decodes a part of a document. Node.Decode would accept unknown keys.
func strict(node *yaml.Node, v any) error {
	text, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	if err := decode(text, v); err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	return nil
}

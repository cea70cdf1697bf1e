package agentconfig

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stallspan/stallspan/internal/config"
)

var (
	unknownKey = regexp.MustCompile(`^(line \d+): field (.*) not found in type .*$`)
	wrongType  = regexp.MustCompile(`^(line \d+): cannot unmarshal !!(\w+)(?: ` + "`(.*)`" + `)? into (\S+)$`)
)

// expected describes the Go types of the config to users.
var expected = map[string]string{
	"string": "text", "[]string": "a list, like [a, b]", "bool": "true or false",
	"time.Duration": "a duration, like 100ms",
	"int":           "a whole number, like 10", "float64": "a number, like 1.5",
	"[]action.Config": "a list of actions, each after a dash", "[]config.Disk": "a list of disks, each after a dash",
}

// acceptZero removes the errors of durations that are 0 without a unit. Their fields keep the default.
func acceptZero(err error) error {
	types := new(yaml.TypeError)
	if !errors.As(err, &types) {
		return err
	}
	types.Errors = slices.DeleteFunc(types.Errors, func(text string) bool {
		m := wrongType.FindStringSubmatch(text)
		return m != nil && m[3] == "0" && m[4] == "time.Duration"
	})
	if len(types.Errors) == 0 {
		return nil
	}
	return types
}

// yamlError returns the first error of a YAML decoder in one line that names no Go types.
func yamlError(err error) error {
	types := new(yaml.TypeError)
	if !errors.As(err, &types) || len(types.Errors) == 0 {
		text, syntax := strings.CutPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: ")
		if syntax {
			return fmt.Errorf("it is not valid YAML: %s", text)
		}
		return errors.New(text) // of a value, such as a severity
	}
	text := strings.ReplaceAll(types.Errors[0], "\n", " ")
	if m := unknownKey.FindStringSubmatch(text); m != nil {
		if near := config.Nearest(m[2], configKeys(reflect.TypeFor[Config]())); near != "" {
			return fmt.Errorf("%s: there is no key %.60q here: did you mean %s?", m[1], m[2], near)
		}
		return fmt.Errorf("%s: there is no key %.60q here: stallspan docs agent lists the keys", m[1], m[2])
	}
	if m := wrongType.FindStringSubmatch(text); m != nil {
		want, found := expected[m[4]], map[string]string{"seq": "a list", "map": "a mapping"}[m[2]]
		if _, err := strconv.ParseFloat(m[3], 64); err == nil && m[4] == "time.Duration" { // nanoseconds to a Collector
			return fmt.Errorf("%s: %q is a duration without a unit: write %sms or %ss", m[1], m[3], m[3], m[3])
		}
		if want == "" {
			want = "a mapping, lines of the form KEY: VALUE"
		}
		if found == "" {
			found = fmt.Sprintf("%q", m[3])
		}
		return fmt.Errorf("%s: %s is not %s", m[1], found, want)
	}
	return errors.New(text)
}

// configKeys returns all keys of a config, for suggestions.
func configKeys(t reflect.Type) (keys []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return configKeys(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			if key := field.Tag.Get("yaml"); key != "" && key != "-" {
				keys = append(append(keys, key), configKeys(field.Type)...)
			}
		}
	}
	return keys
}

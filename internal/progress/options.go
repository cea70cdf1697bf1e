package progress

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Options are the user's own patterns, in the syntax of Go's regexp package (RE2). Each replaces the built-in patterns
// of its kind; an empty one keeps them.
type Options struct {
	// EpochPattern (--epoch-pattern) matches lines of an epoch; the first with a new number starts it. The number is
	// the group named "epoch", or the first group. Without a group every match starts an epoch, counted from 0. A
	// number with a decimal point is the amount done: 1.0 ends epoch 0.
	EpochPattern string
	// EpochEnd (--epoch-end-pattern) matches the line that ends an epoch. Its groups are those of EpochPattern. Alone, an
	// epoch begins where the one before ended.
	EpochEnd string
	// LoadBegin and LoadEnd (--load-begin, --load-end) match the lines around a model load. Both are required. The
	// group named "model" is the model's name.
	LoadBegin, LoadEnd string
}

// missing names the option of a pair that is not given.
func missing(begin string) error {
	option := "--load-end"
	if begin == "" {
		option = "--load-begin"
	}
	return fmt.Errorf("%s is missing: give --load-begin and --load-end together", option)
}

// firstGroup is the first group whose name has no meaning here, -1 if there is no such group.
func firstGroup(re *regexp.Regexp) int {
	for i, name := range re.SubexpNames() {
		if i > 0 && name != "total" && name != "step" && name != "steps" && name != "model" {
			return i
		}
	}
	return -1
}

// compile returns an error of one line with the fault, and the part of the expression that has it.
func compile(option, expr string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(expr)
	var fault *syntax.Error
	switch {
	case errors.As(err, &fault):
		return nil, fmt.Errorf("%s %q: %s in %q: write an RE2 expression, with a \\ before literal characters", option, expr,
			fault.Code, fault.Expr)
	case err != nil:
		return nil, fmt.Errorf("%s %q: %w: write an RE2 expression", option, expr, err)
	case re.MatchString(""):
		return nil, fmt.Errorf("%s %q matches every line: add words of the line", option, expr)
	}
	return re, nil
}

package consumer

import (
	"fmt"
	"strings"
)

// The type fault is a fault of a Config. The command semel finds faults in the errors of constructors, and reports each
// fault with the keys of a policy in place of the names of Go. So a rule about settings exists once, in this package.
type fault struct {
	settings []string
	format   string
	args     []any
}

// Settings returns the fields that the rule reads. The first field has the fault.
func (f *fault) Settings() []string { return f.settings }

// In returns the text of the fault, with other names for fields and constants.
func (f *fault) In(names *strings.Replacer) string {
	return fmt.Sprintf(names.Replace(f.format), f.args...)
}

func (f *fault) Error() string { return f.settings[0] + ": " + f.In(strings.NewReplacer()) }

// faultList is the list of faults of a Config.
type faultList []error

// addIf adds a fault if the parameter broken is true, and returns the value of broken. The parameter settings contains
// the fields that the rule reads, separated by spaces; the first field has the fault. The text after "; " is the
// remedy.
func (f *faultList) addIf(broken bool, settings, format string, a ...any) bool {
	if broken {
		*f = append(*f, &fault{strings.Fields(settings), format, a})
	}
	return broken
}

// addError adds the error of a method Validate.
func (f *faultList) addError(settings string, err error) {
	f.addIf(err != nil, settings, "%v", err)
}

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/legible"
)

// The exit codes. The documentation and scripts of users rely on the values of the exit codes.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitPolicy      = 3
	exitFound       = 4
	ExitInterrupted = 130
)

// Failure is an error with an exit code. Errors of the library cobra are not Failures; they count as wrong
// usage.
type Failure struct {
	code int
	err  error
}

func (f *Failure) Error() string { return f.err.Error() }
func (f *Failure) Unwrap() error { return f.err }

// Failed returns err with exit code 1, which means that the command failed. Failed returns nil for nil.
func Failed(err error) error {
	if err == nil {
		return nil
	}
	return &Failure{ExitFailed, err}
}

// Found returns err with exit code 4, which means that the command looked for problems and found some.
func Found(err error) error { return &Failure{exitFound, err} }

// UsageError returns an error with exit code 2, for wrong usage that cobra does not detect.
func UsageError(format string, args ...any) error {
	return &Failure{ExitUsage, fmt.Errorf(format, args...)}
}

// Faults are the faults of a policy.
type Faults []shape.Fault

func (f Faults) Error() string { return fmt.Sprintf("the policy has %d faults", len(f)) }

// Report prints err and returns the exit code for err.
func Report(w io.Writer, err error) int {
	var wrong Faults
	var f *Failure
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &wrong):
		for _, fault := range wrong {
			fmt.Fprintln(w, terminal.Line(fault.String()))
		}
		return ExitPolicy
	case errors.Is(err, context.Canceled) && !errors.Is(err, semel.ErrHalted):
		if rest := withoutCancellations(err); rest != nil {
			printError(w, rest)
		}
		fmt.Fprintln(w, "semel: interrupted")
		return ExitInterrupted
	case errors.As(err, &f):
		printError(w, f.err)
		return f.code
	default:
		printError(w, err)
		fmt.Fprintln(w, "Run 'semel --help' for usage.")
		return ExitUsage
	}
}

// withoutCancellations returns the errors that err joins, except cancellations. The function returns nil
// if only cancellations are joined.
func withoutCancellations(err error) error {
	for wrapped := err; wrapped != nil; wrapped = errors.Unwrap(wrapped) {
		joined, ok := wrapped.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		var rest []error
		for _, one := range joined.Unwrap() {
			if errors.Is(one, context.Canceled) {
				one = withoutCancellations(one)
			}
			rest = append(rest, one)
		}
		return errors.Join(rest...)
	}
	return nil
}

// printError prints the errors that err joins, one per line.
func printError(w io.Writer, err error) {
	for _, line := range terminal.Lines(err) {
		fmt.Fprintln(w, "semel: "+message(line))
	}
}

// durationPatterns matches durations in errors of the library, with the words before each duration. The field says is
// the replacement, in which % stands for the duration in the format of policies.
var durationPatterns = []struct {
	at   *regexp.Regexp
	says string
}{
	{regexp.MustCompile(`\bRetention\.Keep is ([0-9.hmsµn]+), and`), "its retention is %, and"},
	{regexp.MustCompile(`\ba copy can come ([0-9.hmsµn]+) late\b`), "a copy can come % late"},
	{regexp.MustCompile(`\bkeeps markers for ([0-9.hmsµn]+) only\b`), "keeps markers for % only"},
}

// message returns a line of an error, with durations in the format of policies.
func message(line string) string {
	line = operate.Plain(line)
	for _, s := range durationPatterns {
		line = s.at.ReplaceAllStringFunc(line, func(found string) string {
			d, err := time.ParseDuration(s.at.FindStringSubmatch(found)[1])
			if err != nil {
				return found
			}
			return strings.Replace(s.says, "%", legible.Span(d), 1)
		})
	}
	return line
}

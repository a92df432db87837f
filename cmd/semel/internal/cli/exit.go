package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
)

// The exit codes; docs and scripts rely on them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPolicy      = 3
	exitFound       = 4
	exitInterrupted = 130
)

// failure is an error of a command that was used rightly. What cobra reports
// by itself is wrong use.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failed makes an error of a command's work exit with 1; nil stays nil.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &failure{exitFailed, err}
}

// checked is failed, but for tables that do not fit: finding those is what the
// command is for, and exits with 4.
func checked(err error) error {
	if errors.Is(err, semel.ErrSchema) {
		return &failure{exitFound, err}
	}
	return failed(err)
}

// usage is wrong use that only the command itself can see.
func usage(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

// faults are what is wrong with a policy.
type faults []policy.Fault

func (f faults) Error() string { return fmt.Sprintf("the policy has %d faults", len(f)) }

// report prints the error as its kind wants and returns the exit code.
func report(w io.Writer, err error) int {
	var wrong faults
	var f *failure
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &wrong):
		for _, fault := range wrong {
			fmt.Fprintln(w, terminal.Line(fault.String()))
		}
		return exitPolicy
	case errors.Is(err, context.Canceled) && !errors.Is(err, semel.ErrHalted):
		if rest := uncancelled(err); rest != nil {
			printError(w, rest)
		}
		fmt.Fprintln(w, "semel: interrupted")
		return exitInterrupted
	case errors.As(err, &f):
		printError(w, f.err)
		return f.code
	default:
		printError(w, err)
		fmt.Fprintln(w, "Run 'semel --help' for usage.")
		return exitUsage
	}
}

// uncancelled is what err joins beside a cancellation, nil if that is all.
func uncancelled(err error) error {
	for wrapped := err; wrapped != nil; wrapped = errors.Unwrap(wrapped) {
		joined, ok := wrapped.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		var rest []error
		for _, one := range joined.Unwrap() {
			if errors.Is(one, context.Canceled) {
				one = uncancelled(one)
			}
			rest = append(rest, one)
		}
		return errors.Join(rest...)
	}
	return nil
}

// printError prints each of the errors that err joins on a line of its own.
func printError(w io.Writer, err error) {
	for _, line := range terminal.Lines(err) {
		fmt.Fprintln(w, "semel: "+message(line))
	}
}

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP
// ends, so that a command can finish what it does. A second SIGINT or SIGTERM
// ends the process at once; a second SIGHUP does not, because of one terminal
// that goes away both the kernel and the shell tell. Who started the process
// with SIGHUP ignored, as nohup does, wants it to go on.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 3)
	wanted := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		wanted = append(wanted, syscall.SIGHUP)
	}
	signal.Notify(signals, wanted...)
	var watch sync.WaitGroup
	watch.Go(func() {
		for s := range signals {
			if ctx.Err() != nil && s != syscall.SIGHUP {
				os.Exit(exitInterrupted)
			}
			cancel()
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		watch.Wait()
		cancel()
	}
}

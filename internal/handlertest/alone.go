package handlertest

import (
	"context"
	"fmt"
	"slices"
)

// Alone calls the function run with a T that is not part of a test. After run, Alone calls the functions that run
// passed to Cleanup, the last function first. A call of Fatal ends run, and Alone returns the text of Fatal as the
// error.
func Alone(ctx context.Context, name string, run func(t T) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	t := &alone{ctx: ctx, name: name}
	defer func() {
		cancel()
		for _, f := range slices.Backward(t.cleanup) {
			f()
		}
	}()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case fatal:
			err = r
		default:
			panic(r)
		}
	}()
	return run(t)
}

// fatal is the panic with which Fatal ends the function run.
type fatal string

func (f fatal) Error() string { return string(f) }

type alone struct {
	ctx     context.Context
	name    string
	cleanup []func()
}

func (t *alone) Helper()                           {}
func (t *alone) Name() string                      { return t.name }
func (t *alone) Context() context.Context          { return t.ctx }
func (t *alone) Cleanup(f func())                  { t.cleanup = append(t.cleanup, f) }
func (t *alone) Fatal(args ...any)                 { panic(fatal(fmt.Sprint(args...))) }
func (t *alone) Fatalf(format string, args ...any) { panic(fatal(fmt.Sprintf(format, args...))) }

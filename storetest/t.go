package storetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// T is a test whose cases are run or recorded.
type T struct {
	testing.TB
	run func(name, law string, f func(*T))
}

// Run runs a case: its name, the law it tests in one sentence, and the test.
func (t *T) Run(name, law string, f func(t *T)) { t.run(name, law, f) }

// patience is how long a call to the store may take. No test waits for it; a
// store that blocks for ever meets it.
const patience = 30 * time.Second

// context is for calls that must end.
func (t *T) context() context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	return ctx
}

func (t *T) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lacks skips a case that needs a field of the instance, or an ability, that is not set.
func (t *T) lacks(field string) {
	t.Helper()
	t.Skipf("%s is not set, so this law is not tested", field)
}

// recorder notes failures instead of failing the test around it.
type recorder struct {
	testing.TB
	mu       sync.Mutex // guards the fields below
	failed   bool
	text     string
	cleanups []func()
}

func (r *recorder) fail(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.text += strings.TrimSpace(text) + "\n"
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Error(args ...any)                 { r.fail(fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }
func (r *recorder) Fatal(args ...any)                 { r.fail(fmt.Sprintln(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) {
	r.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}
func (r *recorder) Skipf(string, ...any)     { runtime.Goexit() }
func (r *recorder) Fail()                    { r.fail("failed") }
func (r *recorder) FailNow()                 { r.fail("failed"); runtime.Goexit() }
func (r *recorder) Log(...any)               {}
func (r *recorder) Logf(string, ...any)      {}
func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return context.Background() }

// end notes a panic as a failure and cleans up, last things first.
func (r *recorder) end() {
	if p := recover(); p != nil {
		r.fail(fmt.Sprint("panic: ", p))
	}
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

type suite[Tx any] struct{ h Harness[Tx] }

// fixture is an open store with helper methods for the cases.
type fixture[Tx any] struct {
	t *T
	Instance[Tx]
	scope int64
	named map[int64]semel.Key // the consumer and source of each scope
}

// open returns a fixture with an empty store that has one scope.
func (s suite[Tx]) open(t *T) *fixture[Tx] {
	t.Helper()
	h := &fixture[Tx]{t: t, Instance: s.h.Open(t), named: map[int64]semel.Key{}}
	h.scope = h.scopeOf("billing", "shop", 0)
	return h
}

// run runs a case on an empty store.
func (s suite[Tx]) run(t *T, name, law string, f func(t *T, h *fixture[Tx])) {
	t.Run(name, law, func(t *T) { f(t, s.open(t)) })
}

func (h *fixture[Tx]) scopeOf(consumer, source string, generation int64) int64 {
	h.t.Helper()
	n := h.scopeNumber(consumer, source, generation)
	h.named[n] = semel.Key{Consumer: consumer, Source: source}
	return n
}

// scopeNumber returns the number of a scope that no mark uses. In contrast to scopeOf, scopeNumber can be called
// concurrently.
func (h *fixture[Tx]) scopeNumber(consumer, source string, generation int64) int64 {
	h.t.Helper()
	n, err := h.Store.Scope(h.t.context(), consumer, source, generation)
	h.t.must(err)
	return n
}

// withScope returns the mark m with another scope.
func (h *fixture[Tx]) withScope(m store.Mark, scope int64) store.Mark {
	m.Scope, m.Consumer, m.Source = scope, h.named[scope].Consumer, h.named[scope].Source
	return m
}

func (h *fixture[Tx]) mark(id string) store.Mark {
	return h.withScope(store.Mark{ID: []byte(id), As: store.Applied}, h.scope)
}

func (h *fixture[Tx]) markAll(ids ...string) []store.Mark {
	marks := make([]store.Mark, len(ids))
	for i, id := range ids {
		marks[i] = h.mark(id)
	}
	return marks
}

// contentMark returns a mark with a fingerprint of version 1.
func (h *fixture[Tx]) contentMark(id string, content byte) store.Mark {
	m := h.mark(id)
	m.Fingerprint = semel.Fingerprint{Version: 1, Sum: [16]byte{content}}
	return m
}

func (h *fixture[Tx]) begin(marks ...store.Mark) (store.Batch[Tx], []store.Verdict) {
	h.t.Helper()
	b, v, err := h.Store.Begin(h.t.context(), store.TxOptions{}, marks)
	h.t.must(err)
	if len(v) != len(marks) {
		h.t.Fatalf("%d verdicts for %d marks", len(v), len(marks))
	}
	return b, v
}

func (h *fixture[Tx]) commit(b store.Batch[Tx], e store.Ending) {
	h.t.Helper()
	if r := b.Commit(h.t.context(), e); r.Outcome != store.Committed {
		h.t.Fatalf("Commit returned %+v, want committed", r)
	}
}

// deliver processes a batch as the consumer does: it writes the marks, applies the effects of new messages, and
// commits. The result contains the store's answers.
func (h *fixture[Tx]) deliver(marks ...store.Mark) []store.Verdict {
	h.t.Helper()
	b, v := h.begin(marks...)
	h.apply(b, marks, v)
	h.commit(b, store.Ending{})
	return v
}

func (h *fixture[Tx]) apply(b store.Batch[Tx], marks []store.Mark, verdicts []store.Verdict) {
	h.t.Helper()
	for i, v := range verdicts {
		if v.Kind == store.Fresh && marks[i].As == store.Applied {
			h.t.must(h.Effect(h.t.context(), b.Tx(i), string(marks[i].ID)))
		}
	}
}

// asks returns the store's answers for marks and rolls back, so that no marker is written.
func (h *fixture[Tx]) asks(marks ...store.Mark) []store.Verdict {
	h.t.Helper()
	b, v := h.begin(marks...)
	b.Rollback(h.t.context())
	return v
}

func (h *fixture[Tx]) wantCount(name string, want int) {
	h.t.Helper()
	if got := h.Count(h.t, name); got != want {
		h.t.Errorf("%d effects of %.40q, want %d", got, name, want)
	}
}

// wantClass checks that the store classifies an error as one of the given classes.
func (h *fixture[Tx]) wantClass(err error, want ...store.Class) {
	h.t.Helper()
	if c := h.Store.Classify(err); !slices.Contains(want, c) {
		h.t.Errorf("%v is of class %v, want one of %v", err, c, want)
	}
}

// Answers of the store that the cases expect.
var (
	fresh    = store.Verdict{Kind: store.Fresh}
	conflict = store.Verdict{Kind: store.Conflict}
	busy     = store.Verdict{Kind: store.Busy}
)

func already(o store.Outcome) store.Verdict {
	return store.Verdict{Kind: store.Seen, Was: o}
}

// wantKinds compares answers of the store, but ignores whether a conflict already has a row.
func (h *fixture[Tx]) wantKinds(got []store.Verdict, want ...store.Verdict) {
	h.t.Helper()
	for i := range want {
		if got[i].Kind != want[i].Kind || got[i].Was != want[i].Was {
			h.t.Errorf("verdict %d is %s, want %s", i, got[i], want[i])
		}
	}
}

// runConcurrently calls f n times concurrently, and waits until all calls have returned.
func runConcurrently(n int, f func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

// T is a test that runs the cases or records their failures.
type T struct {
	testing.TB
	run func(name, law string, f func(*T))
}

// Run runs a case: its name, the law that it tests, and the test function.
func (t *T) Run(name, law string, f func(t *T)) { t.run(name, law, f) }

// patience is the timeout of a call to the store, which only a store that hangs reaches.
const patience = 30 * time.Second

// context returns a context with the timeout patience.
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

// wantErr checks that the error of a call wraps the expected error.
func (t *T) wantErr(act string, got, expected error) {
	t.Helper()
	if !errors.Is(got, expected) {
		t.Errorf("%s: %v, want %v", act, got, expected)
	}
}

// errOf returns the error of a call that returns a value and an error.
func errOf[V any](_ V, err error) error { return err }

// needs skips the case if a field of the instance, or an ability, is not set.
func (t *T) needs(field string, set bool) {
	t.Helper()
	if !set {
		t.Skipf("%s is not set, so this law is not tested", field)
	}
}

// recorder records failures without failing the test.
type recorder struct {
	testing.TB
	mu       sync.Mutex // protects the following fields
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

func (r *recorder) Error(args ...any) { r.fail(fmt.Sprintln(args...)) }

func (r *recorder) Errorf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) { r.fail(fmt.Sprintln(args...)); runtime.Goexit() }

func (r *recorder) Fatalf(format string, args ...any) {
	r.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *recorder) Skipf(string, ...any) { runtime.Goexit() }

func (r *recorder) Fail() { r.fail("failed") }

func (r *recorder) FailNow() { r.fail("failed"); runtime.Goexit() }

func (r *recorder) Log(...any) {}

func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Helper() {}

func (r *recorder) Context() context.Context { return context.Background() }

// end records a panic as a failure, and runs the cleanup functions, the last one first.
func (r *recorder) end() {
	if p := recover(); p != nil {
		r.fail(fmt.Sprint("panic: ", p))
	}
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

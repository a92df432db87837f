package storetest

import (
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// suite holds the cases.
type suite[Tx any] struct{ h Harness[Tx] }

// fixture is an open store and what the cases do with it.
type fixture[Tx any] struct {
	t *T
	Instance[Tx]
	scope int64
	named map[int64]semel.Key // consumers and sources of scopes
}

// opened is an empty store with one scope.
func (s suite[Tx]) opened(t *T) *fixture[Tx] {
	t.Helper()
	h := &fixture[Tx]{t: t, Instance: s.h.Open(t), named: map[int64]semel.Key{}}
	h.scope = h.scopeOf("billing", "shop", 0)
	return h
}

func (h *fixture[Tx]) scopeOf(consumer, source string, generation int64) int64 {
	h.t.Helper()
	n := h.scopeNumber(consumer, source, generation)
	h.named[n] = semel.Key{Consumer: consumer, Source: source}
	return n
}

// scopeNumber is scopeOf for a scope under which nothing is marked; many may ask at once.
func (h *fixture[Tx]) scopeNumber(consumer, source string, generation int64) int64 {
	h.t.Helper()
	n, err := h.Store.Scope(h.t.context(), consumer, source, generation)
	h.t.must(err)
	return n
}

// under returns the mark for another scope.
func (h *fixture[Tx]) under(m store.Mark, scope int64) store.Mark {
	m.Scope, m.Consumer, m.Source = scope, h.named[scope].Consumer, h.named[scope].Source
	return m
}

func (h *fixture[Tx]) mark(id string) store.Mark {
	return h.under(store.Mark{ID: []byte(id), As: store.Applied}, h.scope)
}

func (h *fixture[Tx]) markAll(ids ...string) []store.Mark {
	marks := make([]store.Mark, len(ids))
	for i, id := range ids {
		marks[i] = h.mark(id)
	}
	return marks
}

// print is a mark with a fingerprint of version 1.
func (h *fixture[Tx]) print(id string, content byte) store.Mark {
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
		h.t.Fatalf("the commit says %+v, want committed", r)
	}
}

// deliver does what the engine does with a batch: marks, the effects of what
// is fresh, and the commit. It returns the verdicts.
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

// asks returns the verdicts on marks without leaving a trace.
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

// The verdicts that stores are asked for.
var (
	fresh    = store.Verdict{Kind: store.Fresh}
	conflict = store.Verdict{Kind: store.Conflict}
	busy     = store.Verdict{Kind: store.Busy}
)

func already(o store.Outcome) store.Verdict {
	return store.Verdict{Kind: store.Seen, Was: o}
}

// wantKinds compares verdicts, but for whether a conflict's row is known.
func (h *fixture[Tx]) wantKinds(got []store.Verdict, want ...store.Verdict) {
	h.t.Helper()
	for i := range want {
		if got[i].Kind != want[i].Kind || got[i].Was != want[i].Was {
			h.t.Errorf("verdict %d is %s, want %s", i, got[i], want[i])
		}
	}
}

// together calls f n times at once and waits until all have returned.
func together(n int, f func(i int)) {
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

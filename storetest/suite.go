package storetest

import (
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
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
func (h *fixture[Tx]) under(m contract.Mark, scope int64) contract.Mark {
	m.Scope, m.Consumer, m.Source = scope, h.named[scope].Consumer, h.named[scope].Source
	return m
}

func (h *fixture[Tx]) mark(id string) contract.Mark {
	return h.under(contract.Mark{ID: []byte(id), As: contract.Applied}, h.scope)
}

func (h *fixture[Tx]) markAll(ids ...string) []contract.Mark {
	marks := make([]contract.Mark, len(ids))
	for i, id := range ids {
		marks[i] = h.mark(id)
	}
	return marks
}

// print is a mark with a fingerprint of version 1.
func (h *fixture[Tx]) print(id string, content byte) contract.Mark {
	m := h.mark(id)
	m.Fingerprint = semel.Fingerprint{Version: 1, Sum: [16]byte{content}}
	return m
}

func (h *fixture[Tx]) begin(marks ...contract.Mark) (contract.Batch[Tx], []contract.Verdict) {
	h.t.Helper()
	b, v, err := h.Store.Begin(h.t.context(), contract.TxOptions{}, marks)
	h.t.must(err)
	if len(v) != len(marks) {
		h.t.Fatalf("%d verdicts for %d marks", len(v), len(marks))
	}
	return b, v
}

func (h *fixture[Tx]) commit(b contract.Batch[Tx], e contract.Ending) {
	h.t.Helper()
	if r := b.Commit(h.t.context(), e); r.Outcome != contract.Committed {
		h.t.Fatalf("the commit says %+v, want committed", r)
	}
}

// deliver does what the engine does with a batch: marks, the effects of what
// is fresh, and the commit. It returns the verdicts.
func (h *fixture[Tx]) deliver(marks ...contract.Mark) []contract.Verdict {
	h.t.Helper()
	b, v := h.begin(marks...)
	h.apply(b, marks, v)
	h.commit(b, contract.Ending{})
	return v
}

func (h *fixture[Tx]) apply(b contract.Batch[Tx], marks []contract.Mark, verdicts []contract.Verdict) {
	h.t.Helper()
	for i, v := range verdicts {
		if v.Kind == contract.Fresh && marks[i].As == contract.Applied {
			h.t.must(h.Effect(h.t.context(), b.Tx(i), string(marks[i].ID)))
		}
	}
}

// asks returns the verdicts on marks without leaving a trace.
func (h *fixture[Tx]) asks(marks ...contract.Mark) []contract.Verdict {
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
	fresh    = contract.Verdict{Kind: contract.Fresh}
	conflict = contract.Verdict{Kind: contract.Conflict}
	busy     = contract.Verdict{Kind: contract.Busy}
)

func already(o contract.Outcome) contract.Verdict {
	return contract.Verdict{Kind: contract.Seen, Was: o}
}

// wantKinds compares verdicts, but for whether a conflict's row is known.
func (h *fixture[Tx]) wantKinds(got []contract.Verdict, want ...contract.Verdict) {
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

func (s suite[Tx]) abilities(t *T) {
	t.Run("a_store_has_the_abilities_it_declares_and_no_others",
		"What a store declares it has, and what it does not declare it has not, so that a missing ability is an error at start.",
		func(t *T) {
			store := s.h.Open(t).Store
			_, inbox := store.(contract.Inbox)
			_, marker := store.(contract.TxMarker[Tx])
			_, positions := store.(contract.PositionStore)
			_, offsets := store.(contract.OffsetStore)
			_, able := store.(contract.Leases)
			_, calls := store.(contract.Calls)
			_, resolver := store.(contract.Resolver)
			_, streams := store.(contract.Streams)
			_, reaper := store.(contract.Reaper)
			got := s.h.Can
			_, controls := store.(contract.Controls)
			_, derivations := store.(contract.Derivations)
			keeper, days := store.(contract.PartitionedMarkers)
			_, got.Steps = store.(contract.StepWriter)
			_, got.Look = store.(contract.MarkerLookup)
			_, got.Gather = store.(contract.BatchCombiner[Tx])
			got.Days = days && keeper.PartitionedBy() != ""
			got.Inbox, got.MarkIn, got.Positions, got.Leases, got.Streams = inbox, marker, positions, able, streams
			got.Calls = calls && resolver
			got.Intents = hasIntents(store)
			_, got.Emission = store.(contract.Emitter)
			got.Results = hasResults(store)
			got.Replays = hasReplays(store)
			got.Audit, got.Edits, got.Erasure = hasAudit(store), hasEdits(store), hasErasure(store)
			_, got.Generations = store.(contract.Generations)
			got.Retention, got.Controls, got.Derivations, got.Offsets = reaper, controls, derivations, offsets
			if got != s.h.Can {
				t.Errorf("the store has %+v and declares %+v", got, s.h.Can)
			}
		})
}

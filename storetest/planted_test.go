package storetest_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// broken is a memstore with a fault. Its functions replace what is right.
type broken struct {
	*memstore.Store
	verdict func(store.Mark, store.Verdict) store.Verdict
	mark    func(store.Mark) store.Mark
	batch   func(*broken, store.Batch[*memstore.Tx], []store.Mark) store.Batch[*memstore.Tx]
}

type batch = store.Batch[*memstore.Tx]

func (s *broken) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (batch, []store.Verdict, error) {
	if s.mark != nil {
		marks = slices.Clone(marks)
		for i := range marks {
			marks[i] = s.mark(marks[i])
		}
	}
	b, verdicts, err := s.Store.Begin(ctx, o, marks)
	if err == nil && s.verdict != nil {
		for i := range verdicts {
			verdicts[i] = s.verdict(marks[i], verdicts[i])
		}
	}
	if err == nil && s.batch != nil {
		b = s.batch(s, b, marks)
	}
	return b, verdicts, err
}

// marksOutlive commits the marks alone when the batch is rolled back.
type marksOutlive struct {
	batch
	store *memstore.Store
	marks []store.Mark
}

func (b marksOutlive) Rollback(ctx context.Context) {
	b.batch.Rollback(ctx)
	if again, _, err := b.store.Begin(ctx, store.TxOptions{}, b.marks); err == nil {
		again.Commit(ctx, store.Ending{})
	}
}

// noTrim forgets what is to be taken back, noRows what is to be written.
type noTrim struct{ batch }

func (b noTrim) Commit(ctx context.Context, e store.Ending) store.Result {
	e.Trim = nil
	return b.batch.Commit(ctx, e)
}

type noRows struct{ batch }

func (b noRows) Commit(ctx context.Context, e store.Ending) store.Result {
	e.Rows = nil
	return b.batch.Commit(ctx, e)
}

// halfCommit says that it did not commit although it did.
type halfCommit struct{ batch }

func (b halfCommit) Commit(ctx context.Context, e store.Ending) store.Result {
	r := b.batch.Commit(context.WithoutCancel(ctx), e)
	if ctx.Err() != nil {
		r = store.Result{Outcome: store.NotCommitted, Class: store.ClassDown, Culprit: store.NoCulprit, Err: ctx.Err()}
	}
	return r
}

// splitCommit commits effects and marks one after the other.
type splitCommit struct {
	batch
	store *memstore.Store
}

func (b splitCommit) Tx(int) *memstore.Tx {
	own, _, err := b.store.Begin(context.Background(), store.TxOptions{}, nil)
	if err != nil {
		panic(err)
	}
	tx := own.Tx(store.All)
	_ = tx.Add("a", 1)
	own.Commit(context.Background(), store.Ending{})
	return b.batch.Tx(0)
}

type anyRevision struct{ *memstore.Store }

func (s anyRevision) Discard(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	for i := range rows {
		now, err := s.Rows(ctx, store.RowFilter{Numbers: []int64{rows[i].Number}})
		if err == nil && len(now) == 1 {
			rows[i] = now[0].Seen()
		}
	}
	return s.Store.Discard(ctx, a, rows...)
}

// oneForAll gives up an act on many rows with the first row that is refused, and never discards the last.
type oneForAll struct{ *memstore.Store }

func (s oneForAll) Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) (errs []error) {
	for i := range rows {
		if i > 0 && errs[i-1] != nil {
			errs = append(errs, errs[i-1])
			continue
		}
		errs = append(errs, s.Store.Requeue(ctx, a, rows[i])...)
	}
	return errs
}

func (s oneForAll) Discard(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return append(s.Store.Discard(ctx, a, rows[:max(1, len(rows)-1)]...), make([]error, min(1, len(rows)-1))...)
}

// keepsLast keeps what is there for nobody.
type keepsLast struct{ *memstore.Store }

func (s keepsLast) KeepPosition(ctx context.Context, consumer, lane string, p source.Position) (source.Position, error) {
	return p, s.SavePosition(ctx, consumer, lane, p)
}

// looksUp asks what stands under former identities in a transaction of its own, and writes
// nothing there.
type looksUp struct{ *memstore.Store }

func (s looksUp) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (batch, []store.Verdict, error) {
	asked := slices.Clone(marks)
	before, found, err := s.Store.Begin(ctx, o, marks)
	if err != nil {
		return nil, nil, err
	}
	before.Rollback(ctx)
	for i := range asked {
		asked[i].Previous = nil
	}
	b, verdicts, err := s.Store.Begin(ctx, o, asked)
	for i := range verdicts {
		if marks[i].Previous != nil {
			verdicts[i] = found[i]
		}
	}
	return b, verdicts, err
}

// forgetsGenerations takes another derivation for a generation that has one.
type forgetsGenerations struct{ *memstore.Store }

func (s forgetsGenerations) AddDerivation(ctx context.Context, d admin.Derivation) (bool, error) {
	all, err := s.Derivations(ctx, d.Consumer)
	for err == nil && slices.ContainsFunc(all, func(there admin.Derivation) bool { return there.Generation == d.Generation && there.Text != d.Text }) {
		d.Generation++
	}
	return s.Store.AddDerivation(ctx, d)
}

// takesNames asks nobody who owned a name.
type takesNames struct{ *memstore.Store }

func (s takesNames) SetOwner(ctx context.Context, consumer, _, owner string) (bool, error) {
	was, err := s.Owner(ctx, consumer)
	if err != nil {
		return false, err
	}
	return s.Store.SetOwner(ctx, consumer, was, owner)
}

type noInbox struct{ store.TxStore[*memstore.Tx] }

type deafClassify struct{ *memstore.Store }

// gullible takes an end of file of a handler's for the store's.
type gullible struct{ batch }

func (gullible) TxAborted() bool   { return false }
func (gullible) AbortCause() error { return nil }

func (gullible) ClassifyHandler(_ context.Context, err error) store.Class {
	if errors.Is(err, io.EOF) {
		return store.ClassDown
	}
	return store.ClassRetry
}

func (deafClassify) Classify(err error) store.Class {
	if errors.Is(err, memstore.ErrTxDone) {
		return store.ClassPermanent
	}
	return store.ClassRetry
}

type fault struct {
	name string
	// caught is part of the name of a case that must fail.
	caught string
	store  func(*memstore.Store) store.TxStore[*memstore.Tx]
}

var faults = []fault{
	{"marks survive a rollback", "law_3", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, batch: func(s *broken, b batch, m []store.Mark) batch { return marksOutlive{b, s.Store, m} }}
	}},
	{"everything is fresh", "trap_1_", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, verdict: func(store.Mark, store.Verdict) store.Verdict { return store.Verdict{Kind: store.Fresh} }}
	}},
	{"a parked message counts as applied", "trap_10", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, verdict: func(_ store.Mark, v store.Verdict) store.Verdict {
			if v.Already(store.Parked) {
				v.Was = store.Applied
			}
			return v
		}}
	}},
	{"what a newer release marked counts as applied", "trap_T104", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, verdict: func(_ store.Mark, v store.Verdict) store.Verdict {
			if v.Kind == store.Newer {
				v = store.Verdict{Kind: store.Seen, Was: store.Applied}
			}
			return v
		}}
	}},
	{"trims are ignored", "trim_takes", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, batch: func(_ *broken, b batch, _ []store.Mark) batch { return noTrim{b} }}
	}},
	{"rows are not written", "a_row_is_written", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, batch: func(_ *broken, b batch, _ []store.Mark) batch { return noRows{b} }}
	}},
	{"a commit lies", "trap_94", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, batch: func(_ *broken, b batch, _ []store.Mark) batch { return halfCommit{b} }}
	}},
	{"effects commit on their own", "law_1", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, batch: func(s *broken, b batch, _ []store.Mark) batch { return splitCommit{b, s.Store} }}
	}},
	{"ids are compared without case", "trap_78", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, mark: func(m store.Mark) store.Mark { m.ID = []byte(strings.ToLower(string(m.ID))); return m }}
	}},
	{"ids are cut", "trap_79", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, mark: func(m store.Mark) store.Mark { m.ID = m.ID[:min(len(m.ID), 255)]; return m }}
	}},
	{"consumers share ids", "trap_T17", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, mark: func(m store.Mark) store.Mark { m.Scope = 1; return m }}
	}},
	{"fingerprints are ignored", "trap_73", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, mark: func(m store.Mark) store.Mark { m.Fingerprint = semel.Fingerprint{}; return m }}
	}},
	{"fingerprints of two rules are compared", "case_14", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, mark: func(m store.Mark) store.Mark { m.Fingerprint.Version = 1; return m }}
	}},
	{"acts ignore the revision", "an_act_on_a_changed_row", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return anyRevision{s}
	}},
	{"a row that is refused ends an act on many", "of_many_rows_each", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return oneForAll{s} }},
	{"an act on many rows is done to all but the last", "many_rows_are_discarded", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return oneForAll{s} }},
	{"who keeps last wins", "trap_T92", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return keepsLast{s} }},
	{"a pause lifts the limit", "I0_what_is_wanted", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return pauseLifts{s} }},
	{"a pause is of every consumer", "I0_what_is_wanted", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return oneControl{s} }},
	{"the consumer that is paused is not told", "I0_the_consumers", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return onlyScopes{s} }},
	{"an order is not recorded", "I0_what_is_ordered", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return unrecorded{s} }},
	{"any limit is kept", "I0_a_limit_below", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return anyLimit{s} }},
	{"a pass begins anew for bodies", "D7_a_pass_goes_on", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return beginsAnew{s} }},
	{"nothing is marked under a former identity", "A7_a_mark_is_fresh", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, mark: func(m store.Mark) store.Mark { m.Previous = nil; return m }}
	}},
	{"a former identity is only looked up", "A7_a_mark_is_fresh", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return looksUp{s} }},
	{"a conflict with a former identity is a duplicate", "A7_other_content", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, verdict: func(_ store.Mark, v store.Verdict) store.Verdict {
			if v.Former && v.Kind == store.Conflict {
				v = store.Verdict{Kind: store.Seen, Was: store.Applied, Former: true}
			}
			return v
		}}
	}},
	{"what cannot be compared is a copy", "A7_what_cannot_be_compared", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, mark: func(m store.Mark) store.Mark {
			if m.Previous != nil {
				former := *m.Previous
				former.Strict, m.Previous = false, &former
			}
			return m
		}}
	}},
	{"a second with one former identity is a duplicate of the first", "A7_of_two_with", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, verdict: func(m store.Mark, v store.Verdict) store.Verdict {
			if m.Previous != nil && v.Kind == store.Busy {
				v = store.Verdict{Kind: store.Seen, Was: store.Applied}
			}
			return v
		}}
	}},
	{"a generation has two derivations", "A7_derivations_are_kept", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return forgetsGenerations{s} }},
	{"whoever sets an owner owns", "trap_23", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return takesNames{s} }},
	{"scopes that are asked for at once are numbered in another order", "a_scope_has_the_number_that_it_has_alone", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return sortsScopes{s} }},
	{"an offset is lowered", "I7_an_offset_only_goes_forward", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return lowersOffsets{s} }},
	{"what must have stood is not looked at", "T110", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &wrongOffsets{Store: s, ask: func(a *laneoffset.Advance) { a.Least = laneoffset.None }}
	}},
	{"one lane that lacks does not keep the others back", "T110_nothing_is_written", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return advancesEach{s} }},
	{"what stood before is not told", "I7_an_offset_only_goes_forward", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &wrongOffsets{Store: s, tell: func(before, to *laneoffset.LaneOffset) { *before = *to }}
	}},
	{"offsets are of all consumers", "I7_offsets_are_kept_by_consumer", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &wrongOffsets{Store: s, consumer: "all"}
	}},
	{"an ability is missing", "abilities", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return noInbox{s} }},
	{"a handler's end of file is the store's", "trap_T84", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, batch: func(_ *broken, b batch, _ []store.Mark) batch { return gullible{b} }}
	}},
	{"an unknown outcome is taken for another", "trap_T104", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, mark: func(m store.Mark) store.Mark { m.As = (m.As-1)%5 + 1; return m }}
	}},
	{"the store's failures are charged to messages", "a_call_with_a_cancelled_context", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return deafClassify{s}
	}},
}

func TestTheSuiteFindsPlantedFaults(t *testing.T) {
	for _, f := range slices.Concat(faults, retentionFaults, callFaults, gatherFaults, lookFaults, stepFaults, intentFaults, emissionFaults, resultFaults, auditFaults, replayFaults, editFaults, erasureFaults, generationFaults, twinFaults) {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failures := storetest.Check(t, storetest.Harness[*memstore.Tx]{
					Open: func(testing.TB) storetest.Instance[*memstore.Tx] { return opened(f.store) },
					Can:  abilities,
				})
				var names []string
				for _, found := range failures {
					names = append(names, found.Name)
					if found.Law == "" || found.Text == "" {
						t.Errorf("the failure %+v does not say why", found)
					}
				}
				if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, f.caught) }) {
					t.Errorf("no case %q failed, only %q", f.caught, names)
				}
				t.Logf("%d cases failed", len(names))
			})
		})
	}
}

func TestTheRightStoreHasNoFailures(t *testing.T) {
	for _, f := range storetest.Check(t, storetest.Harness[*memstore.Tx]{
		Open: func(testing.TB) storetest.Instance[*memstore.Tx] {
			return opened(func(s *memstore.Store) store.TxStore[*memstore.Tx] { return s })
		},
		Can: abilities,
	}) {
		t.Error(f)
	}
}

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

// faultyStore is a memstore with a fault: the functions in its fields replace correct values.
type faultyStore struct {
	*memstore.Store
	verdict func(store.Mark, store.Verdict) store.Verdict
	mark    func(store.Mark) store.Mark
	batch   func(*faultyStore, store.Batch[*memstore.Tx], []store.Mark) store.Batch[*memstore.Tx]
}

type batch = store.Batch[*memstore.Tx]

func (s *faultyStore) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (batch, []store.Verdict, error) {
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

// marksOutlive is a batch whose marks are committed when it is rolled back.
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

// noTrim is a batch that ignores which marks must be removed. noRows is a batch that ignores the rows that must be
// written.
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

// halfCommit is a batch that commits and reports that it did not commit.
type halfCommit struct{ batch }

func (b halfCommit) Commit(ctx context.Context, e store.Ending) store.Result {
	r := b.batch.Commit(context.WithoutCancel(ctx), e)
	if ctx.Err() != nil {
		r = store.Result{Outcome: store.NotCommitted, Class: store.ClassDown, Culprit: store.NoCulprit, Err: ctx.Err()}
	}
	return r
}

// splitCommit is a batch that commits effects and marks in separate commits.
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

// oneForAll is a store that stops a command on many rows at the first rejected row, and never discards the last row.
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

// overwritesKept is a store that overwrites a position that another process has stored before.
type overwritesKept struct{ *memstore.Store }

func (s overwritesKept) KeepPosition(ctx context.Context, consumer, lane string, p source.Position) (source.Position, error) {
	return p, s.SavePosition(ctx, consumer, lane, p)
}

// looksUp is a store that looks up the markers of previous identities in a separate transaction, and writes no markers
// for previous identities.
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

// ignoresDerivation is a store that accepts two derivations (rules that form identities) with the same number.
type ignoresDerivation struct{ *memstore.Store }

func (s ignoresDerivation) AddDerivation(ctx context.Context, d admin.Derivation) (bool, error) {
	all, err := s.Derivations(ctx, d.Consumer)
	for err == nil && slices.ContainsFunc(all, func(there admin.Derivation) bool { return there.Generation == d.Generation && there.Text != d.Text }) {
		d.Generation++
	}
	return s.Store.AddDerivation(ctx, d)
}

// takesNames is a store that sets a new owner without checking the current owner.
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

// blamesStore is a batch that reports io.EOF from a handler as an error of the store.
type blamesStore struct{ batch }

func (blamesStore) TxAborted() bool   { return false }
func (blamesStore) AbortCause() error { return nil }

func (blamesStore) ClassifyHandler(_ context.Context, err error) store.Class {
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
	// failingCase is a part of the name of the case that must fail.
	failingCase string
	store       func(*memstore.Store) store.TxStore[*memstore.Tx]
}

var faults = []fault{
	{"marks survive a rollback", "law_3", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, batch: func(s *faultyStore, b batch, m []store.Mark) batch { return marksOutlive{b, s.Store, m} }}
	}},
	{"everything is fresh", "trap_1_", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, verdict: func(store.Mark, store.Verdict) store.Verdict { return store.Verdict{Kind: store.Fresh} }}
	}},
	{"a parked message counts as applied", "trap_10", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, verdict: func(_ store.Mark, v store.Verdict) store.Verdict {
			if v.Already(store.Parked) {
				v.Was = store.Applied
			}
			return v
		}}
	}},
	{"a marker of a newer release counts as applied", "trap_T104", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, verdict: func(_ store.Mark, v store.Verdict) store.Verdict {
			if v.Kind == store.Newer {
				v = store.Verdict{Kind: store.Seen, Was: store.Applied}
			}
			return v
		}}
	}},
	{"trims are ignored", "trim_takes", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, batch: func(_ *faultyStore, b batch, _ []store.Mark) batch { return noTrim{b} }}
	}},
	{"rows are not written", "a_row_is_written", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, batch: func(_ *faultyStore, b batch, _ []store.Mark) batch { return noRows{b} }}
	}},
	{"a commit lies", "trap_94", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, batch: func(_ *faultyStore, b batch, _ []store.Mark) batch { return halfCommit{b} }}
	}},
	{"effects commit on their own", "law_1", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, batch: func(s *faultyStore, b batch, _ []store.Mark) batch { return splitCommit{b, s.Store} }}
	}},
	{"ids are compared without case", "trap_78", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, mark: func(m store.Mark) store.Mark { m.ID = []byte(strings.ToLower(string(m.ID))); return m }}
	}},
	{"ids are cut", "trap_79", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, mark: func(m store.Mark) store.Mark { m.ID = m.ID[:min(len(m.ID), 255)]; return m }}
	}},
	{"consumers share ids", "trap_T17", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, mark: func(m store.Mark) store.Mark { m.Scope = 1; return m }}
	}},
	{"fingerprints are ignored", "trap_73", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, mark: func(m store.Mark) store.Mark { m.Fingerprint = semel.Fingerprint{}; return m }}
	}},
	{"fingerprints of two rules are compared", "case_14", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, mark: func(m store.Mark) store.Mark { m.Fingerprint.Version = 1; return m }}
	}},
	{"acts ignore the revision", "an_act_on_a_changed_row", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return anyRevision{s}
	}},
	{"a refused row ends a command on many rows", "of_many_rows_each", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return oneForAll{s} }},
	{"a command on many rows skips the last row", "many_rows_are_discarded", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return oneForAll{s} }},
	{"the last kept position wins", "trap_T92", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return overwritesKept{s} }},
	{"a pause removes the limit", "I0_each_consumer_has_its_own_controls", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return pauseLifts{s} }},
	{"a pause applies to every consumer", "I0_each_consumer_has_its_own_controls", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return oneControl{s} }},
	{"a paused consumer is not listed", "I0_the_consumers", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return onlyScopes{s} }},
	{"a control is not recorded", "I0_a_control_is_recorded", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return unrecorded{s} }},
	{"a negative limit is accepted", "I0_a_negative_limit_is_refused", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return anyLimit{s} }},
	{"a pass restarts for bodies", "D7_a_pass_continues_with_bodies_after_its_markers", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return restartsPass{s} }},
	{"nothing is marked under a previous identity", "A7_a_mark_is_fresh", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, mark: func(m store.Mark) store.Mark { m.Previous = nil; return m }}
	}},
	{"a previous identity is only looked up", "A7_a_mark_is_fresh", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return looksUp{s} }},
	{"a conflict with a previous identity is a duplicate", "A7_other_content", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, verdict: func(_ store.Mark, v store.Verdict) store.Verdict {
			if v.Former && v.Kind == store.Conflict {
				v = store.Verdict{Kind: store.Seen, Was: store.Applied, Former: true}
			}
			return v
		}}
	}},
	{"a fingerprint that cannot be compared counts as equal", "A7_content_that_cannot_be_compared_is_a_conflict_on_request", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, mark: func(m store.Mark) store.Mark {
			if m.Previous != nil {
				former := *m.Previous
				former.Strict, m.Previous = false, &former
			}
			return m
		}}
	}},
	{"a second message with the same previous identity is a duplicate", "A7_two_messages_of_a_batch_with_one_previous_identity_are_processed_in_turn", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, verdict: func(m store.Mark, v store.Verdict) store.Verdict {
			if m.Previous != nil && v.Kind == store.Busy {
				v = store.Verdict{Kind: store.Seen, Was: store.Applied}
			}
			return v
		}}
	}},
	{"a generation has two derivations", "A7_derivations_are_kept", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return ignoresDerivation{s} }},
	{"an owner is set without a check", "trap_23", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return takesNames{s} }},
	{"scopes that are requested together are numbered in another order", "a_scope_has_the_same_number_in_a_request_for_many", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return sortsScopes{s} }},
	{"an offset is lowered", "I7_an_offset_only_rises_and_a_write_returns_the_previous_one", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return lowersOffsets{s} }},
	{"the required previous offset is not checked", "T110", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &wrongOffsets{Store: s, ask: func(a *laneoffset.Advance) { a.Least = laneoffset.None }}
	}},
	{"a lane below its required offset does not stop the others", "T110_nothing_is_written", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return advancesEach{s} }},
	{"the previous offset is not returned", "I7_an_offset_only_rises_and_a_write_returns_the_previous_one", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &wrongOffsets{Store: s, tell: func(before, to *laneoffset.LaneOffset) { *before = *to }}
	}},
	{"offsets are shared by all consumers", "I7_offsets_are_kept_by_consumer", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &wrongOffsets{Store: s, consumer: "all"}
	}},
	{"an ability is missing", "abilities", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return noInbox{s} }},
	{"a handler's end of file is the store's", "trap_T84", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, batch: func(_ *faultyStore, b batch, _ []store.Mark) batch { return blamesStore{b} }}
	}},
	{"an unknown outcome is read as another one", "trap_T104", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, mark: func(m store.Mark) store.Mark { m.As = (m.As-1)%5 + 1; return m }}
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
						t.Errorf("the failure %+v has no text", found)
					}
				}
				if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, f.failingCase) }) {
					t.Errorf("no case %q failed, only %q", f.failingCase, names)
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

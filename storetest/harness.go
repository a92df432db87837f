// Package storetest is the conformance suite for implementations of store.TxStore, store.Leases and keystore.Store.
// Each case tests one law, and prints the law when the store breaks it. Cases count effects, not deliveries.
//
// The test of a store passes a Harness:
//
//	storetest.Run(t, storetest.Harness[*sql.Tx]{Open: open, Can: storetest.Abilities{Inbox: true}})
//
// Every store must implement store.TxStore. The suite tests the further abilities that the harness declares, and
// fails if the store has an ability that the harness does not declare.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Harness describes the store to be tested.
type Harness[Tx any] struct {
	// Open returns an empty store, and registers its end with t.Cleanup.
	Open func(t testing.TB) Instance[Tx]
	Can  Abilities
	// Only, if not nil, reports whether the case of a name is run. Use it for a store that passes all cases
	// and is also accessed in another way, such as another protocol.
	Only func(name string) bool
}

// Abilities declares what a store implements in addition to store.TxStore. A field that names an interface of package
// admin is only for Semel's own stores, because the package is internal: leave such a field false.
type Abilities struct {
	// Inbox: store.Inbox.
	Inbox bool
	// Streams: admin.Streams, with versions in batches.
	Streams bool
	// Lines: admin.Lines, with lines in batches.
	Lines bool
	// Retention: store.Reaper, with ages in batches.
	Retention bool
	// Days: store.Limits.PartitionedBy, for the consumer "billing". The store drops daily partitions, so cases
	// in which single markers are removed do not run.
	Days bool
	// Leases: store.Leases, with claims in batches.
	Leases bool
	// Calls: admin.Resolver, with claims and an inbox.
	Calls bool
	// Steps: store.Limits.StepOutput, with steps in ends of claims.
	Steps bool
	// Gather: admin.QueueStore, with claims.
	Gather bool
	// Intents: store.CallerTx or admin.QueueStore, and admin.Requeuer.
	Intents bool
	// Emission: admin.Emitter, with intents and calls.
	Emission bool
	// Results: admin.Results.
	Results bool
	// MarkIn: store.CallerTx.
	MarkIn bool
	// Positions: source.PositionStore.
	Positions bool
	// Controls: admin.Controls.
	Controls bool
	// Derivations: admin.Derivations, with former identities in marks.
	Derivations bool
	// Edits: admin.Editor, with an inbox.
	Edits bool
	// Erasure: admin.Eraser, with an inbox.
	Erasure bool
	// Audit: admin.Auditor and admin.Recorder.
	Audit bool
	// Offsets: laneoffset.Store.
	Offsets bool
	// Replays: admin.Replays and admin.Previewer.
	Replays bool
	// Generations: admin.Generations.
	Generations bool
	// OneConsumer: the store serves only the consumer "billing" in generation 0, and Scope refuses all others.
	OneConsumer bool
	// LongestID, if not 0, is the length of the longest id that the store can hold.
	// store.Limits.FitIdentity refuses longer ids.
	LongestID int
	// OneWriter: one batch at a time can be open, so two copies are never in flight at once and MarkLock has no
	// effect.
	OneWriter bool
	// LeavesLate: if a handler ends its transaction with a statement, its later writes commit on their own,
	// because the store cannot refuse them.
	LeavesLate bool
}

// Twins describes what happened to the contents of one identity.
type Twins struct {
	// Applied: one of the contents took effect, that of the row Owner. Unknown: a call for one of the contents
	// has an unknown outcome.
	Applied, Unknown bool
	Owner            int64
}

// Instance is an open store with the effects in its database. A case that needs a field that is nil is skipped.
type Instance[Tx any] struct {
	Store store.TxStore[Tx]
	// Effect adds one to the count of this name, in tx.
	Effect func(ctx context.Context, tx Tx, name string) error
	// Count returns the committed effects of this name.
	Count func(t testing.TB, name string) int
	// Spoil, if not nil, runs a statement in tx that fails, and returns its error.
	Spoil func(ctx context.Context, tx Tx) error
	// End, if not nil, commits or rolls back tx, which a handler must not do.
	End func(tx Tx, commit bool) error
	// Send, if not nil, executes the text of a statement in tx, also COMMIT and ROLLBACK.
	Send func(ctx context.Context, tx Tx, statement string) error
	// Remove, if not nil, deletes a row without the store.
	Remove func(t testing.TB, number int64)
	// Ahead, if not nil, moves all times in the store except those of markers into the future, as if the
	// store's clock had been ahead and was corrected.
	Ahead func(t testing.TB, by time.Duration)
	// Says, if not nil, checks that the commands of operators report the truth about an identity of the
	// consumer "billing". Agrees, if not nil, checks that no record of the consumer contradicts another.
	Says   func(t testing.TB, id string, is Twins)
	Agrees func(t testing.TB)
	// Damage, if not nil, makes a row unreadable in part.
	Damage func(t testing.TB, number int64)
}

// Run runs every case as a subtest of t.
func Run[Tx any](t *testing.T, h Harness[Tx]) { cases(t, h.Only, func(t *T) { all(t, h) }) }

// cases runs cases as subtests. If only is not nil, it selects the cases.
func cases(t *testing.T, only func(name string) bool, all func(*T)) {
	all(&T{TB: t, run: func(name, law string, f func(*T)) {
		if only != nil && !only(name) {
			return
		}
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the law: %s", law)
				}
			})
			f(&T{TB: t})
		})
	}})
}

// Failure is a case that a store failed.
type Failure struct{ Name, Law, Text string }

// Check runs every case and returns the failures instead of failing t. Check shows whether the suite finds a
// planted fault.
func Check[Tx any](t testing.TB, h Harness[Tx]) []Failure {
	return failing(t, func(t *T) { all(t, h) })
}

// failing runs cases and returns the failures.
func failing(t testing.TB, all func(*T)) (failures []Failure) {
	all(&T{TB: t, run: func(name, law string, f func(*T)) {
		r := &recorder{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer r.end()
			f(&T{TB: r})
		}()
		<-ended
		if r.Failed() {
			failures = append(failures, Failure{name, law, r.text})
		}
	}})
	return failures
}

func all[Tx any](t *T, h Harness[Tx]) {
	s, can := suite[Tx]{h}, h.Can
	for _, group := range []struct {
		runs  bool
		cases []func(*T)
	}{
		{true, []func(*T){s.abilities, s.marks, s.setbacks, s.mixtures, s.newer, s.copies, s.waits, s.contents, s.identities, s.batches, s.ends, s.handlers, s.statements, s.scopes}},
		{can.MarkIn, []func(*T){s.callers}},
		{can.Inbox, []func(*T){s.rows, s.unknownStates, s.messages, s.lists, s.conflicts, s.conflictsAtOnce, s.acts, s.refusals, s.records}},
		{!can.Inbox, []func(*T){s.rowless}},
		{can.Leases, []func(*T){s.leased, s.calls, s.looked}},
		{can.Calls, []func(*T){s.resolutions}},
		{can.Gather, []func(*T){s.gathered}},
		{can.Steps, []func(*T){s.steps}},
		{can.Intents && !can.Days, []func(*T){s.intents}},
		{can.Emission && !can.Days, []func(*T){s.emission}},
		{can.Results, []func(*T){s.results}},
		{can.Streams, []func(*T){s.versioned}},
		{can.Lines, []func(*T){s.lined}},
		{can.Retention && !can.Days, []func(*T){s.retention}},
		{can.Retention && !can.Days && can.Lines, []func(*T){s.lateInLine}},
		{can.Derivations, []func(*T){s.derivations}},
		{can.Positions, []func(*T){s.positions, s.keeping}},
		{can.Controls, []func(*T){s.controls}},
		{can.Offsets, []func(*T){s.offsets}},
		{can.Replays, []func(*T){s.replayed}},
		{can.Audit, []func(*T){s.audited}},
		{can.Edits, []func(*T){s.edited}},
		{can.Erasure, []func(*T){s.erasures}},
		{can.Generations, []func(*T){s.generations}},
	} {
		for _, cases := range group.cases {
			if group.runs {
				cases(t)
			}
		}
	}
}

// ability is a field of Abilities, with what a store must have for it.
type ability struct {
	name          string
	declared, has bool
	// needs is what the store must implement.
	needs string
}

func (s suite[Tx]) abilities(t *T) {
	t.Run("a_store_has_the_abilities_it_declares_and_no_others",
		"A store has exactly the abilities that its harness declares, so a missing ability is reported at start.", func(t *T) {
			for _, a := range abilitiesOf(s.h.Can, s.h.Open(t).Store) {
				switch {
				case a.declared && !a.has:
					t.Errorf("Can.%s is declared, and the store lacks %s", a.name, a.needs)
				case !a.declared && a.has:
					t.Errorf("Can.%s is not declared, and the store has %s", a.name, a.needs)
				}
			}
		})
}

func has[I any](st any) bool {
	_, able := st.(I)
	return able
}

func abilitiesOf[Tx any](can Abilities, st store.TxStore[Tx]) []ability {
	return []ability{
		{"Inbox", can.Inbox, has[store.Inbox](st), "store.Inbox"},
		{"Leases", can.Leases, has[store.Leases](st), "store.Leases"},
		{"Streams", can.Streams, has[admin.Streams](st), "admin.Streams"},
		{"Retention", can.Retention, has[store.Reaper](st), "store.Reaper"},
		{"Days", can.Days, st.Limits().PartitionedBy != "", "store.Limits.PartitionedBy"},
		{"Calls", can.Calls, has[admin.Resolver](st), "admin.Resolver"},
		{"Steps", can.Steps, st.Limits().StepOutput > 0, "store.Limits.StepOutput above 0"},
		{"Gather", can.Gather, has[admin.QueueStore[Tx]](st), "admin.QueueStore"},
		{"Intents", can.Intents, hasIntents(st), "store.CallerTx or admin.QueueStore, and admin.Requeuer"},
		{"Emission", can.Emission, has[admin.Emitter](st), "admin.Emitter"},
		{"Results", can.Results, hasResults(st), "admin.Results"},
		{"MarkIn", can.MarkIn, has[store.CallerTx[Tx]](st), "store.CallerTx"},
		{"Positions", can.Positions, has[source.PositionStore](st), "source.PositionStore"},
		{"Offsets", can.Offsets, has[laneoffset.Store](st), "laneoffset.Store"},
		{"Controls", can.Controls, has[admin.Controls](st), "admin.Controls"},
		{"Derivations", can.Derivations, has[admin.Derivations](st), "admin.Derivations"},
		{"Edits", can.Edits, hasEdits(st), "admin.Editor"},
		{"Erasure", can.Erasure, hasErasure(st), "admin.Eraser"},
		{"Audit", can.Audit, hasAudit(st), "admin.Auditor and admin.Recorder"},
		{"Replays", can.Replays, hasReplays(st), "admin.Replays and admin.Previewer"},
		{"Generations", can.Generations, has[admin.Generations](st), "admin.Generations"},
	}
}

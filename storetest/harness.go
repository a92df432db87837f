// Package storetest is the conformance suite for implementations of store.TxStore, store.Leases and keystore.Store: a
// set of tests that every such store must pass. Each case tests one law. If the store breaks the law, the case fails
// and prints the law. Cases count effects, not deliveries.
//
// The test of a store calls Run with a Harness:
//
//	storetest.Run(t, storetest.Harness[*sql.Tx]{Open: open, Can: storetest.Abilities{Inbox: true}})
//
// Every store that Run tests must implement store.TxStore. The suite also tests the further abilities that the
// harness declares, and fails if the store has an ability that the harness does not declare.
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
	// Open returns an empty store, and registers a function with t.Cleanup that closes the store.
	Open func(t testing.TB) Instance[Tx]
	Can  Abilities
	// Only reports whether the suite should run the case with the given name. If Only is nil, all cases run. Use Only
	// if the store already passes all cases and you test another way of accessing the store, such as another protocol.
	Only func(name string) bool
}

// Abilities declares which interfaces a store implements in addition to store.TxStore. Package admin is internal to
// Semel, so only Semel's own stores can implement its interfaces. A store of your own leaves the fields for these
// interfaces false.
type Abilities struct {
	// Inbox is true if the store implements store.Inbox.
	Inbox bool
	// Streams is true if the store implements admin.Streams, and accepts marks with versions in batches.
	Streams bool
	// Lines is true if the store implements admin.Lines, and accepts marks with a Line in batches.
	Lines bool
	// Retention is true if the store implements store.Reaper, and accepts marks with an Age in batches.
	Retention bool
	// Days is true if store.Limits.PartitionedBy is set for the consumer "billing". A store with Days drops whole daily
	// partitions, so the suite omits the cases in which single markers are removed.
	Days bool
	// Leases is true if the store implements store.Leases, and accepts claims in batches.
	Leases bool
	// Calls is true if the store implements admin.Resolver, and has claims and an inbox.
	Calls bool
	// Steps is true if store.Limits.StepOutput is set, and the ending of a claim can contain steps.
	Steps bool
	// Gather is true if the store implements admin.QueueStore, and has claims.
	Gather bool
	// Intents is true if the store implements admin.Requeuer, and also store.CallerTx or admin.QueueStore.
	Intents bool
	// Emission is true if the store implements admin.Emitter, and has intents and calls.
	Emission bool
	// Results is true if the store implements admin.Results.
	Results bool
	// MarkIn is true if the store implements store.CallerTx.
	MarkIn bool
	// Positions is true if the store implements source.PositionStore.
	Positions bool
	// Controls is true if the store implements admin.Controls.
	Controls bool
	// Derivations is true if the store implements admin.Derivations, and accepts marks with previous
	// identities.
	Derivations bool
	// Edits is true if the store implements admin.Editor, and has an inbox.
	Edits bool
	// Erasure is true if the store implements admin.Eraser, and has an inbox.
	Erasure bool
	// Audit is true if the store implements admin.Auditor and admin.Recorder.
	Audit bool
	// Offsets is true if the store implements laneoffset.Store.
	Offsets bool
	// Replays is true if the store implements admin.Replays and admin.Previewer.
	Replays bool
	// Generations is true if the store implements admin.Generations.
	Generations bool
	// OneConsumer is true if the store serves only generation 0 of the consumer "billing", and its method
	// Scope refuses every other consumer and generation.
	OneConsumer bool
	// LongestID is the length of the longest id that the store can store, or 0 if there is no such limit. The
	// store's store.Limits.FitIdentity must refuse longer ids.
	LongestID int
	// OneWriter is true if only one batch at a time can be open, so that two copies of a message are never processed at
	// the same time and MarkLock has no effect.
	OneWriter bool
	// LeavesLate is true if the store cannot reject writes of a handler that has ended its transaction with a
	// statement, so that these later writes are committed separately.
	LeavesLate bool
}

// Twins describes what happened to the contents of one identity.
type Twins struct {
	// Applied is true if one of the contents took effect; Owner is then the number of that content's row.
	// Unknown is true if a call for one of the contents has an unknown outcome.
	Applied, Unknown bool
	Owner            int64
}

// Instance is an open store, with functions that write and count effects in the store's database. If a case needs a
// field that is nil, the case is skipped.
type Instance[Tx any] struct {
	Store store.TxStore[Tx]
	// Effect adds one to the count of effects with the given name, in tx.
	Effect func(ctx context.Context, tx Tx, name string) error
	// Count returns the number of committed effects with the given name.
	Count func(t testing.TB, name string) int
	// Spoil runs a statement in tx that fails, and returns its error. Optional.
	Spoil func(ctx context.Context, tx Tx) error
	// End commits or rolls back tx, which a handler must not do. Optional.
	End func(tx Tx, commit bool) error
	// Send executes the text of a statement in tx; the statement may be COMMIT or ROLLBACK. Optional.
	Send func(ctx context.Context, tx Tx, statement string) error
	// Remove deletes a row in the database without using the store. Optional.
	Remove func(t testing.TB, number int64)
	// Ahead moves all stored times, except the times of markers, into the future, as if the store's clock had been
	// ahead by the given duration and were now correct again. Optional.
	Ahead func(t testing.TB, by time.Duration)
	// Says checks that the operators' commands report the same facts about an identity of the consumer "billing" as the
	// parameter of type Twins. Agrees checks that no two records of that consumer contradict each other. Says and
	// Agrees are optional.
	Says   func(t testing.TB, id string, is Twins)
	Agrees func(t testing.TB)
	// Damage makes a part of a row unreadable. Optional.
	Damage func(t testing.TB, number int64)
}

// Run runs every case as a subtest of t.
func Run[Tx any](t *testing.T, h Harness[Tx]) { runCases(t, h.Only, func(t *T) { all(t, h) }) }

// runCases runs cases as subtests. If the function only is not nil, it selects the cases to run.
func runCases(t *testing.T, only func(name string) bool, all func(*T)) {
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

// Failure describes a case in which a store failed.
type Failure struct{ Name, Law, Text string }

// Check runs every case, and returns the failures, without failing t. Use Check to test that the suite finds a fault
// which was built into a store on purpose.
func Check[Tx any](t testing.TB, h Harness[Tx]) []Failure {
	return collectFailures(t, func(t *T) { all(t, h) })
}

// collectFailures runs cases and returns the failures.
func collectFailures(t testing.TB, all func(*T)) (failures []Failure) {
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
		{true, []func(*T){s.testAbilities, s.testMarks, s.testSetbacks, s.testMixtures, s.testNewerReleases, s.testCopies, s.testWaitingBatches, s.testContents, s.testIdentities, s.testBatches, s.testEndedBatches, s.testHandlers, s.testStatements, s.testScopes}},
		{can.MarkIn, []func(*T){s.testCallers}},
		{can.Inbox, []func(*T){s.testRows, s.testUnknownStates, s.testMessages, s.testLists, s.testConflicts, s.testConflictsAtOnce, s.testActs, s.testRefusals, s.testRecords}},
		{!can.Inbox, []func(*T){s.testRowless}},
		{can.Leases, []func(*T){s.testLeases, s.testCalls, s.testLookUp}},
		{can.Calls, []func(*T){s.testResolutions}},
		{can.Gather, []func(*T){s.testGather}},
		{can.Steps, []func(*T){s.testSteps}},
		{can.Intents && !can.Days, []func(*T){s.testIntents}},
		{can.Emission && !can.Days, []func(*T){s.testEmission}},
		{can.Results, []func(*T){s.testResults}},
		{can.Streams, []func(*T){s.testVersions}},
		{can.Lines, []func(*T){s.testLines}},
		{can.Retention && !can.Days, []func(*T){s.testRetention}},
		{can.Retention && !can.Days && can.Lines, []func(*T){s.testLateInLine}},
		{can.Derivations, []func(*T){s.testDerivations}},
		{can.Positions, []func(*T){s.testPositions, s.testKeeping}},
		{can.Controls, []func(*T){s.testControls}},
		{can.Offsets, []func(*T){s.testOffsets}},
		{can.Replays, []func(*T){s.testReplays}},
		{can.Audit, []func(*T){s.testAudit}},
		{can.Edits, []func(*T){s.testEdits}},
		{can.Erasure, []func(*T){s.testErasures}},
		{can.Generations, []func(*T){s.testGenerations}},
	} {
		for _, cases := range group.cases {
			if group.runs {
				cases(t)
			}
		}
	}
}

// ability describes a field of Abilities, and the interfaces that the store must implement for the field.
type ability struct {
	name          string
	declared, has bool
	// interfaces contains the names of the interfaces that the store must implement.
	interfaces string
}

func (s suite[Tx]) testAbilities(t *T) {
	t.Run("a_store_has_the_abilities_it_declares_and_no_others",
		"A store has exactly the abilities that its harness declares, so a missing ability is reported at start.", func(t *T) {
			for _, a := range abilitiesOf(s.h.Can, s.h.Open(t).Store) {
				switch {
				case a.declared && !a.has:
					t.Errorf("Can.%s is declared, and the store lacks %s", a.name, a.interfaces)
				case !a.declared && a.has:
					t.Errorf("Can.%s is not declared, and the store has %s", a.name, a.interfaces)
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

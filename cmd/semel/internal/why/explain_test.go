package why

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

var now = time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)

// newFacts returns the facts of a row in the given state, with the marker that such a row has.
func newFacts(state store.RowState, change func(*Facts, *store.StoredRow)) *Facts {
	key := semel.Key{Consumer: "billing", Source: "shop", ID: "o-1"}
	r := &store.StoredRow{Number: 17, Key: key, State: state, Attempts: 1, ReceivedAt: now.Add(-time.Hour), ChangedAt: now.Add(-time.Minute)}
	f := &Facts{Store: "db", Key: key, Now: now, Row: r}
	if o := state.Outcome(); o != 0 {
		f.Markers = []sqlstore.Known{{Key: key, StoredMarker: admin.StoredMarker{Outcome: o, At: now.Add(-time.Minute)}}}
	}
	if change != nil {
		change(f, r)
	}
	return f
}

// newMarkedFacts returns the facts of an identity with a marker but without a row.
func newMarkedFacts(o store.Outcome, change func(*Facts, *store.StoredRow)) *Facts {
	f := newFacts(store.StateCompleted, nil)
	f.Row, f.Markers[0].Outcome = nil, o
	if change != nil {
		change(f, nil)
	}
	return f
}

func setReason(reason semel.Reason) func(*Facts, *store.StoredRow) {
	return func(_ *Facts, r *store.StoredRow) { r.Reason, r.LastError = reason, "no such account" }
}

func addAct(verb string, more func(*store.StoredRow)) func(*Facts, *store.StoredRow) {
	return func(f *Facts, r *store.StoredRow) {
		f.Details = []operate.Detail{{View: operate.NewView("db", *r), Changes: []operate.ChangeView{{At: now.Add(-time.Second), Verb: verb, Who: "ann", Why: "it is test data"}}}}
		if more != nil {
			more(r)
		}
	}
}

// setDayAhead sets the row's times as if the database clock had been one day ahead.
func setDayAhead(_ *Facts, r *store.StoredRow) {
	r.ChangedAt = now.Add(24 * time.Hour)
	r.DueAt, r.LockedUntil = r.ChangedAt, r.ChangedAt
}

type testCase struct {
	facts   *Facts
	stage   Stage
	applied Applied
	says    string
	// The field command is a command that the answer must contain; empty if the answer has no commands.
	command string
}

func waitingCases() map[string]testCase {
	return map[string]testCase{
		"K13_received_and_due": {newFacts(store.StateReceived, nil), StageDue, No, "waits for a worker of its consumer", "semel messages summary --by state --consumer billing"},
		"K13_received_for_later": {newFacts(store.StateReceived, func(_ *Facts, r *store.StoredRow) { r.DueAt = now.Add(time.Hour) }),
			StageLater, No, "waits until 2026-05-03 13:00:00Z", ""},
		"K13_a_step_is_done": {newFacts(store.StateReceived, func(_ *Facts, r *store.StoredRow) { r.Steps = []store.StepDone{{Name: "reserve"}} }),
			StageDue, No, "step reserve has taken effect", "semel messages summary --by state"},
		"K13_an_intent_that_is_sent_again": {newFacts(store.StateReceived, func(_ *Facts, r *store.StoredRow) { r.CallsStarted = 1 }),
			StageDue, Unknown, "A call was made before and will be repeated", "semel messages summary --by state"},
		"K13_the_consumer_is_paused": {newFacts(store.StateReceived, func(f *Facts, _ *store.StoredRow) {
			f.Control = admin.Control{Paused: true, Pause: admin.Order{By: "ann", Why: "the bank is closed"}}
		}), StageDue, No, "paused, by ann: the bank is closed.", "semel consumers resume billing --because WHY"},
		"K13_nobody_runs_the_consumer": {newFacts(store.StateReceived, func(f *Facts, _ *store.StoredRow) { f.Progress = now.Add(-time.Hour) }),
			StageDue, No, "The consumer does not seem to run, or has stopped", "semel run --consumer billing"},
		"K13_claimed_now": {newFacts(store.StateInProgress, func(_ *Facts, r *store.StoredRow) { r.LockedUntil = now.Add(time.Minute) }),
			StageClaimed, No, "a process has claimed it until 2026-05-03 12:01:00Z", "semel messages release 17"},
		"K13_a_stale_claim": {newFacts(store.StateInProgress, func(_ *Facts, r *store.StoredRow) { r.LockedUntil = now.Add(-time.Minute) }),
			StageStale, No, "its lease ended at 2026-05-03 11:59:00Z", "semel messages summary --by state"},
		"K13_a_call_that_is_under_way": {newFacts(store.StateInProgress, func(_ *Facts, r *store.StoredRow) { r.LockedUntil, r.CallsStarted = now.Add(time.Minute), 1 }),
			StageClaimed, Unknown, "A call was begun whose outcome is unknown", "semel messages release 17"},
		"K13_a_stale_claim_with_a_call": {newFacts(store.StateInProgress, func(_ *Facts, r *store.StoredRow) { r.LockedUntil, r.CallsStarted = now.Add(-time.Minute), 1 }),
			StageStale, Unknown, "A call was begun whose outcome is unknown", "semel messages summary --by state"},
		"K13_a_retry_that_is_due_later": {newFacts(store.StateFailedRetryable, func(_ *Facts, r *store.StoredRow) {
			r.Attempts, r.LastError, r.DueAt = 3, "the bank is away", now.Add(time.Minute)
		}), StageRetry, No, "3 attempts failed: the bank is away; the next attempt is at 2026-05-03 12:01:00Z.", "semel messages retry 17 --because WHY"},
		"trap_T113_a_received_row_that_was_dated_ahead": {newFacts(store.StateReceived, setDayAhead),
			StageLater, No, "It waits until 2026-05-04 12:00:00Z; the database clock was probably ahead", "semel messages retry 17 --because WHY"},
		"trap_T113_a_retry_that_was_dated_ahead": {newFacts(store.StateFailedRetryable, setDayAhead),
			StageRetry, No, "It waits until 2026-05-04 12:00:00Z; the database clock was probably ahead", "semel messages retry 17 --because WHY"},
		"trap_T113_a_lease_that_was_dated_ahead": {newFacts(store.StateInProgress, setDayAhead),
			StageClaimed, No, "It waits until 2026-05-04 12:00:00Z; the database clock was probably ahead", "semel messages release 17 --because WHY"},
		"K13_a_retry_that_is_due": {newFacts(store.StateFailedRetryable, nil), StageRetry, No, "the next attempt waits for a worker", "semel messages summary --by state"},
		"K13_an_unknown_outcome_that_is_tried_again": {newFacts(store.StateFailedRetryable, func(_ *Facts, r *store.StoredRow) { r.CallsStarted, r.DueAt = 1, now.Add(time.Minute) }),
			StageRetry, Unknown, "It is unknown whether it was applied", "semel messages resolve 17 --outcome done"},
		"K13_blocked_by_a_gap": {newFacts(store.StateBlocked, func(f *Facts, r *store.StoredRow) {
			r.Stream, r.Version, f.Stream, f.Missing = "order 7", 5, &admin.StoredStream{Last: 2}, []operate.Span{{From: 3, To: 4}}
		}), StageGap, No, "as version 5 of its stream it waits for version 3, which has not taken effect. No row of version 3 to 4 exists.", "semel gaps show --stream order 7"},
		"K13_blocked_by_an_earlier_one_of_its_key": {newFacts(store.StateBlocked, func(f *Facts, r *store.StoredRow) {
			r.Place, f.Ahead = 2, &store.StoredRow{Number: 12, State: store.StateParked, Reason: semel.ReasonPermanent}
		}), StageBehind, No, "waits behind row 12, which is parked (permanent failure).", "semel messages retry 12"},
		"K13_blocked_by_what_is_gone": {newFacts(store.StateBlocked, nil), StageBehind, No, "the message that blocked it has ended", "semel messages summary --by state"},
	}
}

func endedCases() map[string]testCase {
	return map[string]testCase{
		"K13_applied":              {newFacts(store.StateCompleted, nil), StageApplied, Yes, "It was applied at 2026-05-03 11:59:00Z.", ""},
		"K13_applied_without_row":  {newMarkedFacts(store.Applied, nil), StageApplied, Yes, "in the commit of its marker", ""},
		"K13_applied_with_retries": {newFacts(store.StateCompleted, func(_ *Facts, r *store.StoredRow) { r.Attempts = 3 }), StageApplied, Yes, "with attempt 3", ""},
		"K13_a_duplicate":          {newFacts(store.StateCompleted, func(_ *Facts, r *store.StoredRow) { r.Repeated = 2 }), StageApplied, Yes, "2 copies arrived since: duplicates without effect.", ""},
		"K13_one_duplicate":        {newFacts(store.StateCompleted, func(_ *Facts, r *store.StoredRow) { r.Repeated = 1 }), StageApplied, Yes, "One copy arrived since: a duplicate without effect.", ""},
		"K13_resolved_by_a_person": {newFacts(store.StateCompleted, addAct("resolve", nil)), StageApplied, Yes, "ann recorded that", ""},
		"K13_erased": {newFacts(store.StateCompleted, addAct("erase", func(r *store.StoredRow) { r.Reason = reasonname.Erased })),
			StageApplied, Yes, "Its content was erased since, by ann at 2026-05-03 11:59:59Z.", ""},
		"K13_erased_without_a_row": {newMarkedFacts(store.Applied, func(f *Facts, _ *store.StoredRow) { f.Erasures = []store.Act{{Who: "ann", At: now}} }),
			StageApplied, Yes, "Its stored content was erased by ann", ""},
		"K13_a_stale_version": {newFacts(store.StateDiscarded, func(f *Facts, r *store.StoredRow) {
			r.Reason, r.Version, f.Stream = reasonname.Stale, 3, &admin.StoredStream{Last: 8}
		}), StageStaleVersion, No, "when version 3 arrived, its stream was already past it; the stream is at version 8.", ""},
		"K13_discarded_by_a_person": {newFacts(store.StateDiscarded, addAct("discard", nil)), StageDiscarded, No, "ann discarded it at 2026-05-03 11:59:59Z: it is test data.", "semel messages reopen 17"},
		"K13_discarded_by_the_last_who_did": {newFacts(store.StateDiscarded, func(f *Facts, r *store.StoredRow) {
			other := *r
			other.Number = 18
			f.Details = []operate.Detail{
				{View: operate.NewView("db", *r), Changes: []operate.ChangeView{{At: now.Add(-time.Hour), Verb: "discard", Who: "eve", Why: "the first time"}, {At: now.Add(-time.Second), Verb: "discard", Who: "bob", Why: "again"}, {At: now, Verb: "note", Who: "eve"}}},
				{View: operate.NewView("db", other), Changes: []operate.ChangeView{{At: now, Verb: "discard", Who: "eve", Why: "another row"}}},
			}
		}), StageDiscarded, No, "bob discarded it at 2026-05-03 11:59:59Z: again.", "semel messages reopen 17"},
		"K13_applied_and_another_row_was_resolved": {newFacts(store.StateCompleted, func(f *Facts, r *store.StoredRow) {
			other := *r
			other.Number = 18
			f.Details = []operate.Detail{{View: operate.NewView("db", other), Changes: []operate.ChangeView{{At: now, Verb: "resolve", Who: "eve", Why: "another row"}}}}
		}), StageApplied, Yes, "It was applied at 2026-05-03 11:59:00Z.", ""},
		"K13_discarded_by_its_handler": {newFacts(store.StateDiscarded, setReason(semel.ReasonPrecondition)), StageDiscarded, No, "(condition unmet): no such account", "semel messages reopen 17"},
		"K13_discarded_and_erased":     {newFacts(store.StateDiscarded, setReason(reasonname.Erased)), StageDiscarded, No, "its content was erased since", ""},
		"K13_discarded_without_a_row":  {newMarkedFacts(store.Discarded, nil), StageDiscarded, No, "it was discarded at", ""},
		"K13_dead_lettered":            {newFacts(store.StateDeadLettered, setReason(semel.ReasonExhausted)), StageDeadLettered, No, "after 1 attempt it was dead-lettered", "semel messages retry 17"},
		"K13_of_a_generation_that_left": {newFacts(store.StateCompleted, func(f *Facts, _ *store.StoredRow) {
			f.Generation = &admin.StoredGeneration{Number: 2, State: generations.Old}
		}), StageApplied, Yes, "This answer is about generation 2, which is old", ""},
	}
}

func unappliedCases() map[string]testCase {
	all := map[string]testCase{
		"K13_parked_as_a_gap": {newFacts(store.StateParked, func(f *Facts, r *store.StoredRow) {
			r.Reason, r.Stream, r.Version, f.Stream = semel.ReasonGap, "7", 5, &admin.StoredStream{Last: 2}
		}), StageGap, No, "as version 5 of its stream it waited for version 3, and was then parked", "semel gaps skip --stream 7 --because WHY"},
		"K13_suppressed_by_a_person": {newFacts(store.StateParked, addAct("suppress", func(r *store.StoredRow) { r.Reason = reasonname.Suppressed })),
			StageSuppressed, No, "It was not sent: ann suppressed it", "semel intents retry 17"},
		"K13_suppressed_by_a_replay": {newFacts(store.StateParked, setReason(reasonname.Suppressed)), StageSuppressed, No, "It was not sent: a run or replay without external effects", "semel intents retry 17"},
		"K13_an_unknown_outcome": {newFacts(store.StateParked, func(_ *Facts, r *store.StoredRow) { r.Reason, r.CallsStarted = semel.ReasonOutcomeUnknown, 1 }),
			StageUnknown, Unknown, "It is unknown whether it was applied", "semel messages resolve 17 --outcome done --because WHY"},
		"K13_an_unknown_outcome_that_a_person_discarded": {newFacts(store.StateDiscarded, addAct("discard", func(r *store.StoredRow) { addUnknownCall(nil, r) })), StageDiscarded, Unknown,
			"It is unknown whether it was applied: a call has an unknown outcome. It is not retried: ann discarded it", "semel messages show 17"},
		"K13_an_unknown_outcome_that_the_policy_discards": {newFacts(store.StateDiscarded, addUnknownCall), StageDiscarded, Unknown, "It is not retried: its handler or its policy discarded it", "semel messages show 17"},
		"K13_an_unknown_outcome_that_was_dead_lettered":   {newFacts(store.StateDeadLettered, addUnknownCall), StageDeadLettered, Unknown, "It is unknown whether it was applied", "semel messages show 17"},
		"K13_an_unknown_outcome_whose_content_cannot_be_read": {newFacts(store.StateParked, func(f *Facts, r *store.StoredRow) {
			addUnknownCall(f, r)
			r.Unreadable = "no key has the id 7"
		}), StageParked, Unknown, "It is unknown whether it was applied", "semel messages show 17"},
		"K13_an_unknown_outcome_that_was_erased": {newFacts(store.StateDiscarded, func(f *Facts, r *store.StoredRow) {
			addUnknownCall(f, r)
			r.Reason = reasonname.Erased
		}), StageDiscarded, Unknown, "its content was erased since", "semel messages show 17"},
		"K13_a_leased_key_that_failed_after_an_unknown_outcome": {newLeasedKeyFacts(sqlstore.KnownKey{Ended: keystore.Fail, Started: 2, Finished: 1}), StageDiscarded, Unknown, "of 2 claims of its leased key, 1 have a known outcome", ""},
		"K13_an_unknown_outcome_of_an_intent": {newFacts(store.StateParked, func(f *Facts, r *store.StoredRow) {
			r.Reason, r.CallsStarted, f.Sends = semel.ReasonOutcomeUnknown, 1, true
		}), StageUnknown, Unknown, "Ask the other side", "semel intents resolve 17 --outcome sent"},
		"K13_parked_and_then_a_copy": {newFacts(store.StateParked, func(f *Facts, r *store.StoredRow) {
			setReason(semel.ReasonPermanent)(f, r)
			r.Repeated, r.ChangedAt = 1, now.Add(-time.Second)
		}), StageParked, No, "it was parked at 2026-05-03 11:59:00Z (permanent failure): no such account.", "semel messages retry 17"},
		"K13_parked_without_a_marker_and_then_a_copy": {newFacts(store.StateParked, func(f *Facts, r *store.StoredRow) {
			setReason(semel.ReasonPermanent)(f, r)
			f.Markers, r.Repeated, r.ChangedAt = nil, 1, now.Add(-time.Second)
		}), StageParked, No, "it was parked at or before 2026-05-03 11:59:59Z (permanent failure): no such account.", "semel messages retry 17"},
		"K13_an_error_that_begins_with_its_reason": {newFacts(store.StateParked, func(_ *Facts, r *store.StoredRow) {
			r.Reason, r.LastError = reasonname.UnknownType, "unknown type: no handler for type \"lost\""
		}), StageParked, No, "(unknown type): no handler for type \"lost\". The policy has no handler", "semel messages retry 17"},
		"K13_a_conflict_as_a_version":           {newFacts(store.StateParked, func(_ *Facts, r *store.StoredRow) { r.Reason, r.Version = semel.ReasonConflict, 4 }), StageConflict, No, "first as version 4 of its stream", "semel messages show 17"},
		"K13_a_conflict_with_a_former_identity": {newFacts(store.StateParked, setReason(reasonname.FormerConflict)), StageConflict, No, "its previous identity has a marker", "semel messages discard 17"},
		"K13_a_reason_that_its_handler_gave":    {newFacts(store.StateParked, setReason("limit exceeded")), StageParked, No, "(limit exceeded): no such account. The handler gave this reason", "semel messages retry 17"},
		"K13_a_conflict_with_what_was_applied":  {newConflictFacts(store.Applied), StageConflict, Yes, "The first content was applied at 2026-05-03 11:59:00Z. Then other content arrived", "semel messages show 18"},
		"K13_a_conflict_that_was_discarded_later": {func() *Facts {
			f := newConflictFacts(store.Applied)
			f.Conflicts[0].State, f.Conflicts[0].ReceivedAt, f.Conflicts[0].ChangedAt = store.StateDiscarded, now.Add(-time.Hour), now.Add(-time.Minute)
			return f
		}(), StageConflict, Yes, "row 18, received at 2026-05-03 11:00:00Z, discarded since 2026-05-03 11:59:00Z", "semel messages show 18"},
		"K13_a_conflict_with_what_was_set_aside": {newConflictFacts(store.Parked), StageConflict, No, "was not applied: it is parked", "semel messages show 18"},
		"K13_a_conflict_with_what_was_reaped":    {newConflictFacts(0), StageConflict, Unknown, "no record of the first is left", "semel messages show 18"},
		"K13_applied_and_then_a_conflict": {newFacts(store.StateCompleted, func(f *Facts, _ *store.StoredRow) {
			f.Conflicts = []store.StoredRow{{Number: 18, State: store.StateParked}}
		}), StageApplied, Yes, "It was applied at 2026-05-03 11:59:00Z. Under the same identity other content arrived, which had no effect: row 18.", "semel messages show 18"},
		"law_12_a_marker_that_its_row_denies":    {newFacts(store.StateReceived, func(f *Facts, _ *store.StoredRow) { f.Markers[0].Outcome = store.Applied }), StageBroken, Unknown, "Its marker says applied and its row says waiting", "semel messages show 17"},
		"law_12_a_marker_whose_row_is_gone":      {newMarkedFacts(store.Waiting, nil), StageBroken, Unknown, "Its marker says waiting, since 2026-05-03 11:59:00Z, and its row is missing", ""},
		"K13_a_leased_key_that_was_completed":    {newLeasedKeyFacts(sqlstore.KnownKey{Ended: keystore.Complete}), StageApplied, Yes, "the call for it was completed; its leased key was first claimed at 2026-05-03 11:00:00Z.", ""},
		"K13_a_leased_key_that_failed":           {newLeasedKeyFacts(sqlstore.KnownKey{Ended: keystore.Fail}), StageDiscarded, No, "failed for good", ""},
		"K13_a_leased_key_that_is_held":          {newLeasedKeyFacts(sqlstore.KnownKey{Until: now.Add(time.Minute), Started: 1}), StageClaimed, No, "a process has its leased key until 2026-05-03 12:01:00Z", ""},
		"K13_a_leased_key_that_was_released":     {newLeasedKeyFacts(sqlstore.KnownKey{Ended: keystore.Release, Started: 1, Finished: 1}), StageDue, No, "no attempt had an effect", ""},
		"K13_a_leased_key_whose_outcome_is_open": {newLeasedKeyFacts(sqlstore.KnownKey{Ended: keystore.Abandon, Started: 2, Finished: 1}), StageUnknown, Unknown, "of 2 claims of its leased key, 1 have a known outcome", ""},
		"K13_a_leased_key_whose_lease_has_ended": {newLeasedKeyFacts(sqlstore.KnownKey{Until: now.Add(-time.Minute), Started: 1}), StageUnknown, Unknown, "It is unknown whether it was applied", ""},
		"K13_a_marker_of_a_newer_release":        {newMarkedFacts(9, nil), StageNewer, Unknown, "A newer release wrote", "semel version"},
		"K13_a_row_of_a_newer_release":           {newFacts("SHELVED", nil), StageNewer, Unknown, "A newer release wrote", "semel version"},
		"K13_what_is_encrypted_under_no_key":     {newFacts(store.StateParked, func(_ *Facts, r *store.StoredRow) { r.Unreadable = "no key has the id 7" }), StageParked, No, "its content cannot be read: no key has the id 7", "semel messages show 17"},
		"K13_a_surrogate_has_no_marker_of_own": {newFacts(store.StateParked, func(f *Facts, r *store.StoredRow) {
			f.Markers, r.Surrogate, r.Reason = nil, true, semel.ReasonNoIdentity
		}), StageParked, No, "The message has no identity", "semel messages discard 17"},
	}
	for reason, remedy := range remedies {
		command := "semel messages discard 17"
		if remedy.retry {
			command = "semel messages retry 17"
		}
		all["K13_parked_as_"+strings.ReplaceAll(string(reason), " ", "_")] = testCase{newFacts(store.StateParked, setReason(reason)), StageParked, No, "It was not applied: it was parked at 2026-05-03 11:59:00Z (" + string(reason) + "): no such account. " + remedy.says, command}
	}
	return all
}

// twins returns the facts of two contents of one identity. The second content is in the given state and owns
// the marker.
func twins(state store.RowState, change func(f *Facts, first, second *store.StoredRow)) *Facts {
	f := newFacts(store.StateParked, nil)
	f.Row.Fingerprint = semel.Fingerprint{Version: 1, Sum: [16]byte{1}}
	second := *f.Row
	second.Number, second.Conflict, second.State, second.Fingerprint = 18, true, state, semel.Fingerprint{Version: 1, Sum: [16]byte{2}}
	f.Markers[0].Outcome, f.Markers[0].Fingerprint = state.Outcome(), second.Fingerprint
	f.Conflicts = []store.StoredRow{second}
	if change != nil {
		change(f, f.Row, &f.Conflicts[0])
	}
	return f
}

func ofTwins() map[string]testCase {
	return map[string]testCase{
		"law_16_a_conflict_that_waits": {twins(store.StateReceived, nil), StageDue, No,
			"The first content was not applied: row 17 is parked. Other content of its identity, row 18, was released for processing: It was not applied yet", "semel messages show 17"},
		"law_16_a_conflict_that_took_effect": {twins(store.StateCompleted, nil), StageApplied, Yes, "row 18, was released for processing: It was applied at", "semel messages show 18"},
		"law_16_a_conflict_that_took_effect_and_the_first_was_closed": {twins(store.StateCompleted, func(_ *Facts, first, _ *store.StoredRow) { first.State = store.StateDiscarded }),
			StageApplied, Yes, "The first content was not applied: row 17 is discarded.", "semel messages show 18"},
		"law_16_a_conflict_that_took_effect_whose_marker_is_gone": {twins(store.StateCompleted, func(f *Facts, _, _ *store.StoredRow) { f.Markers = nil }),
			StageApplied, Yes, "row 18, was released for processing: It was applied at", "semel messages show 18"},
		"law_16_a_conflict_that_took_effect_and_its_row_is_gone": {twins(store.StateCompleted, func(f *Facts, _, _ *store.StoredRow) { f.Conflicts = nil }),
			StageConflict, Yes, "Other content of its identity is applied since 2026-05-03 11:59:00Z and has no row.", "semel messages show 17"},
		"law_16_a_conflict_beside_a_call_of_unknown_outcome": {twins(store.StateCompleted, func(f *Facts, first, _ *store.StoredRow) { addUnknownCall(f, first) }),
			StageApplied, Yes, "It is unknown whether the first content was applied: row 17 is parked.", "semel messages show 17"},
		"law_16_a_marker_that_was_ended_under_a_conflict": {twins(store.StateReceived, func(f *Facts, _, _ *store.StoredRow) { f.Markers[0].Outcome = store.Discarded }),
			StageBroken, Unknown, "Its marker says discarded and its row says waiting", "semel messages show 18"},
		"law_16_a_third_content_whose_call_is_unknown": {twins(store.StateCompleted, func(f *Facts, _, _ *store.StoredRow) {
			third := store.StoredRow{Number: 19, Conflict: true, State: store.StateParked, CallsStarted: 1}
			f.Conflicts = append(f.Conflicts, third)
		}), StageApplied, Yes, "other content arrived, which may have taken effect", "semel messages show 19"},
	}
}

func addUnknownCall(_ *Facts, r *store.StoredRow) { r.CallsStarted, r.CallsFinished = 1, 0 }

// unread returns test cases in which the database role lacks privileges.
func unread() map[string]testCase {
	noRows := func(f *Facts, _ *store.StoredRow) {
		f.NoRows, f.Unread = true, []string{"whether it has a row: permission denied"}
	}
	noMarkers := func(f *Facts, _ *store.StoredRow) {
		f.Markers, f.NoMarkers, f.Unread = nil, true, []string{"whether it has a marker: permission denied"}
	}
	conflict := newConflictFacts(0)
	conflict.NoMarkers = true
	return map[string]testCase{
		"K13_applied_where_rows_may_not_be_read":       {newMarkedFacts(store.Applied, noRows), StageApplied, Yes, "Some records could not be read", ""},
		"K13_discarded_where_rows_may_not_be_read":     {newMarkedFacts(store.Discarded, noRows), StageDiscarded, No, "it was discarded at 2026-05-03 11:59:00Z. Some records could not be read", ""},
		"K13_parked_where_rows_may_not_be_read":        {newMarkedFacts(store.Parked, noRows), StageMarked, Unknown, "its row, which has the details, cannot be read", ""},
		"K13_a_row_where_markers_may_not_be_read":      {newFacts(store.StateCompleted, noMarkers), StageApplied, Yes, "It was applied at 2026-05-03 11:59:00Z. Some records could not be read", ""},
		"K13_a_conflict_where_markers_may_not_be_read": {conflict, StageConflict, Unknown, "the records of the first cannot be read", "semel messages show 18"},
	}
}

// newLeasedKeyFacts returns the facts of a leased key without a marker.
func newLeasedKeyFacts(k sqlstore.KnownKey) *Facts {
	f := newMarkedFacts(0, nil)
	k.First = now.Add(-time.Hour)
	f.Markers, f.Leased = nil, &k
	return f
}

// newConflictFacts returns the facts of a row with different content. The first content has a marker with outcome
// o. If o is 0, the first content has no record.
func newConflictFacts(o store.Outcome) *Facts {
	f := newMarkedFacts(o, nil)
	if o == 0 {
		f.Markers = nil
	}
	if o != 0 {
		f.Markers[0].Fingerprint = semel.Fingerprint{Version: 1, Sum: [16]byte{1}}
	}
	f.Conflicts = []store.StoredRow{{Number: 18, Key: f.Key, Conflict: true, Fingerprint: semel.Fingerprint{Version: 1, Sum: [16]byte{2}}, State: store.StateParked, Reason: semel.ReasonConflict, ReceivedAt: now}}
	return f
}

func TestExplain(t *testing.T) {
	for _, table := range []map[string]testCase{waitingCases(), endedCases(), unappliedCases(), unread(), ofTwins()} {
		for name, want := range table {
			t.Run(name, func(t *testing.T) {
				a := Explain(want.facts)
				if a.Stage != want.stage || a.Applied != want.applied || !strings.Contains(a.Says, want.says) {
					t.Errorf("the answer is %s, applied %s: %s\nwant %s, applied %s: …%s…", a.Stage, a.Applied, a.Says, want.stage, want.applied, want.says)
				}
				var commands []string
				for _, c := range a.Do {
					commands = append(commands, "semel "+strings.Join(c, " "))
				}
				if all := strings.Join(commands, "\n"); want.command == "" && all != "" && want.stage != StageApplied || !strings.Contains(all, want.command) {
					t.Errorf("the commands are %q, want %q", all, want.command)
				}
			})
		}
	}
}

// Explain would show a reason without an explanation as a reason that a handler chose.
func TestEachReasonOfARowIsExplained(t *testing.T) {
	elsewhere := []semel.Reason{reasonname.None, semel.ReasonConflict, reasonname.FormerConflict, semel.ReasonGap, reasonname.Suppressed,
		semel.ReasonOutcomeUnknown, reasonname.Stale, reasonname.Busy, reasonname.Newer, semel.ReasonPaused}
	for _, reason := range []semel.Reason{semel.ReasonMalformed, semel.ReasonTooLarge, semel.ReasonNoIdentity, semel.ReasonBadIdentity, reasonname.IdentityTooLong,
		reasonname.UnknownType, semel.ReasonPermanent, semel.ReasonExhausted, reasonname.WaitTooLong, semel.ReasonPrecondition, reasonname.MissingParameter, reasonname.BadEffects,
		reasonname.Filtered, reasonname.NoVersion, reasonname.Behind, reasonname.Expired, reasonname.Kills, reasonname.Steps, reasonname.Unreadable, reasonname.Erased} {
		if _, is := remedies[reason]; !is {
			t.Errorf("%q has no remedy", reason)
		}
	}
	for _, reason := range elsewhere {
		if _, is := remedies[reason]; is {
			t.Errorf("%q has a remedy, but no row has this reason", reason)
		}
	}
}

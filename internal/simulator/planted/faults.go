package planted

import (
	"slices"

	"github.com/semel-go/semel/internal/simulator/plan"

	"github.com/semel-go/semel/internal/simulator/mutation"
)

// inMachine returns a fault in package machine, which the simulator must find.
func inMachine(law, name, function string, edit mutation.Edit) Fault {
	return Fault{Name: name, Law: law, In: "internal/machine", Func: "(*Machine)." + function, Edit: edit}
}

// inRules returns a fault in a rule that the simulator's store and consumer share with the real store and consumer, or
// in the simulator's own store and consumer. Seeds of the given mode must find the fault.
func inRules(law, name string, mode plan.Mode, in, function string, edit mutation.Edit) Fault {
	return Fault{Name: name, Law: law, In: in, Func: function, Edit: edit, Mode: mode}
}

// byTest returns a fault that a test must find.
func byTest(law, name, in, function string, edit mutation.Edit, pkg, test string) Fault {
	return Fault{Name: name, Law: law, In: in, Func: function, Edit: edit, Package: pkg, Test: test}
}

// Faults returns at least one fault for each law that the simulator checks, and some faults for laws that the
// simulator cannot check.
func Faults() []Fault {
	return slices.Concat(ofLaws(), ofCases(), ofOrder(), ofRetries(), ofCalls(), ofIntents(), ofPersons(), ofStores())
}

// ofLaws returns faults in package machine that break laws 1 to 13.
func ofLaws() []Fault {
	return []Fault{
		inMachine("law 1", "marks of messages out of their turn stay", "commit", mutation.Call("append", "f.trim", "trim", "early")),
		inMachine("law 2", "a commit of unknown outcome is taken for committed", "handleEnded", mutation.Call("requeueUnknown", "m.handleCommitted(w, f)")),
		inMachine("law 2", "a dead letter is marked before its copy is made", "enqueue", mutation.Never("AsDeadLettered")),
		inMachine("law 3", "a failed handler's transaction is committed", "handleRan", mutation.Call("do", "m.commit(f)", "Rollback")),
		inMachine("law 7", "a neighbour is charged for the culprit", "handleRan", mutation.Drop("suspects")),
		inMachine("law 7", "what the store exonerates is suspected", "runAloneAgain", mutation.Always("outside")),
		inMachine("law 9", "a duplicate runs", "sift", mutation.Never("Fresh")),
		inMachine("law 10", "another content is a duplicate", "endingOf", mutation.Swap("EndConflict", "EndDuplicate", "OnConflict")),
		inMachine("law 11", "nobody wakes a message that waits", "nextMoment", mutation.Delete("consider", "held")),
		inMachine("law 11", "a claim that leaves is not given back", "leave", mutation.Delete("free")),
		inMachine("law 12", "a claim that is lost ends as a duplicate", "handleCommitted", mutation.Never("ClaimLost")),
		inMachine("law 13", "nobody asks again whether the store is back", "nextMoment", mutation.Delete("consider", "store")),
		inMachine("A7", "two messages with one former identity fly together", "collect", mutation.Drop("sharesFormer")),
		inMachine("C16", "what is skipped flies with the others", "admit", mutation.Never("EndSkip")),
		inMachine("D2", "what is to be received runs at once", "admit", mutation.Never("Receive")),
		inMachine("D3", "a claim that was not begun in time is begun late", "freeLate", mutation.Always("until")),
		inMachine("D3, turns", "batches of a store with one writer wait inside of it", "oneAtATime", mutation.Drop("OneWriter")),
		inMachine("D5", "what kills its process runs again", "admitClaim", mutation.Never("r")),
		inMachine("P1", "what a newer release marked is a duplicate", "handleCommitted", mutation.Never("Newer")),
		inMachine("H4", "what is too old is parked whatever the policy says", "endExpired", mutation.Call("endAs", `m.endAs(it, EndPark, "too old")`)),
		inMachine("trap T95", "a source that has more is asked again at once", "handleFetched", mutation.Never("Items", "More")),
		inMachine("counts", "a rerun is not counted", "handleMarked", mutation.Delete("Rerun")),
		inMachine("reports", "nobody is told of a commit", "handleCommitted", mutation.Delete("ReportCommitted")),
	}
}

// ofCases returns faults in package machine that break numbered cases.
func ofCases() []Fault {
	return []Fault{
		inMachine("case 1", "a retry has company", "hold", mutation.Delete("runAlone")),
		inMachine("case 2", "a batch stays whole after contention", "backOff", mutation.Delete("quarter")),
		{Law: "case 3", Name: "what a lost commit did is a duplicate", In: "internal/machine", Func: "(*Item).doubt", Edit: mutation.Delete("unknown")},
		inMachine("case 6", "a claim waits in memory for its retry", "tryLater", mutation.Drop("Claim")),
		inMachine("case 7", "what is behind another is discarded", "standBehind", mutation.Swap("AsBlocked", "AsDiscarded")),
		{Law: "case 8", Name: "copies are not counted again when the commit failed", In: "internal/machine", Func: "(*Item).uncount", Edit: mutation.Return("")},
		inMachine("case 10", "a carrier that waits keeps the copies of revoked lanes", "hold", mutation.Delete("shed")),
	}
}

// ofOrder returns faults in the order of lanes, keys and streams.
func ofOrder() []Fault {
	return []Fault{
		{Law: "law 8", Name: "followers pass a message that waits", In: "internal/machine", Func: "(*queue).firstItem", Edit: mutation.Never("blockers")},
		{Law: "law 8", Name: "what comes back is queued at the end", In: "internal/machine", Func: "(*queue).push", Edit: mutation.Always("n")},
		inMachine("C8", "without order, the worker is chosen by arrival", "looseWorker", mutation.Swap("Route", "arrival")),
		inMachine("B4", "another content of a version is discarded as a late one", "endStale", mutation.Never("Known")),
		inMachine("B9", "a gap is discarded", "handleGap", mutation.Swap("AsBlocked", "AsDiscarded")),
		inMachine("trap T55", "as many as may be missing are too many", "tooFar", mutation.Compare(">=", "Missing")),
		inRules("C11", "a step that is done runs again", plan.Steps, "internal/steps", "Next", mutation.Return("max(len(done)-1, 0)")),
	}
}

// ofRetries returns faults in the limits of retries.
func ofRetries() []Fault {
	return []Fault{
		inMachine("C5", "a row that is refused is charged as an attempt", "blame", mutation.Never("ran")),
		inMachine("C5, budget", "what the budget did not use is kept for ever", "planRetry", mutation.Call("max", "b.empty")),
		inMachine("C6", "a success does not end the trial", "handleCommitted", mutation.Delete("trySucceeded")),
		inMachine("C19", "a success does not close the breaker", "handlerWorks", mutation.Delete("breakerState")),
	}
}

// ofCalls returns faults in calls without a transaction.
func ofCalls() []Fault {
	const calls, world = "internal/calls", "internal/simulator"
	return []Fault{
		inRules("B11", "who was frozen calls whatever its lease", plan.Calls, calls, "(*Claim).Next", mutation.Never("left")),
		inRules("law 5", "the end of a call asks for no token", plan.Calls, world, "(*flight).claimsLost", mutation.Never("Stands")),
		inRules("E3, window", "the window counts for nothing", plan.Calls, calls, "Rule.Forgotten", mutation.Return("false")),
		inRules("E3, outcome", "an answer that was lost says that nothing happened", plan.Calls, calls, "OutcomeOf",
			mutation.Prepend("if known := new(semel.HandlerError); err != nil && !errors.As(err, &known) { return store.CallFailed };")),
		inRules("E3, start", "a call is made whose start is not written down", plan.Calls, world, "(*flight).beginOutside", mutation.Call("StartCall", "store.CallStarted{Stands: true}")),
		inRules("E3, key", "a chosen key is not given to the other side", plan.Intents, ".", "(*Message).IntentKey", mutation.Never("key")),
	}
}

// ofIntents returns the planted faults that concern intents.
func ofIntents() []Fault {
	return []Fault{
		inRules("E1", "another intent of the same id is passed over", plan.Intents, "internal/intents", "Judge", mutation.Always("Fresh")),
		inRules("E2", "intents for two recipients have one id", plan.Intents, "internal/intents", "Message", mutation.Call("OutputID", `cause.OutputID(n.Purpose, "")`)),
		inRules("E4", "what is written suppressed is sent", plan.Intents, "internal/simulator/model", "(*Row).canBeClaimed", mutation.Call("Waits", `(r.Waits() || r.Reason == "suppressed")`)),
	}
}

// ofPersons returns faults in the actions of operators, in replays and rebuilds, and with a wrong clock of the
// store.
func ofPersons() []Fault {
	inWorld := func(law, name, function string, edit mutation.Edit) Fault {
		return inRules(law, name, plan.Replays, "internal/simulator", function, edit)
	}
	return []Fault{
		inWorld("law 14", "nobody records who made a row due", "(*world).requeue", mutation.Delete("acts")),
		inWorld("law 4", "a replay stores a place that is not settled", "(*process).storePositions", mutation.Call("SettledUpTo", "l.Next")),
		inRules("trap T45", "a replay moves the places of live processes", plan.Replays, "internal/simulator/model", "(*Lane).Store", mutation.Prepend("for _, d := range l.Log[:position] { d.Of.Settled = true };")),
		inWorld("G2", "a frozen process goes on in the generation that was active", "(*flight).closedOut", mutation.Never("activeGeneration")),
		inWorld("G4", "a plan takes another content for a copy", "(*world).foreseeOne", mutation.Call("Judge", "w.store.Judge(m.ID, semel.Fingerprint{})")),
		inWorld("G5", "what has taken effect is edited", "(*world).edit", mutation.Both(mutation.Never("revision"), mutation.Never("marked"))),
		inWorld("trap T47", "an operator goes on whose turn another has taken", "(*operator).goOn", mutation.Both(mutation.DropCase("by"), mutation.Prepend("if o.w.operating.by == nil { o.takeTurn(); return };"))),
		inRules("law 16", "a discarded conflict keeps the marker of the first row", plan.Twins, "internal/sqlform", "Returned", mutation.Compare("==", "said")),
		inRules("trap T113", "rows that were dated ahead are not cut", plan.Clocks, "internal/sqlform", "CutAhead", mutation.Always("ClockSlack")),
	}
}

// ofStores returns faults in the reference store and in the real consumer. Tests must find them.
func ofStores() []Fault {
	const suite, laws = "storetest", "TestMemstoreKeepsTheLaws/"
	return []Fault{
		byTest("law 5", "an ending asks for no token", "memstore", "(*Store).rowOfClaim", mutation.Drop("token"),
			suite, laws+"law_5_an_effect_whose_claim_is_lost_is_rolled_back"),
		byTest("law 6", "a lease that has ended can be begun", "memstore", "(*Store).checkClaim", mutation.Drop("LockedUntil"),
			"memstore", "TestALeaseThatHasEnded/law_6_begins_nothing_although_nobody_else_has_claimed"),
		byTest("law 16", "a discard ends the marker of another row", "memstore", "(*Store).closeMarker", mutation.Drop("owns"),
			suite, laws+"law_16_a_discard_of_the_first_row_leaves_the_marker_of_a_conflict_that_waits"),
		byTest("H3", "what is due is removed before the low-water mark says so", "memstore", "(*Store).Reap", mutation.Never("low"),
			suite, laws+"H3_nothing_is_removed_before_the_low_water_mark_is_raised"),
		byTest("law 3", "nil after the time-out is a success", "consumer/internal/engine", "(*flight).call", mutation.Never("ctx"),
			"consumer", "TestTimeOuts/law_3_a_handler_that_returns_nil_after_its_time_out_has_failed"),
		byTest("D6", "who hears a notification does not ask", "consumer/internal/engine", "(*Engine).loop", mutation.Swap("Due", "Timer"),
			"consumer", "TestNotifications/D6_who_hears_a_notification_asks_at_once"),
		byTest("I7", "an offset is committed before the store has it", "kafka", "(*commits).commit", mutation.Call("keep", "error(nil)"),
			"kafka", "TestAnOffsetIsCommittedAfterTheStoreHasIt/I7_while_the_store_does_not_take_it_nothing_is_committed_and_nothing_spins"),
	}
}

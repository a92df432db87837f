package planted

import (
	"slices"

	"github.com/semel-go/semel/internal/simulator"
)

// inModel is a fault of the simulator's own store or shell, which stand for what no rule
// that they share with the real ones says: its checker must see it.
func inModel(name, law string, mode simulator.Mode, file, before, after string) Fault {
	return Fault{Name: name, Law: law, File: "internal/simulator/" + file, Old: before, New: after, Mode: mode}
}

// ofCalls are faults of calls outside of any transaction.
func ofCalls() []Fault { return slices.Concat(ofCallRules(), ofCallModel()) }

func ofCallRules() []Fault {
	inRules := func(name, law, file, before, after string) Fault {
		return Fault{Name: name, Law: law, File: "internal/calls/" + file, Old: before, New: after, Mode: simulator.Calls}
	}
	return []Fault{
		inRules("an answer that was lost says that nothing happened", "E3, outcome", "calls.go",
			"\tif !errors.As(err, &decided) {\n\t\treturn store.CallUnknown\n", "\tif !errors.As(err, &decided) {\n\t\treturn store.CallFailed\n"),
		inRules("what came too late counts as heard", "E3, window", "calls.go",
			"\tcase late:\n\t\treturn store.CallUnknown\n", "\tcase late:\n\t\treturn store.CallFailed\n"),
		inRules("the window begins with the last call", "E3, window", "ledger.go",
			"if l.First.IsZero() {", "if !now.IsZero() {"),
		inRules("the window counts for nothing", "E3, window", "calls.go",
			"r.Window != Always && since >= r.Window-r.Timeout", "false"),
		inRules("a call that arrives after the window is made within it", "E3, window", "calls.go",
			"since >= r.Window-r.Timeout", "since >= r.Window"),
		inRules("a release after an unknown outcome takes its start back", "E3, window", "ledger.go",
			"case o == store.CallNotMade && begun:", "case (o == store.CallNotMade || o == store.CallUnknown) && begun:"),
		inRules("what took effect and is given back is known to the next", "E3, window", "calls.go",
			"\tif c.Outcome() == store.CallDecided {\n\t\treturn store.CallUnknown\n", "\tif c.Outcome() == store.CallDecided {\n\t\treturn store.CallDecided\n"),
		inPackage("a second call of a claim is its first", "E3", "internal/calls/calls.go",
			"c.unsure = true", "c.unsure = false",
			"./internal/calls", "TestWhatIsKnownOfACall/E3_a_second_call_under_a_claim_is_not_its_first"),
		inPackage("time since the store was asked for a start does not count", "E3", "internal/calls/calls.go",
			"s.Since + ago", "s.Since",
			"./internal/calls", "TestWhatIsDoneAboutACall/E3_time_since_the_store_was_asked_counts"),
		inPackage("what is sent again is sent when its key is forgotten", "C12", "internal/calls/calls.go",
			"case s.Again && (r.Once || forgotten):", "case s.Again && r.Once:",
			"./internal/calls", "TestWhatIsDoneAboutACall/C12_E3_and_not_when_it_would_arrive_late"),
		inPackage("what a transaction has done is done again", "C12", "internal/calls/again.go",
			" || s.Finished < s.Started", "",
			"./internal/calls", "TestWhatIsSentAgain/C12_law_1_not_what_a_transaction_ended"),
		inShell("a duplicate is settled before its intents are due", "C12", "consumer/duplicates.go",
			"return places, fmt.Errorf(\"what duplicates caused", "return nil, fmt.Errorf(\"what duplicates caused",
			"TestADuplicateHasIntentsSentAgain/C12_before_it_is_settled_and_again_where_that_failed"),
		inShell("a call whose lease may be over is made", "B11", "consumer/keeper.go",
			"return time.Until(h.ends)", "return time.Hour",
			"TestCallsOfTheFrozen/B11_law_5_a_call_is_not_made_when_its_lease_may_be_over"),
		inRules("who was frozen calls whatever its lease", "B11", "calls.go",
			"case left <= 0:", "case false:"),
		inRules("a call whose end is not recorded is made again", "E3, window", "calls.go",
			"\tcase c.done: // and the store has not answered that this is recorded\n\t\treturn Nothing\n", "\tcase c.done:\n\t\treturn Make\n"),
		inRules("a failure of the last call decides those before it", "E3, outcome", "ledger.go",
			"\t\tl.Finished++\n", "\t\tl.Finished = l.Started\n"),
	}
}

func ofCallModel() []Fault {
	return []Fault{
		inModel("a call is made whose start is not written down", "E3, start", simulator.Calls, "calling.go",
			"f.started = c.row.startCall(c.token(), w)", "f.started = store.CallStarted{Stands: true}"),
		inModel("the end of a call asks for no token", "law 5", simulator.Calls, "claiming.go",
			"if !c.row.stands(f.sent[ends[i].Entry]) {", "if !c.row.waits() {"),
		inModel("a claim is taken from a call in its lease", "B11", simulator.Calls, "inbox.go",
			"r.token != 0 && r.until <= now)", "r.token != 0)"),
		inModel("each call has a key of its own", "E3, key", simulator.Calls, "calling.go",
			"key: callKey(it, m)}", "key: callKey(it, m) + word(phaseNames[:], phase(c.token()%6))}"),
		inModel("who answers that nothing happened is not asked about calls under way", "law 12", simulator.Calls, "calling.go",
			"\tcase w.provider.charged[m.id] > 0:\n", "\tcase w.provider.made[m.id] > 0:\n"),
	}
}

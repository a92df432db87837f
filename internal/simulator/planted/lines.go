package planted

// ofLines are faults of what keeps an order in the inbox: of the machine, which the
// simulator finds, and of stores, which their suite finds.
func ofLines() []Fault {
	const lines, memstore, suite = "internal/lines/lines.go", "memstore/lines.go", "./storetest"
	const laws = "TestMemstoreKeepsTheLaws/"
	return []Fault{
		inMachine("what is behind another is discarded", "case 7", "behind.go",
			"it.as, it.alone = AsBlocked, false", "it.as, it.alone = AsDiscarded, false"),
		inMachine("what is behind another runs", "B9", "flight.go",
			"\t\tif v.Kind != store.Fresh {\n", "\t\tif v.Kind != store.Fresh && v.Kind != store.Behind {\n"),
		inMachine("what is behind another asks for ever", "case 7", "behind.go",
			"it.as, it.alone = AsBlocked, false", "it.alone = false"),
		inMachine("marks of what is behind another stay", "law 1", "commit.go",
			"v.Kind == store.Behind || v.Kind == store.Old:", "v.Kind == store.Old:"),
		inPackage("what is to wait enters its line before one that was taken back", "case 7", "internal/machine/behind.go",
			"\t\tcase v == untouched || v == store.Behind || v == store.Old:\n", "\t\tcase false:\n",
			"./internal/machine", "TestWhatIsBehindAnother/case_7_law_8_enters_its_line_after_an_earlier_one_of_its_key"),
		inPackage("a mark does not see what comes to wait before it in its batch", "law 8", lines,
			"case m.As == store.Applied && kept[string(m.Line)]:", "case false:",
			suite, laws+"C8_law_8_one_that_stays_keeps_back_those_after_it_in_its_batch"),
		inPackage("what is parked keeps nothing back", "case 7", memstore,
			"(r.State == store.StateParked || r.State.Outcome() == store.Waiting)", "r.State.Outcome() == store.Waiting",
			suite, laws+"C8_D8_law_8_what_comes_behind_one_that_waits_does_not_run"),
		inPackage("an end frees whatever waits in the line", "D8", memstore,
			"next == nil || next.State != store.StateBlocked", "next == nil",
			suite, laws+"C8_G6_discarding_a_row_of_a_line_lets_it_go_on"),
		inPackage("a follower of an empty line is missed", "law 11", memstore,
			"\tcase r.State == store.StateBlocked:\n", "\tcase false:\n",
			suite, laws+"D8_law_11_a_follower_whose_line_is_empty_by_then_is_due_at_once"),
		inPackage("who lets followers pass frees none", "G6", memstore,
			"\ts.leave(r)\n\ts.advance(r)\n", "\ts.leave(r)\n",
			suite, laws+"C8_G6_a_person_lets_followers_pass_a_row"),
		inPackage("a policy of another kind leaves what is blocked in its line", "law 11", memstore,
			"if r.stands() && r.Key.Consumer == consumer {", "if r.stands() && r.Key.Consumer == consumer && r.State != store.StateBlocked {",
			suite, laws+"C8_law_11_rows_of_a_consumer_that_keeps_no_lines_leave_them"),
		inPackage("a discarded row keeps its followers", "law 11", "memstore/acts.go",
			"\ts.advance(r)\n", "",
			suite, laws+"C8_G6_discarding_a_row_of_a_line_lets_it_go_on"),
		inPackage("a dead letter that is retried stands before those that went on", "C8", "memstore/acts.go",
			"if r.State == store.StateDeadLettered {", "if false {",
			suite, laws+"C8_a_dead_letter_that_is_retried_has_left_its_line"),
	}
}

package planted

// ofRetention are faults of what removes what has ended, and of what becomes of messages
// that are older than what is kept.
func ofRetention() []Fault {
	const suite, laws = "./storetest", "TestMemstoreKeepsTheLaws/"
	const memstore = "memstore/retention.go"
	return []Fault{
		inMachine("what is too old runs", "law 9", "flight.go",
			"\t\tif v.Kind != store.Fresh {\n", "\t\tif v.Kind != store.Fresh && v.Kind != store.Old {\n"),
		inMachine("what is too old is a duplicate", "law 12", "commit.go",
			"\t\tcase v.Kind == store.Old:\n\t\t\tm.old(en.Item, v.Ahead)\n", ""),
		inMachine("what is too old leaves no row", "law 12", "commit.go",
			"it.Claim != nil || m.keeps(en.As) {", "it.Claim != nil || m.keeps(en.As) && it.failed().reason != semel.ReasonOld {"),
		inMachine("marks of what is too old stay", "law 1", "commit.go",
			"v.Kind == store.Behind || v.Kind == store.Old:", "v.Kind == store.Behind:"),
		inMachine("followers of what is too old pass it", "case 7", "flight.go",
			"v.Kind == store.Old && m.config.Block && en.Item.line.ordered {", "false {"),
		inMachine("what is too old asks again and again", "H4", "old.go",
			"m.endAs(it, m.config.OnOld, semel.ReasonOld)", "m.requeue(it)"),
		inMachine("what is too old is parked whatever the policy says", "H4", "old.go",
			"m.endAs(it, m.config.OnOld, semel.ReasonOld)", "m.endAs(it, ThenPark, semel.ReasonOld)"),
		{
			Name: "what is kept behind another of its line asks for no age", Law: "law 12", File: "store/store.go",
			Old: "return m.As == Applied || m.As == Waiting", New: "return m.As == Applied",
		},
		inShell("a row that waits is made without a look at its age", "H4", "consumer/flight.go",
			"} else if m.Asks() {", "} else if en.As == machine.AsApplied || en.As == machine.AsReceived {",
			"TestWhatIsOlderThanWhatIsKept/H4_it_does_not_wait_in_its_line_to_run_again"),
		inMachine("nothing says why what is too old was set aside", "H4", "old.go",
			"m.endAs(it, m.config.OnOld, semel.ReasonOld)", "m.endAs(it, m.config.OnOld, \"\")"),
		inPackage("the age is judged before the marks", "H3", "internal/sqlform/retention.go",
			"verdicts[i].Kind != store.Fresh || !asksAge(m)", "!asksAge(m)",
			suite, laws+"H3_what_is_due_is_removed_and_its_copy_is_old"),
		inPackage("the age is judged before the lines", "C8", "internal/sqlform/retention.go",
			"verdicts[i].Kind != store.Fresh || !asksAge(m)", "verdicts[i].Kind != store.Fresh && verdicts[i].Kind != store.Behind || !asksAge(m)",
			suite, laws+"H4_C8_what_is_late_hears_of_its_line_first_and_of_its_age_when_it_asks_to_wait_there"),
		inPackage("what is due is removed before the low-water mark says so", "H3", memstore,
			"low.Before(at) && !o.DryRun", "low.Before(at) && false",
			suite, laws+"H3_nothing_is_removed_before_the_low_water_mark_is_raised"),
		inPackage("a row that has not ended goes with its marker", "law 4", memstore,
			"!(r.State.Ended() && r.ChangedAt.Before(cutoff))", "r.State.Outcome() == store.Waiting",
			suite, laws+"trap_T68_nothing_unfinished_is_removed"),
		inPackage("the cutoff ignores the lane that is the furthest behind", "H2", memstore,
			"name != \"\" && is.Before(from)", "name == \"\" && is.Before(from)",
			suite, laws+"H2_one_lane_that_is_behind_holds_the_cutoff"),
		inPackage("the clock goes on while a consumer makes no progress", "H2", memstore,
			"\tif k.progress.Before(from) {\n", "\tif false {\n",
			suite, laws+"trap_T63_the_clock_of_a_consumer_stops_while_it_makes_no_progress"),
	}
}

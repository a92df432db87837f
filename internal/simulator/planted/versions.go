package planted

// ofVersions are faults of versions whose turn has not come, or is over.
func ofVersions() []Fault {
	return []Fault{
		inMachine("a gap is discarded", "B9", "version.go",
			"it.as, it.alone = AsBlocked, false", "it.as, it.alone = AsDiscarded, false"),
		inMachine("a version that was passed runs", "B9", "flight.go",
			"\t\tif v.Kind != store.Fresh {\n", "\t\tif v.Kind != store.Fresh && v.Kind != store.Stale {\n"),
		inMachine("a gap is an attempt", "C5", "version.go",
			"why.reason, why.after = semel.ReasonGap, m.config.Gap\n", "why.reason, why.after = semel.ReasonGap, m.config.Gap\n\t\tit.attempts++\n"),
		inMachine("a gap waits for no time", "trap T55", "version.go",
			"why.reason, why.after = semel.ReasonGap, m.config.Gap\n", "why.reason = semel.ReasonGap\n"),
		inMachine("a version too far ahead waits", "trap T55", "version.go",
			"return most > 0 && gap.Missing > most", "return most < 0"),
		inMachine("as many as may are too many", "trap T55", "version.go",
			"gap.Missing > most", "gap.Missing >= most"),
		inMachine("a gap asks again for a version that was taken back", "B9", "version.go",
			"f.verdicts[i].Kind == store.Fresh && en.As.moves()", "f.verdicts[i].Kind <= store.Fresh && en.As.moves()"),
		inMachine("a gap waits for ever", "B9", "version.go",
			"\tcase it.Claim != nil && it.Claim.Blocked:\n", "\tcase it.Claim != nil && false:\n"),
		inMachine("a gap is parked without a look at its stream", "B9", "version.go",
			"it.as, it.alone = AsOverdue, false", "it.as, it.alone = AsParked, false"),
		inMachine("another content of a version is discarded as a late one", "B4", "version.go",
			"\tif v.Known && m.config.OnConflict", "\tif false && m.config.OnConflict"),
		inMachine("marks of versions out of their turn stay", "law 1", "commit.go",
			"Trim: append(f.trim, early...), Rows", "Trim: append(f.trim, early[:0]...), Rows"),
		inMachine("nobody asks for rows that were freed", "D3", "commit.go",
			"\t\tif e.Freed {\n", "\t\tif e.Freed && false {\n"),
		inMachine("a commit that frees nothing is a reason to ask", "law 11", "commit.go",
			"\t\tif e.Freed {\n", "\t\tif e.Freed || true {\n"),
		{ // the simulator finds it, too, in one of 10,000 seeds
			Name: "a version takes effect although the one before it is taken back", Law: "B9", File: "internal/machine/version.go",
			Old: "return it.Version != nil && slices", New: "return false && slices",
			Test: "TestVersionsOutOfTheirTurn/B9_one_does_not_run_whose_predecessor_waits_in_its_lane", Package: "./internal/machine",
		},
		{
			Name: "a version that was passed is charged with an earlier failure", Law: "B4", File: "internal/machine/version.go",
			Old: "\t\tt.suspicion = suspicion{} // no run of its follows\n", New: "",
			Test: "TestVersionsOutOfTheirTurn/B4_trap_T54_a_version_that_was_passed_is_discarded_and_no_more_suspected", Package: "./internal/machine",
		},
		{
			Name: "a version that only seemed to be passed is discarded", Law: "B4", File: "internal/machine/version.go",
			Old: "if passedInVain(f, it) {", New: "if passedInVain(f, it) && false {",
			Test: "TestAVersionThatIsTakenBack/B4_trap_T54_and_one_that_it_had_passed_asks_again", Package: "./internal/machine",
		},
		{
			Name: "a gap whose predecessor has come is parked", Law: "trap T55", File: "internal/streams/streams.go",
			Old: "c.Event == store.RowParked && c.Reason == semel.ReasonGap\n", New: "false\n",
			Test: "TestAClaimThatIsParkedForAGap/B9_trap_T55_is_released_if_its_predecessor_has_come_since", Package: "./internal/streams",
		},
		inStreams("a stream moves past a version that is taken back",
			"if b.next[i] && !stays[i] && b.marks[i].Version.Number == s.now+1 {", "if b.next[i] && !stays[i] {"),
		inStreams("a release misses the next version",
			"b.marks[mark].Version.Number <= s.now+1", "b.marks[mark].Version.Number < s.now+1"),
		inStreams("a claim that fails moves its stream",
			"stays[c.Mark] = c.Event != store.RowCompleted && c.Event != store.RowDiscarded", "stays[c.Mark] = c.Event == store.RowBlocked"),
	}
}

// inStreams is a fault of how stores judge versions, which a model finds that judges the
// same batches.
func inStreams(name, before, after string) Fault {
	return Fault{Name: name, Law: "B9", File: "internal/streams/streams.go", Old: before, New: after, Package: "./internal/streams",
		Test: "TestJudgesAsAModelDoes/B4_B9_trap_T53_of_streams_that_move_as_far_as_their_versions_follow_one_another"}
}

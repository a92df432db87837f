package planted

// inPackage is a fault that a test of a package finds.
func inPackage(name, law, file, before, after, where, test string) Fault {
	return Fault{Name: name, Law: law, File: file, Old: before, New: after, Package: where, Test: test}
}

// ofStreams are faults of stores that judge versions, move streams and free followers.
func ofStreams() []Fault {
	const streams, memstore, suite = "./internal/streams", "memstore/streams.go", "./storetest"
	return []Fault{
		inPackage("the sequence advances when a message is queued again", "B9", "internal/streams/streams.go",
			"|| m.As != store.Applied && m.As != store.Discarded {", "{",
			streams, "TestVersionsOfABatch/B9_what_waits_moves_nothing"),
		inPackage("a release misses a follower that is added beside it", "law 11", memstore,
			"for there != nil && there.owner != nil {", "for false {",
			suite, "TestMemstoreKeepsTheLaws/B9_law_11_no_follower_is_missed_that_is_added_while_its_predecessor_commits"),
		inPackage("what was parked for a gap is not freed", "B9", memstore,
			"waits := r.State == store.StateBlocked || r.State == store.StateParked && r.Reason == semel.ReasonGap", "waits := r.State == store.StateBlocked",
			suite, "TestMemstoreKeepsTheLaws/B9_law_11_one_that_has_waited_for_as_long_as_it_may_can_be_claimed"),
		inPackage("a second skip passes over what the first freed", "B9", memstore,
			"at.last != of.Last || to <= of.Last {", "false {",
			suite, "TestMemstoreKeepsTheLaws/B9_G6_a_person_skips_what_does_not_come"),
	}
}

package planted

// ofRestores are faults of what tells that a store is behind its broker.
func ofRestores() []Fault {
	return []Fault{
		inKafka("an offset is committed before the store has it", "I7", "commit.go",
			"\tif err := c.positions.keep(ctx, all); err != nil {\n\t\treturn err\n\t}\n\tvar errs error\n", "\tvar errs error\n",
			"TestAnOffsetIsCommittedAfterTheStoreHasIt/I7_while_the_store_does_not_take_it_nothing_is_committed_and_nothing_spins"),
		inKafka("what was written before need not stand any more", "T110", "positions.go",
			"Least: commit.kept,", "Least: source.NoOffset,",
			"TestAStoreThatIsBehindItsGroup/trap_105_a_store_that_fails_over_without_its_last_commits_stops_the_running_consumer"),
		inKafka("who is given a partition does not look at the store", "T110", "positions.go",
			"\t\tif err := k.judge(found); err != nil {\n\t\t\treturn k.giveUp(err)\n\t\t}\n", "",
			"TestAStoreThatIsBehindItsGroup/trap_T110_who_is_given_a_partition_looks_before_it_reads"),
		inKafka("an offset that a person has set is taken for proof", "I7", "behind.go",
			"return c.marked && c.store < c.group", "return c.store < c.group",
			"TestWhatCannotBeKnownOfAStore/I7_an_offset_that_a_person_has_set_is_named_and_obeyed"),
	}
}

func inKafka(name, law, file, before, after, test string) Fault {
	return inPackage(name, law, "kafka/"+file, before, after, "./kafka", test)
}

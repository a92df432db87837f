package planted

// ofFormers are faults of former identities.
func ofFormers() []Fault {
	return []Fault{
		inMachine("two messages with one former identity fly together", "A7", "batch.go",
			" || m.sharesFormer(it)", ""),
		inMachine("a message is a copy of what has its former identity", "law 2", "commit.go",
			"rider.Print == it.Print && rider.Source == it.Source && rider.Identity == it.Identity", "true"),
		inMachine("a lane goes on past a message that waits for its former identity", "law 8", "item.go",
			"return it.key() != it.carrier.key() || it.Former != nil && it.Print != it.carrier.Print", "return false"),
		inMachine("what the release before did is taken for its own", "case 3", "commit.go",
			"v.Former || en.Item.conflicted()", "en.Item.conflicted()"),
	}
}

package planted

// ofRetries are faults of what bounds the retries of all messages together.
func ofRetries() []Fault {
	return []Fault{
		inMachine("retries have no budget", "C5, budget", "blame.go",
			"\t\td = m.plan(d)\n", "\t\t_ = m.plan(d)\n"),
		inMachine("what the budget did not use is kept for ever", "C5, budget", "budget.go",
			"b.empty = max(b.empty, m.now-m.config.RetrySaved) + m.config.RetryCost", "b.empty += m.config.RetryCost"),
		inMachine("a first attempt gives as much as a retry takes", "C5, budget", "budget.go",
			"b.empty-m.config.RetryShare", "b.empty-m.config.RetryCost"),
		inMachine("what is tried one at a time has company", "C6", "batch.go",
			"alone := it.alone || m.tries(it)", "alone := it.alone"),
		inMachine("each worker tries one", "C6", "trial.go",
			"f != nil && !f.cut && f.runsHandlers() {\n\t\t\treturn false", "f != nil && !f.cut && f.runsHandlers() {\n\t\t\treturn true"),
		inMachine("tries follow one another at once", "C6", "trial.go",
			"t.until = m.now + m.config.RetryCost", "t.until = m.now"),
		inMachine("a success does not end the trial", "C6", "commit.go",
			"\tif f.done > 0 {\n\t\tm.trySucceeded()\n\t}\n", ""),
		inMachine("failures that others' successes part are in a row", "C6", "trial.go",
			"\tm.trial = trialState{}\n", "\tm.trial.on = false\n"),
		inMachine("the breaker does not open", "C19", "breaker.go",
			"b.row < m.config.HaltAfter || ", "m.config.HaltAfter > 0 || "),
		inMachine("bad messages stop a consumer that works", "C19", "breaker.go",
			"b.succeeded && !m.config.HaltLater", "b.tries < 0"),
		inMachine("what fails while the breaker is open is parked", "C19", "breaker.go",
			"int(it.attempts) >= m.keptFor()", "b.tries > 0"),
		inMachine("tries of an open breaker follow one another at once", "C19", "breaker.go",
			"return max(m.trial.until, m.breaker.until)", "return m.trial.until"),
		inMachine("a success does not close the breaker", "C19", "breaker.go",
			"\tm.breaker = breakerState{succeeded: true}\n", "\tm.breaker.succeeded = true\n"),
		inMachine("an open breaker tries many at a time", "C19", "breaker.go",
			"return m.trial.on || m.breaker.open", "return m.trial.on"),
		inMachine("an open breaker claims on", "C19", "claims.go",
			" || m.breakerHolds(false) {", " {"),
		inMachine("an open breaker fetches on", "C19", "fetch.go",
			"if m.breaker.open && !m.config.Receive {", "if m.breaker.open && m.config.Receive {"),
		{
			Name: "a run ends idle while a try waits", Law: "law 11", File: "internal/machine/idle.go",
			Old: " || m.tryAt() > m.now {", New: " {",
			Test: "TestOneMessageIsTriedAtATime/law_11_a_run_does_not_end_idle_while_one_waits_to_be_tried", Package: "./internal/machine",
		},
		{
			Name: "what is received waits behind what may not be tried", Law: "C6", File: "internal/machine/line.go",
			Old: "return m.looseWorker(it).own[ownClaims]", New: "return m.looseWorker(it).own[ownLoose]",
			Test: "TestOneMessageIsTriedAtATime/C6_what_is_received_does_not_wait_behind_what_may_not_be_tried", Package: "./internal/machine",
		},
	}
}

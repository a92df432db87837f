package planted

// inMemstore is a fault of the reference store that the conformance suite finds.
func inMemstore(name, law, before, after, test string) Fault {
	return Fault{Name: name, Law: law, File: "memstore/leases.go", Old: before, New: after, Test: "TestMemstoreKeepsTheLaws/" + test, Package: "./storetest"}
}

// ofClaims are faults of what the machine does with claims and with what waits.
func ofClaims() []Fault {
	return []Fault{
		inMachine("a claim rides on a copy", "law 12", "claims.go",
			"\tm.enqueue(it)\n", "\tif carrier := m.carriers[it.key()]; carrier != nil {\n\t\tm.ride(it, carrier)\n\t} else {\n\t\tm.enqueue(it)\n\t}\n"),
		inMachine("a claim that is lost ends as a duplicate", "law 12", "commit.go",
			"\t\tcase v.Kind == store.ClaimLost:\n\t\t\tm.loseClaim(en.Item)\n", ""),
		inMachine("a commit that a lost claim refused charges a message", "law 7", "commit.go",
			"case f.why == store.ClassClaimLost, f.why == store.ClassNone && e.Class == store.ClassClaimLost:", "case f.why == store.ClassClaimLost:"),
		inMachine("a handler that is cancelled for a lost claim has met contention", "reports", "commit.go",
			"case f.why == store.ClassClaimLost, f.why == store.ClassNone && e.Class", "case f.why == store.ClassNone && e.Class"),
		inMachine("a claim that was not begun in time is begun late", "D3", "claims.go",
			"case fresh.until > m.now:", "case true:"),
		inMachine("what leaves is not given back", "law 11", "carrier.go",
			"\tif it.Claim != nil {\n\t\tm.free(it)\n\t}\n", ""),
		inMachine("what should wait in the inbox waits in memory", "case 6", "blame.go",
			"m.config.Wait && d > m.config.Hold && !m.config.OneAttempt {", "false {"),
		inMachine("a claim waits in memory for its retry", "case 6", "blame.go",
			"if it.Claim != nil || m.config.Wait &&", "if m.config.Wait &&"),
		inMachine("what is to be received runs at once", "D2", "admission.go",
			"\tif m.config.Receive {", "\tif false {"),
		inMachine("a run ends idle although the inbox was not asked", "D3", "idle.go",
			"return !m.config.Inbox || !c.under && (c.empty && c.until > m.now || m.full())", "return !m.config.Inbox || !c.under"),
		inPackage("a run ends idle on an old answer of the inbox", "D3", "internal/machine/idle.go", "c.empty && c.until > m.now || m.full()", "c.empty || m.full()",
			"./internal/machine", "TestTheInboxWhileTheBreakerIsOpen/D3_C19_a_run_does_not_end_idle_on_what_the_inbox_said_before_a_row_was_due"),
		inMachine("what is due later is forgotten", "D3", "claimed.go",
			"\t\tc.moments = remember(c.moments, at)\n", ""),
		inMachine("of what is due later only the soonest is remembered", "D3", "claimed.go",
			"known || i == mostMoments", "known || i == 1"),
		inMachine("the inbox is asked while the store is down", "law 13", "claims.go",
			" || m.store.closed(m.now) || c.lane.items", " || c.lane.items"),
		inMachine("more is claimed than memory may hold", "law 11", "claims.go",
			"Messages: min(messages, c.most-c.lane.items)", "Messages: c.most-c.lane.items"),
		inMachine("an empty inbox is asked again at once", "law 11", "claims.go",
			"c.until, c.empty = m.now+m.config.Poll/2+m.jitter(m.config.Poll/2, m.config.Poll/2, 0), true", "c.until, c.empty = m.now+1, true"),
		inMachine("what ended with its lost commit is a duplicate", "law 12", "commit.go",
			"return v.Known && en.As != AsDuplicate", "return false"),
		inMachine("what ended with its lost commit is ended again", "law 5", "commit.go",
			"if !v.Known { // other", "if v.Was != 0 { // other"),
		inMachine("what was received and has been applied since is a copy", "case 3", "commit.go",
			"case v.Kind == store.Seen && en.As.Outcome() == store.Waiting:\n\t\treturn true", "case v.Kind == store.Seen && en.As.Outcome() == store.Waiting:\n\t\treturn v.Was == store.Waiting"),
		inMachine("a suspect claim has company", "case 1", "claims.go",
			"it.attempts, it.alone = int32(c.Attempts), c.Suspect", "it.attempts = int32(c.Attempts)"),
		inMachine("a claim's attempts begin anew", "C5", "claims.go",
			"it.attempts, it.alone = int32(c.Attempts), c.Suspect", "it.alone = c.Suspect"),
		inMachine("what kills its process runs again", "D5", "claims.go",
			"\tif r := it.Refused; r != nil {", "\tif r := it.Refused; false {"),
		{
			Name: "what is given back while the inbox is asked is not asked for", Law: "D3", File: "internal/machine/claims.go",
			Old: "m.claims.freed, m.claims.empty, m.claims.wanted = nil, false, true", New: "m.claims.freed, m.claims.empty = nil, false",
			Test: "TestWhenTheInboxIsAsked/D3_again_for_what_was_given_back_while_it_was_asked", Package: "./internal/machine",
		},
		{
			Name: "claims wait for a worker that sticks", Law: "law 11", File: "internal/machine/worker.go",
			Old: "if w := &m.workers[(first+i)%n]; !w.sticks() {", New: "if w := &m.workers[(first+i)%n]; i < n {",
			Test: "TestHowMuchIsClaimedAhead/law_11_a_worker_that_sticks_gets_none", Package: "./internal/machine",
		},
	}
}

// ofFencing are faults of leases and tokens, in the shell and in the store.
func ofFencing() []Fault {
	return []Fault{
		inShell("an extension has no end", "law 11", "consumer/keeper.go",
			"case c.until.After(now):", "case c.until.After(now) || true:",
			"TestLeasesOfTheLiving/law_5_law_11_trap_122_trap_125_a_handler_that_does_not_end_loses_its_claim_and_nothing_of_it_commits"),
		inShell("who hears a notification does not ask", "D6", "consumer/engine.go",
			"event = machine.Due{}", "event = machine.Timer{}",
			"TestNotifications/D6_who_hears_a_notification_asks_at_once"),
		inShell("each receipt notifies", "D6", "consumer/bell.go",
			"if !timing.Wait(base, ringsEvery) {", "if !timing.Wait(base, 1) {",
			"TestNotifications/D6_receipts_notify_after_their_commit_and_ten_times_a_second_at_most"),
		inShell("a call whose claim was lost counts as applied", "law 5", "consumer/leased.go",
			"case !stood:", "case !stood && err != nil:",
			"TestHandlersThatCallOut/law_5_a_call_whose_row_a_person_took_meanwhile_ends_nothing"),
		inShell("an end whose answer is lost counts as not done", "case 3", "consumer/leased.go",
			"Outcome: store.CommitUnknown,", "Outcome: store.NotCommitted, Class: store.ClassClaimLost,",
			"TestHandlersThatCallOut/case_3_an_end_whose_answer_is_lost_is_counted_once_and_called_for_once"),
		inShell("nobody extends", "T4", "consumer/keeper.go",
			"case c.until.After(now):", "case false:",
			"TestLeasesOfTheLiving/trap_T4_trap_T3_a_handler_of_three_leases_keeps_its_claim_and_runs_once"),
		inShell("a retake forgets an older token", "law 5", "consumer/claims.go",
			"from := slices.Clone(h.tokens)", "from := slices.Clone(h.tokens[len(h.tokens)-1:])",
			"TestARetakeWhoseAnswerIsLost/case_3_it_did_not_happen"),
		inShell("what a lost answer took is not asked for", "law 11", "consumer/inbox.go",
			"b.unsure = append(b.unsure, token)", "_ = token",
			"TestAnInboxThatCannotBeAsked/law_11_what_a_lost_answer_took_is_found_by_its_token"),
		inShell("the start of what is suspect is not written down", "D5", "consumer/claims.go",
			"h.Suspect && !h.started", "false",
			"TestClaimsOfTheDead/D5_trap_16_trap_T42_one_that_kills_its_process_again_and_again_is_parked_by_the_next"),
		{
			Name: "an ending asks for the token only", Law: "law 12", File: "memstore/leases.go",
			Old: "if r == nil || s.markers[r.key.identity].outcome != store.Waiting || !s.owns(r) {", New: "if r == nil {",
			Test: "TestAClaimWhoseMarkerDoesNotWait/law_12_it_begins_and_ends_nothing", Package: "./memstore",
		},
		inMemstore("an ending asks for no token", "law 5", "c.Token == 0 || r.token != c.Token || r.State", "c.Token == 0 || r.State",
			"law_5_an_effect_whose_claim_is_lost_is_rolled_back"),
		inPackage("a lease that has ended can be begun", "law 6", "memstore/leases.go", // the conformance suite finds it, too, after half a minute
			"r != nil && r.LockedUntil.After(s.now()) &&", "r != nil &&",
			"./memstore", "TestALeaseThatHasEnded/law_6_begins_nothing_although_nobody_else_has_claimed"),
		inMemstore("an extension shortens a lease", "law 6", "if until := now.Add(lease); until.After(r.LockedUntil) {", "if until := now.Add(lease); true {",
			"law_6_an_extension_moves_the_end_and_never_back"),
		inMemstore("a retake takes what others claimed", "law 5", "if slices.Contains(from, r.token) && s.claimed(r.claim()) != nil {", "if s.claimed(r.claim()) != nil {",
			"law_5_a_row_is_retaken_under_the_tokens_of_its_owner_only"),
	}
}

// ofTurns are faults of who waits where: outside of a store with one writer, and with
// claims for no longer than their leases.
func ofTurns() []Fault {
	return []Fault{
		inMachine("batches of a store with one writer wait inside of it", "D3, turns", "serial.go",
			"return m.serial.on || m.config.OneWriter }", "return m.serial.on }"),
		{
			Name: "a claim that was rolled back is kept from others for ever", Law: "D3", File: "internal/machine/commit.go",
			Old: "\tm.mayLeaveAgain(f, e.Until)\n", New: "",
			Test: "TestOneMessageIsTriedAtATime/C6_D3_what_was_rolled_back_and_waits_to_be_tried_is_given_back_in_its_time", Package: "./internal/machine",
		},
		inMachine("a store with one writer is asked for claims beside a batch", "D3, turns", "claims.go",
			"if m.config.OneWriter && m.oneFlies() {", "if false {"),
	}
}

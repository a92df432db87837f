package planted

import "slices"

// inMachine is a fault of the machine's that the simulator finds.
func inMachine(name, law, file, before, after string) Fault {
	return Fault{Name: name, Law: law, File: "internal/machine/" + file, Old: before, New: after}
}

// inShell is a fault of the engine's shell that a test of the library finds.
func inShell(name, law, file, before, after, test string) Fault {
	return Fault{Name: name, Law: law, File: file, Old: before, New: after, Test: test, Package: "./consumer"}
}

// Faults are mistakes that engines of this kind have made, or could make.
func Faults() []Fault {
	return slices.Concat(ofCommits(), ofOrder(), ofWaits(), ofAsking(), ofClaims(), ofSources(), ofCalls(), ofSteps(), ofIntents(), ofTurns(), ofRetries(), ofVersions(), ofStreams(), ofLines(), ofFormers(), ofRetention(), ofRestores(), ofReplays(), ofTwins(), ofFencing(), ofShell())
}

// ofCommits are faults of marks, commits and what is settled after them.
func ofCommits() []Fault {
	return []Fault{
		inMachine("copies are not counted again when the commit failed", "case 8", "commit.go",
			"r.counted = false", "r.counted = r.counted || false"),
		inMachine("what a lost commit did is a duplicate", "case 3", "item.go",
			"\tit.unknown = true\n", ""),
		inMachine("a mark that is taken back counts as done", "law 2", "commit.go",
			"f.verdicts[i].Kind = untouched", "_ = i"),
		inMachine("a copy of another content is counted on the row", "case 8", "commit.go",
			"it.copies(r) && !r.counted", "!r.counted"),
		inMachine("a commit of unknown outcome is taken for committed", "law 2", "commit.go",
			"case e.Outcome == store.Committed:", "case e.Outcome != store.NotCommitted:"),
		inMachine("a commit that failed is settled", "law 2", "commit.go",
			"\tdefault:\n\t\tm.refused(w, f, e)", "\tdefault:\n\t\tm.committed(w, f)"),
		inMachine("marks whose handlers did not run are not taken back", "law 1", "commit.go",
			"Trim: append(f.trim, early...), Rows", "Trim: early, Rows"),
		inMachine("a failed handler's transaction is committed", "law 3", "flight.go",
			"m.do(Rollback{Flight: f})", "m.commit(f)"),
		inMachine("a copy in flight elsewhere is a duplicate", "law 2", "commit.go",
			"\t\tcase v.Kind == store.Busy:\n\t\t\tm.holdBusy(en.Item)\n", ""),
		inMachine("what a newer release marked is a duplicate", "P1", "commit.go",
			"\t\tcase v.Kind == store.Newer:\n\t\t\tm.holdNewer(en.Item, v)\n", ""),
		inMachine("a copy is settled before its carrier has ended", "law 2", "carrier.go",
			"m.move(it, placement{state: riding, carrier: carrier})\n", "m.settleCopy(it)\n"),
		inMachine("a revoked lane is released at once", "law 2", "lane.go",
			"case l.items == 0:", "case true:"),
		inMachine("another content is a duplicate", "law 10", "commit.go",
			"case v.Kind == store.Conflict && (!v.Known || m.config.OnConflict == ThenAcceptFirst):\n\t\treturn source.EndConflict", "case v.Kind == store.Conflict && (!v.Known || m.config.OnConflict == ThenAcceptFirst):\n\t\treturn source.EndDuplicate"),
		inMachine("a dead letter is marked before its copy is made", "law 2", "carrier.go",
			"it.as == AsDeadLettered && !it.copied", "it.as > AsDeadLettered"),
		inMachine("a conflict is settled before its copy is made", "law 2", "commit.go",
			"return v.Known || it.copied", "return true"),
		inMachine("every marker after an unknown commit is taken for the message's own", "law 2", "commit.go",
			"\t\treturn en.As != AsDuplicate && v.Was == en.As.Outcome()\n", "\t\treturn true\n"),
		inMachine("a copy in an unknown commit is taken for what it did", "law 12", "commit.go",
			"v.Kind == store.Fresh || v.Kind == store.Conflict && !v.Known && m.keepsConflict(en.Item, v)", "v.Kind != store.Busy"),
		inMachine("what contention undid is no rerun", "counts", "commit.go",
			"\t\tm.undone(f, f.done)\n\t\tm.runAgain(w, f, f.why, f.cause, f.culprit)\n", "\t\tm.runAgain(w, f, f.why, f.cause, f.culprit)\n"),
	}
}

// ofOrder are faults of order, of neighbours and of who is charged.
func ofOrder() []Fault {
	return []Fault{
		inMachine("a copy behind another lane's carrier does not keep its place", "law 8", "move.go",
			"it.line != it.carrier.line || it.lane != it.carrier.lane || ", ""),
		inMachine("a key's order is lost with a retry", "law 8", "move.go",
			"\t\treturn it.line.ordered\n", "\t\treturn it.line.ordered && m.config.Lanes == Partition\n"),
		inMachine("a worker takes over what is in flight", "C8", "line.go",
			"l.flying > 0 && m.forming != l.worker", "false"),
		{
			Name: "nobody takes over what waits behind another's handler", Law: "C8", File: "internal/machine/batch.go",
			Old: "\t\t\tm.takeOver(w)\n", New: "",
			Test: "TestKeys/C8_a_busy_one_keeps_its_worker_and_the_others_of_it_are_taken_over", Package: "./internal/machine",
		},
		inMachine("deliveries of an older epoch are taken", "protocol", "admission.go",
			"l.name != it.Lane || ", ""),
		inMachine("lane-mates behind a busy copy run on", "law 8", "flight.go",
			"return v.Kind == store.Busy || v.Kind == store.Newer", "return v.Kind == store.Newer"),
		inMachine("lane-mates behind what a newer release marked run on", "law 8", "flight.go",
			"return v.Kind == store.Busy || v.Kind == store.Newer", "return v.Kind == store.Busy"),
		inMachine("followers pass a message that waits", "law 8", "queue.go",
			"if q.blockers.keeps(it) {", "if q.blockers.count > 1000 {"),
		inMachine("what comes back is queued at the end", "law 8", "queue.go",
			"case n == q.head || q.items[n-1].arrival < it.arrival:", "case n >= 0:"),
		inMachine("a neighbour is charged for the culprit", "law 7", "flight.go",
			"default:\n\t\tf.culprit = f.fresh[e.Done]", "default:\n\t\tf.culprit = f.fresh[0]"),
		inMachine("without order, the worker is chosen by arrival", "C8", "worker.go",
			"first := it.Route % n", "first := it.arrival % n"),
		inMachine("no pause follows contention", "case 2", "worker.go",
			"\tw.until = m.now + m.jitter(m.config.BackoffFirst, m.config.BackoffMost, w.contended)\n", ""),
		inMachine("a batch stays whole after contention", "case 2", "worker.go",
			"\tw.limit = quarter(len(f.Entries))\n\tw.until", "\tw.until"),
		inMachine("a row that is refused is charged as an attempt", "C5", "blame.go",
			"\tif !ran {", "\tif false {"),
		inMachine("an outage charges who was alone in it", "law 4", "suspicion.go",
			"case s.outages != m.outages:", "case s.outages > m.outages:"),
		inMachine("who is suspected runs again although nobody asked whether the store works", "case 1", "suspicion.go",
			"\t\treturn true, false\n", "\t\treturn false, false\n"),
		inMachine("what the store exonerates is suspected", "law 7", "rollback.go",
			"\tif !f.outside {\n", "\tif !f.outside || true {\n"),
		inMachine("a retry has company", "case 1", "carrier.go",
			"\tit.alone = true\n", ""),
	}
}

// ofWaits are faults of waits, bounds, outages and stops.
func ofWaits() []Fault {
	return []Fault{
		inMachine("copies are lost with their carrier", "law 11", "carrier.go",
			"\tm.uncarry(it)\n\tif it.Claim", "\tif it.Claim"),
		inMachine("a quiet source is not asked whether it works again", "law 11", "fetch.go",
			"f.limit != 0 && f.limit <= m.now", "f.limit < 0"),
		inMachine("nobody wakes a message that waits", "law 11", "wake.go",
			"consider(m.held[0].until)", "consider(0)"),
		inMachine("what the broker did not settle is forgotten", "law 11", "settle.go",
			"left := e.Left\n", "left := e.Left[:0]\n"),
		inMachine("a store that is down is asked again and again", "law 13", "outage.go",
			"s.down, s.tries, s.until = true, s.tries+1, m.now+wait", "s.down, s.tries, s.until = true, s.tries+1, m.now+1"),
		inMachine("a handler that does not end keeps its connection", "law 11", "flight.go",
			"\tm.do(Kill{Flight: f})\n", ""),
		inMachine("a run ends idle although a message waits for its retry", "law 11", "idle.go",
			"n[held]+n[copying]", "n[copying]"),
		inMachine("more is fetched than memory may hold", "law 11", "idle.go",
			"m.config.MaxMessages - m.live.count", "m.config.MaxMessages"),
		inMachine("a dead letter is forgotten once its copy is made", "law 11", "settle.go",
			"\t\t\tm.requeue(s.Item)\n\t\t\tcontinue\n", ""),
		inMachine("a retry never ends", "law 11", "blame.go",
			"case int(it.attempts) >= m.config.Attempts:", "case int(it.attempts) > m.config.Attempts:"),
		{Name: "a store that opens a transaction is not back", Law: "trap T85", File: "internal/machine/outage.go",
			Old: "\tcase !s.full:\n\t\tm.up()\n", New: "\tcase !s.full:\n",
			Test: "TestAStoreIsBackWhenATransactionOpens", Package: "./internal/machine"},
		inMachine("nobody asks again whether the store is back", "law 13", "wake.go",
			"\t\tconsider(m.store.until)\n", ""),
		inMachine("a stop waits for a handler that does not return", "law 11", "stop.go",
			"case m.end.stopping && m.now >= m.end.at:", "case m.end.stopping && m.now >= m.end.at && !m.anyStuck():"),
		inMachine("each rider that leaves is looked for among all", "law 11", "riders.go",
			"if r.left++; 2*r.left <= len(r.list) {", "if r.left++; r.left < 0 {"),
		inMachine("copies are handed back one by one, each with the others on it", "law 11", "outage.go",
			"m.handBackAll(it, Settlement{Kind: semel.Nack, After: wait, Err: s.err})", "m.uncarry(it)\n\t\t\t\tm.settle(it, Settlement{Kind: semel.Nack, After: wait, Err: s.err})"),
		inMachine("the bytes of what has left are never given back", "law 11", "move.go",
			"\tm.bytes -= int64(it.Size)\n", ""),
		inMachine("fetching goes on in an outage", "law 13", "fetch.go",
			" || m.store.closed(m.now) && !m.config.OneAttempt {", " {"),
		inMachine("a carrier that waits keeps the riders of revoked lanes", "case 10", "carrier.go",
			"\tm.shed(it)\n\tit.alone", "\tit.alone"),
		inMachine("a stop during Begin runs the batch all the same", "case 10", "flight.go",
			" || f.stopped || m.end.stopping {", " {"),
		inMachine("what was fetched beside an error is dropped", "counts", "fetch.go",
			"\t\tm.admit(it)\n", "\t\tif !e.Failed {\n\t\t\tm.admit(it)\n\t\t}\n"),
	}
}

// ofAsking are faults of how a run ends idle, and of what is another consumer's.
func ofAsking() []Fault {
	return []Fault{
		inMachine("a run ends idle for a fetch that was cancelled for another reason", "trap T95", "fetch.go",
			"!e.Unanswered && (f.ends || !f.canceled)", "!e.Unanswered"),
		inMachine("a source that has more is asked again at once", "trap T95", "fetch.go",
			"len(e.Items) > 0 || e.More {", "len(e.Items) > 0 {"),
		inMachine("a stop does not end the question whether the source has more", "case 10", "interrupt.go",
			"f.canceled && (idle || !f.ends)", "f.canceled"),
		inMachine("what waits and leaves is kept until its moment comes", "law 11", "move.go",
			"\tcase held, awaited:\n\t\theap.Remove(&m.held, int(it.index))\n",
			"\t\tif len(m.held) > 0 && m.held[0] == it {\n\t\t\theap.Pop(&m.held)\n\t\t}\n\tcase held, awaited:\n\t\tif it.until <= m.now {\n\t\t\theap.Remove(&m.held, int(it.index))\n\t\t}\n"),
		inMachine("another consumer's message has a handler", "C16", "admission.go",
			"\tif r := it.Refused; r != nil {\n\t\tit.as", "\tif r := it.Refused; r != nil && !r.Foreign {\n\t\tit.as"),
		inMachine("what is skipped flies with the others", "C16", "admission.go",
			"\tif it.Refused != nil && m.onRefused(it) == ThenSkip {", "\tif false {"),
		inMachine("what is skipped waits for a store that nothing asks for", "C16", "admission.go",
			"m.store.down && m.willAsk() &&", "m.store.down &&"),
		inPackage("what is skipped waits for a dead letter", "law 11", "internal/machine/admission.go",
			"n[inFlight]+n[held]+n[awaited] > 0", "n[queued]+n[copying]+n[inFlight]+n[held]+n[awaited] > 0", "./internal/machine",
			"TestWhatIsSkippedWhileTheStoreIsDown/C16_law_11_it_waits_for_no_dead_letter_nor_for_what_stands_behind_one"),
		inMachine("what is skipped is settled while the store is down", "law 13", "admission.go",
			"waits := m.store.down &&", "waits := m.store.down && m.config.OneAttempt &&"),
		inMachine("what is skipped is not counted", "counts", "settle.go",
			"\t\tm.counts.Skipped++\n", ""),
	}
}

// ofShell are faults that tests find: of the engine around the machine, of the
// Kafka source, and of what takes a million messages.
func ofShell() []Fault {
	return []Fault{
		inShell("nil after the time-out is a success", "law 3", "consumer/handler.go",
			"if err == nil && f.ctx.Err() != nil {", "if false {",
			"TestTimeOuts/law_3_a_handler_that_returns_nil_after_its_time_out_has_failed"),
		inShell("one handler's time goes on for the next", "law 7", "consumer/handler.go",
			"w.running, w.item, w.began = true, it, time.Now()", "w.running, w.item = true, it\n\tif w.began.IsZero() {\n\t\tw.began = time.Now()\n\t}",
			"TestTimeOuts/law_7_the_time_of_one_handler_is_not_the_nexts"),
		inShell("one handler's time-out falls on the next", "law 7", "consumer/handler.go",
			"\tw.running = false\n", "",
			"TestTimeOuts/law_7_what_passes_between_two_handlers_is_neithers_time"),
		{
			Name: "a queue keeps what has left it behind its head", Law: "law 11", File: "internal/machine/queue.go",
			Old: "\t\tif it.state == queued {\n", New: "\t\tif it != nil {\n",
			Test:    "TestAQueueThatIsNeverEmpty/trap_T88_it_lets_go_of_what_has_left_behind_its_head",
			Package: "./internal/machine",
		},
		{
			Name: "a callback that sticks in a commit holds the other workers up", Law: "C17", File: "internal/machine/flight.go",
			Old: "if !f.running && !e.Committing {", New: "if !f.running {",
			Test:    "TestACallbackOfACommitThatDoesNotEndHoldsNoSerialisedBatchUp",
			Package: "./internal/machine",
		},
		{
			Name: "polls and assignments do not take turns", Law: "law 8", File: "kafka/group.go",
			Old: "\tg.gate.hold()\n\tdefer g.gate.release()\n", New: "",
			Test:    "TestPollsAndAssignmentsTakeTurns/law_8_what_was_polled_before_a_partition_is_given_again_is_not_of_its_new_epoch",
			Package: "./kafka",
		},
	}
}

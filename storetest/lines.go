package storetest

import (
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

func (h *fixture[Tx]) lines() admin.Lines { return h.Store.(admin.Lines) }

var behind = store.Verdict{Kind: store.Behind}

// The states of rows in a line (the queue of a key or lane), and of rows that were removed from the line.
const (
	received  = store.StateReceived
	waiting   = store.StateFailedRetryable
	parked    = store.StateParked
	blocked   = store.StateBlocked
	completed = store.StateCompleted
	dead      = store.StateDeadLettered
	discarded = store.StateDiscarded
)

// inLine returns a mark of a message in a line (the queue of a key or lane).
func (h *fixture[Tx]) inLine(line, id string, as store.Outcome) store.Mark {
	m := h.contentMark(id, 1)
	m.As, m.Line = as, []byte(line)
	return m
}

// enters writes rows of a line (the queue of a key or lane) with one commit, and returns the rows.
func (h *fixture[Tx]) enters(line string, state store.RowState, ids ...string) (rows []store.StoredRow) {
	h.t.Helper()
	var marks []store.Mark
	var e store.Ending
	for i, id := range ids {
		marks = append(marks, h.inLine(line, id, state.Outcome()))
		e.Rows = append(e.Rows, store.Row{Mark: i, State: state, Message: &semel.Message{Body: []byte(id)}})
	}
	b, v := h.begin(marks...)
	for i := range v {
		h.wantKinds(v[i:], fresh)
	}
	h.commit(b, e)
	for _, id := range ids {
		rows = append(rows, h.rowOfIdentity(id, false))
	}
	return rows
}

// claimsIn claims a row of a line (the queue of a key or lane), and returns the mark that contains the claim.
func (h *fixture[Tx]) claimsIn(line string, number int64) store.Mark {
	h.t.Helper()
	got := h.takes(number, long)
	if len(got) != 1 || got[0].Row.Line != line || got[0].Row.Place == 0 {
		h.t.Fatalf("claimed %+v", got)
	}
	m := h.inLine(line, got[0].Row.Key.ID, store.Applied)
	m.Claim = got[0].Claim
	return m
}

// ends claims a row of a line, and ends the claim in a batch. ends reports whether the commit unblocked
// another row.
func (h *fixture[Tx]) ends(line string, number int64, state store.RowState) (freed bool) {
	h.t.Helper()
	m := h.claimsIn(line, number)
	b, v := h.begin(m)
	h.wantKinds(v, fresh)
	r := b.Commit(h.t.context(), store.Ending{Claims: []store.ClaimEnding{{Claim: m.Claim, State: state, Lined: true}}})
	if r.Outcome != store.Committed {
		h.t.Fatalf("Commit returned %+v", r)
	}
	return r.Freed
}

func (h *fixture[Tx]) wantStates(rows []store.StoredRow, want ...store.RowState) {
	h.t.Helper()
	for i, r := range rows {
		if got := h.number(r.Number); got.State != want[i] {
			h.t.Errorf("row %d (%s) is %s, want %s", r.Number, r.Key.ID, got.State, want[i])
		}
	}
}

func (s suite[Tx]) testLines(t *T) {
	s.testFollowers(t)
	s.testFirsts(t)
	s.testFirstsElsewhere(t)
	s.testPassing(t)
	s.testEmptyLines(t)
	s.testDissolved(t)
	s.testSwept(t)
	s.testAtOnce(t)
	s.testCrossing(t)
}

func (s suite[Tx]) testFollowers(t *T) {
	s.run(t, "C8_D8_law_8_a_message_behind_a_waiting_row_does_not_run", "A message is blocked behind an earlier row of its line; messages of other lines run.", func(t *T, h *fixture[Tx]) {
		h.wantKinds(h.deliver(h.inLine("k", "0", store.Applied)), fresh)
		for _, state := range []store.RowState{received, waiting, parked} {
			line := "line " + string(state)
			h.wantStates(h.enters(line, state, "head of "+line), state)
			h.wantKinds(h.asks(h.inLine(line, "next of "+line, store.Applied), h.inLine("k", "1", store.Applied), h.mark("none")), behind, fresh, fresh)
			rows := h.enters(line, blocked, "a of "+line, "b of "+line)
			h.wantStates(rows, blocked, blocked)
			if r := rows[1]; r.Line != line || r.Place <= rows[0].Place || r.Reason != reasonname.Behind || !r.DueAt.IsZero() {
				t.Errorf("the follower is %+v", r)
			}
		}
		p, err := h.inbox().Pending(t.context(), "billing")
		t.must(err)
		if p.Blocked != 6 {
			t.Errorf("%+v", p)
		}
	})
	s.run(t, "C8_law_8_a_message_with_a_row_blocks_later_ones_of_its_batch", "A message that gets a row blocks the later messages of its line in the same batch.", func(t *T, h *fixture[Tx]) {
		marks := []store.Mark{h.inLine("k", "before", store.Applied), h.inLine("k", "stays", store.Waiting), h.inLine("k", "after", store.Applied), h.inLine("other", "beside", store.Applied)}
		b, v := h.begin(marks...)
		h.wantKinds(v, fresh, fresh, behind, fresh)
		h.commit(b, store.Ending{Trim: []int{2}, Rows: []store.Row{{Mark: 1, State: waiting, After: long, Message: &semel.Message{}}}})
		h.wantKinds(h.asks(marks[2]), behind)
	})
	s.run(t, "C8_D8_of_received_messages_the_first_of_each_line_is_due", "Of received messages the first of each line is due; the others wait in the order of their marks.", func(t *T, h *fixture[Tx]) {
		h.wantStates(h.enters("b", received, "b1", "b2", "b3"), received, blocked, blocked)
		h.wantStates(h.enters("a", received, "a1", "a2"), received, blocked)
		got, err := h.leases().Claim(t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: long})
		t.must(err)
		if len(got) != 2 || got[0].Row.Key.ID != "b1" || got[1].Row.Key.ID != "a1" {
			t.Errorf("claimed are %+v", got)
		}
	})
}

func (s suite[Tx]) testFirsts(t *T) {
	s.run(t, "C8_D8_the_end_of_the_first_row_frees_only_the_next", "A row that is completed, dead-lettered or discarded frees the next row of its line; a row that fails or is parked stays.", func(t *T, h *fixture[Tx]) {
		rows := h.enters("k", received, "1", "2", "3", "4", "5")
		if !h.ends("k", rows[0].Number, store.StateCompleted) {
			t.Error("the commit does not report that it freed a row")
		}
		h.wantStates(rows, completed, received, blocked, blocked, blocked)
		if r := h.number(rows[1].Number); r.DueAt.IsZero() || r.Reason != "" {
			t.Errorf("the freed row is %+v", r)
		}
		if h.ends("k", rows[1].Number, store.StateFailedRetryable) {
			t.Error("a failure freed a row")
		}
		h.wantStates(rows, completed, waiting, blocked, blocked, blocked)
		h.ends("k", rows[1].Number, store.StateDeadLettered)
		h.wantStates(rows, completed, dead, received, blocked, blocked)
		h.ends("k", rows[2].Number, store.StateDiscarded)
		h.wantStates(rows, completed, dead, discarded, received, blocked)
		if h.ends("k", rows[3].Number, store.StateParked) {
			t.Error("a park freed a row")
		}
		h.wantStates(rows, completed, dead, discarded, parked, blocked)
	})
	s.run(t, "D8_G6_a_retried_first_row_still_blocks_its_line", "Rows behind a parked row wait until it has been retried and has ended.", func(t *T, h *fixture[Tx]) {
		rows := append(h.enters("k", parked, "1"), h.enters("k", blocked, "2")...)
		t.must(h.retry(rows[0].Seen()))
		h.wantStates(rows, waiting, blocked)
		h.ends("k", rows[0].Number, store.StateCompleted)
		h.wantStates(rows, completed, received)
	})
}

func (s suite[Tx]) testFirstsElsewhere(t *T) {
	s.run(t, "D8_claims_that_end_outside_of_a_batch_free_the_next_row", "A claim that ends outside of a batch, as with handlers that make calls, also frees the next row.", func(t *T, h *fixture[Tx]) {
		rows := h.enters("k", received, "1", "2")
		m := h.claimsIn("k", rows[0].Number)
		h.wantLost(h.leases().End(t.context(), []store.ClaimEnding{{Claim: m.Claim, State: store.StateCompleted, Lined: true, Ran: true}}))
		h.wantStates(rows, completed, received)
	})
	s.run(t, "D8_law_5_a_lost_claim_frees_nothing", "The ending of a lost claim is reported as lost, and frees no row.", func(t *T, h *fixture[Tx]) {
		rows := h.enters("k", received, "1", "2")
		m := h.claimsIn("k", rows[0].Number)
		m.Claim.Token++
		lost, err := h.leases().End(t.context(), []store.ClaimEnding{{Claim: m.Claim, State: store.StateCompleted, Lined: true, Ran: true}})
		h.wantLost(lost, err, 0)
		h.wantStates(rows, store.StateInProgress, blocked)
	})
	s.run(t, "D8_law_11_a_follower_is_due_if_its_line_is_empty_at_commit",
		"If the first row ends between the verdict and the commit of a follower, the follower is due at once.", func(t *T, h *fixture[Tx]) {
			rows := h.enters("k", received, "1")
			b, v := h.begin(h.inLine("k", "2", store.Waiting))
			h.wantKinds(v, fresh)
			want := blocked
			if !s.h.Can.OneWriter { // with a single writer, no claim can end while the batch is open
				h.ends("k", rows[0].Number, store.StateCompleted)
				want = received
			}
			r := b.Commit(t.context(), store.Ending{Rows: []store.Row{{State: blocked, Message: &semel.Message{}}}})
			if row := h.rowOfIdentity("2", false); row.State != want || r.Freed != (want == received) {
				t.Errorf("the row is %+v, and Commit returned %+v", row, r)
			}
		})
}

func (s suite[Tx]) testPassing(t *T) {
	s.run(t, "C8_G6_an_operator_skips_a_row_of_a_line", "Skip takes a row out of its line without changing its state, and is recorded.", func(t *T, h *fixture[Tx]) {
		rows := append(h.enters("k", parked, "1"), h.enters("k", blocked, "2", "3")...)
		t.must(errors.Join(h.lines().Skip(t.context(), act("skip"), rows[0].Seen())...))
		h.wantStates(rows, parked, received, blocked)
		for i, want := range []int64{0, rows[1].Number, rows[1].Number} {
			if first, err := h.lines().First(t.context(), rows[i].Number); err != nil || first != want {
				t.Errorf("the first of the line of row %d is %d, %v", rows[i].Number, first, err)
			}
		}
		h.wantActs(rows[0].Number, "skip done")
		passed := h.number(rows[0].Number)
		if passed.Place != 0 || passed.Revision == rows[0].Revision {
			t.Errorf("the row is %+v", passed)
		}
		t.wantErr("a skip of a row that changed", errors.Join(h.lines().Skip(t.context(), act("skip"), rows[0].Seen())...), semel.ErrChanged)
		t.wantErr("a skip of a row in no line", errors.Join(h.lines().Skip(t.context(), act("skip"), passed.Seen())...), semel.ErrState)
		t.must(h.retry(passed.Seen()))
		h.wantStates(rows, waiting, received, blocked)
		last := h.number(rows[2].Number)
		t.must(errors.Join(h.lines().Skip(t.context(), act("skip"), last.Seen())...))
		h.wantStates(rows, waiting, received, received)
	})
	s.run(t, "C8_G6_discarding_a_row_frees_the_next_of_its_line", "Discarding the first row frees the next row; discarding another row only removes it from the line.", func(t *T, h *fixture[Tx]) {
		rows := append(h.enters("k", parked, "1"), h.enters("k", blocked, "2", "3")...)
		t.must(h.discard(rows[1].Seen()))
		h.wantStates(rows, parked, discarded, blocked)
		t.must(h.discard(rows[0].Seen()))
		h.wantStates(rows, discarded, discarded, received)
	})
	s.run(t, "C8_a_dead_letter_that_is_retried_has_left_its_line", "A dead letter has left its line, so a retry does not block the rows that were behind it.", func(t *T, h *fixture[Tx]) {
		rows := h.enters("k", received, "1", "2")
		h.ends("k", rows[0].Number, store.StateDeadLettered)
		letter := h.number(rows[0].Number)
		t.must(h.retry(letter.Seen()))
		h.wantStates(rows, waiting, received)
		if r := h.number(letter.Number); r.Place != 0 {
			t.Errorf("it is %+v", r)
		}
	})
}

func (s suite[Tx]) testSwept(t *T) {
	s.run(t, "C8_law_11_a_sweep_frees_rows_that_wait_for_a_deleted_row", "A sweep frees rows whose first row was deleted by hand.", func(t *T, h *fixture[Tx]) {
		sweeps := func(want int64) {
			if n, err := h.lines().Sweep(t.context()); err != nil || n != want {
				t.Errorf("a sweep frees %d, %v", n, err)
			}
		}
		sweeps(0)
		other := append(h.enters("other", parked, "a"), h.enters("other", blocked, "b")...)
		rows := h.enters("k", received, "1", "2", "3")
		sweeps(0)
		if h.Remove == nil {
			return
		}
		h.Remove(t, rows[0].Number)
		sweeps(1)
		sweeps(0)
		h.wantStates(rows[1:], received, blocked)
		h.wantStates(other, parked, blocked)
		h.ends("k", rows[1].Number, store.StateCompleted)
		h.wantStates(rows[1:], completed, received)
		if first, err := h.lines().First(t.context(), rows[1].Number); err != nil || first != 0 {
			t.Errorf("the completed row waits for %d, %v", first, err)
		}
	})
}

func (s suite[Tx]) testDissolved(t *T) {
	s.run(t, "C8_law_11_rows_leave_their_lines_if_the_consumer_keeps_none",
		"If a consumer no longer keeps lines, its rows leave their lines and are due; otherwise they would wait for rows that are blocked themselves.", func(t *T, h *fixture[Tx]) {
			const one, other = "billing\x00kone", "billing\x00kother"
			rows := append(h.enters(one, parked, "1"), h.enters(one, blocked, "2", "3")...)
			first := h.enters(other, received, "4")
			for _, want := range []int64{4, 0} {
				if n, err := h.lines().Dissolve(t.context(), "billing"); err != nil || n != want {
					t.Errorf("%d rows, want %d; %v", n, want, err)
				}
			}
			h.wantStates(append(rows, first...), parked, received, received, received)
			for _, line := range []string{one, other} {
				h.wantKinds(h.asks(h.inLine(line, "next", store.Applied)), fresh)
			}
			if n, err := h.lines().Dissolve(t.context(), "bill"); err != nil || n != 0 {
				t.Errorf("for another consumer: %d rows, %v", n, err)
			}
		})
}

func (s suite[Tx]) testEmptyLines(t *T) {
	s.run(t, "C8_law_11_an_empty_line_blocks_nothing", "After its last row has ended, a line blocks nothing.", func(t *T, h *fixture[Tx]) {
		for i, end := range []func(store.StoredRow){
			func(r store.StoredRow) { h.ends("k", r.Number, store.StateCompleted) },
			func(r store.StoredRow) {
				t.must(h.discard(r.Seen()))
			},
			func(r store.StoredRow) { t.must(errors.Join(h.lines().Skip(t.context(), act("skip"), r.Seen())...)) },
		} {
			rows := h.enters("k", received, fmt.Sprint("row ", i))
			h.wantKinds(h.asks(h.inLine("k", "next", store.Applied)), behind)
			end(rows[0])
			h.wantKinds(h.asks(h.inLine("k", "next", store.Applied)), fresh)
		}
	})
	t.Run("C8_a_line_is_shared_by_all_sources", "A line, like a key, is shared by all sources.", func(t *T) {
		if s.h.Can.OneConsumer {
			return
		}
		h := s.open(t)
		rows := h.enters("k", received, "1")
		away := h.withScope(h.inLine("k", "2", store.Applied), h.scopeOf("billing", "another", 0))
		h.wantKinds(h.asks(away), behind)
		away.As = store.Waiting
		b, _ := h.begin(away)
		h.commit(b, store.Ending{Rows: []store.Row{{State: blocked, Message: &semel.Message{}}}})
		h.ends("k", rows[0].Number, store.StateCompleted)
		h.wantStates([]store.StoredRow{h.rowOfIdentity("2", false)}, received)
	})
}

func (s suite[Tx]) testCrossing(t *T) {
	if s.h.Can.OneWriter {
		return
	}
	s.run(t, "C8_law_11_batches_with_common_lines_do_not_deadlock",
		"Every batch locks its lines in the same order.", func(t *T, h *fixture[Tx]) {
			for round := range 10 {
				ended, leaves := make(chan store.Result, 2), map[string]store.Mark{}
				name := func(line string) string { return fmt.Sprint(line, round) }
				for _, line := range []string{name("a"), name("b")} {
					leaves[line] = h.claimsIn(line, h.enters(line, received, "first of "+line)[0].Number)
				}
				for _, way := range [][2]string{{name("a"), name("b")}, {name("b"), name("a")}} {
					from, to := leaves[way[0]], way[1]
					b, _ := h.begin(from, h.inLine(to, "next of "+to, store.Waiting))
					e := store.Ending{Rows: []store.Row{{Mark: 1, State: blocked, Message: &semel.Message{}}},
						Claims: []store.ClaimEnding{{Claim: from.Claim, State: store.StateCompleted, Lined: true}}}
					go func() { ended <- b.Commit(t.context(), e) }()
				}
				for range 2 {
					if r := <-ended; r.Outcome != store.Committed {
						t.Fatalf("Commit returned %+v", r)
					}
				}
				for _, line := range []string{"a", "b"} {
					if r := h.rowOfIdentity("next of "+name(line), false); r.State != received {
						t.Errorf("the row that entered %s is %s, although no row is before it", line, r.State)
					}
				}
			}
		})
}

func (s suite[Tx]) testAtOnce(t *T) {
	s.run(t, "D8_law_11_a_follower_added_while_the_first_row_ends_is_freed",
		"A batch that adds a row to a line and a batch that ends one both lock the line.", func(t *T, h *fixture[Tx]) {
			for i := range 10 {
				rows := h.enters("k", received, fmt.Sprint("first ", i))
				m := h.claimsIn("k", rows[0].Number)
				follower := h.inLine("k", fmt.Sprint("follower ", i), store.Waiting)
				added := make(chan error, 1)
				go func() {
					b, _, err := h.Store.Begin(t.context(), store.TxOptions{}, []store.Mark{follower})
					if err == nil {
						err = b.Commit(t.context(), store.Ending{Rows: []store.Row{{State: blocked, Message: &semel.Message{}}}}).Err
					}
					added <- err
				}()
				b, _ := h.begin(m)
				h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: m.Claim, State: store.StateCompleted, Lined: true}}})
				t.must(<-added)
				r := h.rowOfIdentity(string(follower.ID), false)
				if r.State != received {
					t.Fatalf("the follower is %s, although no row is before it", r.State)
				}
				h.ends("k", r.Number, store.StateCompleted)
			}
		})
}

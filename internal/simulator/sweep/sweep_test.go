package sweep

import (
	"testing"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator"
)

func TestTheMachineKeepsTheLawsUnderFaults(t *testing.T) {
	s := Run(1, seeds, "", simulator.Real)
	keeps := func(name, law string) {
		t.Run(name, func(t *testing.T) {
			for _, f := range s.Failures {
				if f.Broken.Law == law {
					t.Errorf("seed %d breaks %v; make simulate SEED=%d shows how", f.Seed, f.Broken, f.Seed)
				}
			}
			if s.Coverage["law"][law] == 0 {
				t.Errorf("its situation never arose in %d seeds", seeds)
			}
		})
	}
	keeps("law_1_marker_and_effect_are_one_commit", "law 1")
	keeps("law_2_settle_after_commit", "law 2")
	keeps("law_3_a_failed_attempt_leaves_nothing", "law 3")
	keeps("law_4_a_failed_attempt_stays_claimable_and_comes_to_its_end", "law 4")
	keeps("law_5_a_claim_ends_once_under_its_token_and_what_is_lost_is_let_go_of", "law 5")
	keeps("law_7_a_message_that_cannot_fail_is_never_charged_or_set_aside", "law 7")
	keeps("law_8_order_within_a_lane_holds_and_other_lanes_go_on_beside_a_stuck_handler", "law 8")
	keeps("law_9_a_duplicate_is_settled_once_and_never_run", "law 9")
	keeps("law_10_another_content_is_never_applied_nor_a_plain_duplicate", "law 10")
	keeps("law_11_nothing_waits_for_ever_grows_for_ever_or_spins", "law 11")
	keeps("law_12_no_marker_without_effect_and_no_effect_without_marker", "law 12")
	keeps("law_13_a_store_that_is_down_is_asked_seldom_but_for_ever_and_nothing_is_fetched_for_it", "law 13")
	keeps("case_1_the_culprit_has_its_next_try_alone", "case 1")
	keeps("case_2_contention_makes_a_worker_wait_and_try_a_quarter", "case 2")
	keeps("case_3_what_a_lost_commit_did_is_seen_as_its_own_and_nothing_else_is", "case 3")
	keeps("case_6_no_wait_in_memory_is_longer_than_hold", "case 6")
	keeps("case_7_C8_D8_nothing_takes_effect_before_what_its_line_has_in_the_inbox", "case 7")
	keeps("case_8_copies_of_what_is_set_aside_are_counted_on_its_row", "case 8")
	keeps("case_10_what_is_to_be_left_runs_no_more_and_is_left_once_nothing_is_under_way", "case 10")
	keeps("trap_T95_a_run_ends_idle_only_when_the_source_was_asked_and_has_no_more", "trap T95")
	keeps("C5_an_attempt_is_a_run_that_failed_and_nothing_else", "C5")
	keeps("C5_a_retry_begins_when_its_budget_has_room", "C5, budget")
	keeps("C6_after_failures_in_a_row_one_message_is_tried_at_a_time_until_one_succeeds", "C6")
	keeps("C8_without_order_messages_of_one_key_are_never_under_way_twice", "C8")
	keeps("D2_what_is_to_be_received_first_does_not_run_before", "D2")
	keeps("D3_batches_of_a_store_with_one_writer_begin_one_at_a_time", "D3, turns")
	keeps("D3_claims_are_begun_in_time_and_a_run_ends_idle_when_nothing_is_due", "D3")
	keeps("D5_what_kills_its_process_runs_no_more", "D5")
	keeps("C11_steps_take_effect_once_in_their_order_and_a_message_is_done_with_its_last", "C11")
	keeps("C16_what_is_another_consumers_has_no_handler_and_what_is_skipped_is_only_settled", "C16")
	keeps("B11_calls_for_one_message_never_overlap_unless_a_lease_ended", "B11")
	keeps("E1_an_intent_is_there_where_its_message_took_effect_and_nowhere_else", "E1")
	keeps("E2_an_intent_keeps_its_id_and_is_sent_or_waits_for_a_person", "E2")
	keeps("E4_what_is_suppressed_is_not_sent", "E4")
	keeps("E3_no_call_is_made_without_a_start_that_is_committed", "E3, start")
	keeps("E3_every_call_for_a_message_has_the_same_key", "E3, key")
	keeps("E3_trap_T77_after_the_window_nobody_calls_blindly", "E3, window")
	keeps("E3_what_was_charged_for_is_completed_or_said_to_be_unknown", "E3, outcome")
	keeps("B4_trap_T54_a_version_that_was_passed_is_discarded_or_set_aside", "B4")
	keeps("B9_trap_T53_versions_take_effect_in_their_order_and_wait_for_it", "B9")
	keeps("trap_T55_what_waits_for_an_earlier_version_is_freed_or_parked_in_time", "trap T55")
	keeps("H3_what_has_ended_is_removed_beside_redeliveries_and_takes_effect_no_second_time", "H3")
	keeps("H4_what_is_older_than_what_is_kept_ends_as_the_policy_says_without_a_run", "H4")
	keeps("law_14_what_is_replayed_or_edited_keeps_its_identity_and_who_did_it_is_recorded", "law 14")
	keeps("law_16_a_marker_belongs_to_one_row_whatever_persons_do_to_several_rows_of_one_identity", "law 16")
	keeps("trap_T113_what_was_dated_while_the_clock_was_ahead_waits_no_longer_than_it_was_to", "trap T113")
	keeps("trap_T45_a_replay_beside_live_copies_moves_none_of_their_places", "trap T45")
	keeps("G4_a_replay_is_answered_as_its_plan_said_where_nothing_live_has_changed_since", "G4")
	keeps("trap_T47_operators_take_turns_and_who_has_lost_his_does_nothing", "trap T47")
	keeps("G5_trap_T46_what_has_taken_effect_is_not_edited", "G5")
	keeps("G2_a_generation_that_is_switched_to_has_all_that_was_settled_and_the_old_one_gets_no_more", "G2")
	keeps("counts are exactly what happened", "counts")
	keeps("observers are told exactly what happened", "reports")
	for _, f := range s.Failures {
		t.Errorf("seed %d breaks %v", f.Seed, f.Broken)
	}
	if steps, faults := median(s.steps), median(s.faults); steps < 200 || faults < 3 {
		t.Errorf("the median seed has %d steps and %d faults, and should have 200 and 3", steps, faults)
	}
	t.Run("trap_T107_every_event_action_fault_and_ending_occurs_in_a_long_row", func(t *testing.T) {
		if missing := s.Coverage.Unreached(); seeds >= 3000 && len(missing) > 0 {
			t.Errorf("%d seeds never reach %v", seeds, missing)
		}
	})
}

func TestProcessesDieAtEachFaultPoint(t *testing.T) {
	s := Run(1, 100, "", simulator.Real)
	for _, p := range faults.Points() {
		if s.Coverage["crash at"][string(p)] == 0 {
			t.Errorf("no process died at %s", p)
		}
	}
}

// faultyMachine is a faulty machine that commits the writes of a failed handler.
type faultyMachine struct{ *machine.Machine }

func (m faultyMachine) Step(e machine.Event, now machine.Time) []machine.Action {
	actions := m.Machine.Step(e, now)
	for i, a := range actions {
		if r, ok := a.(machine.Rollback); ok {
			actions[i] = machine.Commit{Flight: r.Flight}
		}
	}
	return actions
}

func TestASearchFindsTheSmallestSeedThatBreaksItsLaw(t *testing.T) {
	maker := func(c machine.Config) simulator.Stepper { return faultyMachine{machine.New(c)} }
	first, found := First(maker, Search{Start: 1, Seeds: 100})
	again, foundAgain := First(maker, Search{Start: first.Seed, Seeds: 1, Law: first.Broken.Law})
	if !found || !foundAgain || again.Seed != first.Seed {
		t.Errorf("seed %d (%v), and %d (%v) by its law", first.Seed, found, again.Seed, foundAgain)
	}
	if other, found := First(maker, Search{Start: first.Seed, Seeds: 100, Law: "no such law"}); found {
		t.Errorf("the search returned seed %d, which breaks another law", other.Seed)
	}
}

package simulator

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
	"github.com/semel-go/semel/internal/simulator/trace"
)

func TestTheMachineKeepsTheLawsUnderFaults(t *testing.T) {
	s := Sweep(1, seeds, Real)
	keeps := func(name, law string) {
		t.Run(name, func(t *testing.T) {
			for _, f := range s.Failures {
				if f.Broken.Law == law {
					t.Errorf("seed %d breaks %v; make simulate SEED=%d shows how", f.Seed, f.Broken, f.Seed)
				}
			}
			if s.Coverage["law"][law] == 0 {
				t.Errorf("in %d seeds it could not be broken: its situation never arose", seeds)
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
		if missing := s.Unreached(); seeds >= 3000 && len(missing) > 0 {
			t.Errorf("%d seeds never reach %v", seeds, missing)
		}
	})
}

func TestEveryLawThatTheCheckerNamesIsCounted(t *testing.T) {
	t.Run("trap_T107_a_law_without_a_counter_could_be_tested_by_nothing", func(t *testing.T) {
		files, err := filepath.Glob("*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		named := regexp.MustCompile(`broke\("([^"]+)"`)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, law := range named.FindAllStringSubmatch(string(text), -1) {
				aboutTheWorld := slices.Contains([]string{"protocol", "liveness", "panic", "world"}, law[1])
				if !aboutTheWorld && !slices.Contains(trace.Laws(), law[1]) {
					t.Errorf("%s names %q, which is not among what a long row must meet", file, law[1])
				}
			}
		}
	})
}

func TestProcessesDieAtEachFaultPoint(t *testing.T) {
	s := Sweep(1, 100, Real)
	for _, p := range faults.Points() {
		if s.Coverage["crash at"][string(p)] == 0 {
			t.Errorf("no process has died at %s", p)
		}
	}
}

func TestASeedGivesTheSameHistoryByteForByte(t *testing.T) {
	other := Run(99, Real, true).History
	for seed := uint64(1); seed <= 20; seed++ {
		first, second := Run(seed, Real, true).History, Run(seed, Real, true).History
		if first != second {
			t.Errorf("seed %d has two histories", seed)
		}
		if first == other || len(first) < 100 {
			t.Errorf("seed %d has no history of its own", seed)
		}
	}
}

func TestAListOfChoicesGivesTheHistoryOfItsSeed(t *testing.T) {
	r := Run(5, Real, true)
	again := simulate(chance.FromList(r.choices), Real, true)
	if r.History != again.History {
		t.Error("the recorded choices give another history")
	}
}

func TestWithoutChoicesNothingGoesWrong(t *testing.T) {
	r := simulate(chance.FromList(nil), Real, false)
	if r.Broken != nil || r.Faults != 0 || r.Lives != 1 {
		t.Errorf("%v, %d faults, %d lives", r.Broken, r.Faults, r.Lives)
	}
}

func TestAFailingSeedShrinks(t *testing.T) {
	maker := sabotaged(func(s *spoiler, a machine.Action) []machine.Action {
		if r, ok := a.(machine.Rollback); ok {
			return []machine.Action{machine.Commit{Flight: r.Flight}}
		}
		return []machine.Action{a}
	})
	f, found := First(maker, Search{Start: 201, Seeds: 100, Law: ""})
	if !found {
		t.Fatal("a committed failure is not found")
	}
	long := Run(f.Seed, maker, false).choices
	short, size := Shrink(f.Seed, maker, 500)
	if short.Broken == nil || short.Broken.form != f.Broken.form {
		t.Fatalf("the short form breaks %v, the seed %v", short.Broken, f.Broken)
	}
	if size*4 > len(long) || strings.Count(short.History, "\n") > 30 {
		t.Errorf("%d of %d decisions are left, and the history is\n%s", size, len(long), short.History)
	}
}

// spoiler is a machine whose actions are changed on their way to the world.
type spoiler struct {
	*machine.Machine
	spoil func(*spoiler, machine.Action) []machine.Action
	now   machine.Time
	fresh map[*machine.Flight][]int
}

func (s *spoiler) Step(e machine.Event, now machine.Time) []machine.Action {
	s.now = now
	var spoiled []machine.Action
	for _, a := range s.Machine.Step(e, now) {
		if r, ok := a.(machine.Run); ok {
			s.fresh[r.Flight] = slices.Clone(r.Fresh)
		}
		spoiled = append(spoiled, s.spoil(s, a)...)
	}
	return spoiled
}

func sabotaged(spoil func(*spoiler, machine.Action) []machine.Action) Maker {
	return func(c machine.Config) Stepper {
		return &spoiler{Machine: machine.New(c), spoil: spoil, fresh: map[*machine.Flight][]int{}}
	}
}

func TestSpinningIsMeasuredByTheLife(t *testing.T) {
	t.Run("law_11_a_long_history_of_many_lives_does_not_spin_and_a_long_life_does", func(t *testing.T) {
		const most = 1_000
		long, spins := 0, 0
		for seed := range uint64(250) {
			w := newWorld(chance.FromSeed(seed+1), Real)
			w.mostSteps = most
			switch r := w.result(); {
			case r.Broken == nil && r.Steps > most:
				long++
			case r.Broken != nil && strings.HasPrefix(r.Broken.Text, "it spins: 1001 steps of one life"):
				spins++
			case r.Broken != nil:
				t.Errorf("seed %d breaks %v", seed+1, r.Broken)
			}
		}
		if long == 0 || spins == 0 {
			t.Errorf("%d histories are longer than a life may be, %d lives are, and there should be both", long, spins)
		}
	})
}

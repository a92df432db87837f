package operate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

func TestConcurrentReplays(t *testing.T) {
	t.Run("trap_T45_a_letter_and_its_live_copies_have_one_effect", func(t *testing.T) {
		s := newLetters(t)
		s.letters(t, 30, 5)
		s.repairHandler(t)
		var live sync.WaitGroup
		for range 3 {
			live.Go(func() {
				for i := range 30 {
					s.deliver(t, message(fmt.Sprint("m", i), fmt.Sprint("k", i%5), fmt.Sprintf(`{"n":%d}`, i)))
				}
			})
		}
		done, err := s.replayAll(t.Context(), replayOrder{Lease: lease})
		live.Wait()
		if err != nil || tally(done, predictedFate) != "30 applied" || tally(done, actualFate) != "30 applied" {
			t.Errorf("%s; %s; %v", tally(done, predictedFate), tally(done, actualFate), err)
		}
		s.wantOnce(t, 30)
	})
	t.Run("trap_T47_of_two_operators_who_replay_at_once_each_letter_is_replayed_once", func(t *testing.T) {
		s := newLetters(t)
		s.letters(t, 30, 5)
		s.repairHandler(t)
		var both []*exec.Cmd
		for range 2 {
			both = append(both, replayOrder{Path: s.path, Lease: lease}.start(t))
		}
		for _, c := range both {
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
		}
		s.wantOnce(t, 30)
	})
	t.Run("trap_T47_who_waits_takes_its_turn_when_the_other_has_ended", func(t *testing.T) {
		s := newLetters(t)
		_, turn, err := TakeTurn(t.Context(), s.store, []string{"billing"}, lease, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		waited := 0
		var other sync.WaitGroup
		other.Go(func() {
			_, second, err := TakeTurn(t.Context(), s.store, []string{"billing"}, lease, func(consumer string) {
				if waited++; consumer != "billing" || turn.End() != nil {
					t.Errorf("waits for %q", consumer)
				}
			})
			if err == nil {
				err = second.End()
			}
			if err != nil {
				t.Error(err)
			}
		})
		other.Wait()
		if waited != 1 {
			t.Errorf("it waited %d times", waited)
		}
	})
	t.Run("law_5_a_replay_whose_turn_is_lost_ends", func(t *testing.T) {
		s := newLetters(t)
		ctx, turn, err := TakeTurn(t.Context(), s.store, []string{"billing"}, 300*time.Millisecond, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.db.Exec("delete from semel_keys"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lease):
			t.Error("the replay continues without its turn")
		}
		if !errors.Is(context.Cause(ctx), store.ErrClaimLost) {
			t.Error(context.Cause(ctx))
		}
		if err := turn.End(); err != nil {
			t.Error(err)
		}
	})
}

// wantDeath starts a process with this replayOrder and fails the test unless the process kills itself.
func (o replayOrder) wantDeath(t *testing.T) {
	t.Helper()
	c := o.start(t)
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() == 1 {
		t.Fatalf("it did not die: %v", c.ProcessState)
	}
}

func TestAKilledReplayCanBeContinued(t *testing.T) {
	for _, point := range []ReplayPoint{BeforeRequeue, AfterRequeue, AfterWork} {
		for _, after := range []int{0, 2} {
			t.Run(fmt.Sprintf("trap_T47_killed_%s_%d_it_goes_on_where_it_stood", strings.ReplaceAll(string(point), " ", "_"), after), func(t *testing.T) {
				s := newLetters(t)
				s.letters(t, 12, 3)
				s.repairHandler(t)
				replayOrder{Path: s.path, Death: point, After: after, Lease: lease}.wantDeath(t)
				if _, err := s.db.Exec("delete from semel_keys"); err != nil { // delete the lease of the killed process, as if the lease had expired
					t.Fatal(err)
				}
				done, err := s.replayAll(t.Context(), replayOrder{Lease: lease})
				if err != nil || tally(done, actualFate) != tally(done, predictedFate) {
					t.Errorf("%s; %s; %v", tally(done, predictedFate), tally(done, actualFate), err)
				}
				s.wantOnce(t, 12)
			})
		}
	}
}

func TestTheIntentsOfADeadLetter(t *testing.T) {
	t.Run("trap_T50_they_are_sent_once_although_who_replayed_it_died_after_its_commit", func(t *testing.T) {
		s := newLetters(t)
		m := message("m0", "k", "{}")
		m.Attributes.Type = "invoiced"
		s.deliver(t, m)
		s.repairHandler(t)
		replayOrder{Path: s.path, Death: AfterWork, Lease: 3 * time.Second}.wantDeath(t)
		if _, err := s.replayAll(t.Context(), replayOrder{Lease: lease}); err != nil {
			t.Fatal(err)
		}
		sent := 0
		mailer, err := consumer.New(s.store, func(context.Context, *sql.Tx, *semel.Message) error { sent++; return nil },
			consumer.Config{Name: "mailer", Strategy: consumer.StrategyInbox, Identity: identity.CloudEvents(), Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = mailer.Work(t.Context())
		}
		if err != nil || sent != 1 {
			t.Errorf("%d were sent: %v", sent, err)
		}
		s.wantOnce(t, 1)
	})
}

func TestAnEditThatIsKilledIsDoneOnce(t *testing.T) {
	for _, point := range []ReplayPoint{BeforeEdit, AfterEdit} {
		t.Run("trap_T46_killed_"+strings.ReplaceAll(string(point), " ", "_")+"_it_is_there_whole_or_not_at_all", func(t *testing.T) {
			s := newLetters(t)
			s.letters(t, 1, 1)
			replayOrder{Path: s.path, Death: point, Body: "edited"}.wantDeath(t)
			if err := s.edit(t.Context(), replayOrder{Body: "edited"}); err != nil {
				t.Fatal(err)
			}
			edits, err := s.store.Edits(t.Context(), 1, true)
			acts, e := s.store.Acts(t.Context(), 1, 0)
			if err != nil || e != nil || len(edits) != 1 || len(acts) != 1 || string(edits[0].Was) != `{"n":0}` {
				t.Errorf("edits %+v, acts %+v: %v, %v", edits, acts, err, e)
			}
			s.repairHandler(t)
			if _, err := s.replayAll(t.Context(), replayOrder{Lease: lease}); err != nil {
				t.Fatal(err)
			}
			s.letters(t, 1, 1) // deliver a copy of the original message
			if ids := s.effects(t, "body = 'edited'"); len(ids) != 1 {
				t.Errorf("%d effects of the edit", len(ids))
			}
			s.wantOnce(t, 1)
		})
	}
}

func TestAnEditFailsIfThePayloadHasChanged(t *testing.T) {
	t.Run("trap_T46_of_two_operators_who_edit_one_row_the_second_is_told", func(t *testing.T) {
		s := newLetters(t)
		s.letters(t, 1, 1)
		seen, err := s.box.Editable(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		s.letters(t, 1, 1) // deliver a copy, which the store counts on the row
		if err := s.box.Edit(t.Context(), seen, Editing{Body: []byte("theirs"), Who: "bo", Why: "wrong"}); err != nil {
			t.Fatal(err)
		}
		if err := s.box.Edit(t.Context(), seen, Editing{Body: []byte("mine"), Who: "ann", Why: "wrong"}); !errors.Is(err, semel.ErrChanged) {
			t.Errorf("the second edit: %v", err)
		}
		if now, err := s.box.Editable(t.Context(), 1); err != nil || string(now.Message.Body) != "theirs" {
			t.Errorf("the payload is %q: %v", now.Message.Body, err)
		}
	})
}

// rejectingStore is a store that rejects retries of some rows.
type rejectingStore struct {
	admin.Requeuer
	rejected map[int64]bool
}

func (s rejectingStore) Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	var errs []error
	for _, r := range rows {
		if s.rejected[r.Number] {
			errs = append(errs, errors.New("canceling statement due to lock timeout"))
			continue
		}
		errs = append(errs, s.Requeuer.Requeue(ctx, a, r)...)
	}
	return errs
}

func TestAReplayOfALockedRow(t *testing.T) {
	replay := func(t *testing.T, not ...int64) (*letterStore, []Letter, error) {
		s := newLetters(t)
		s.letters(t, 6, 2)
		s.repairHandler(t)
		held := rejectingStore{s.box.Requeuer, map[int64]bool{}}
		for _, n := range not {
			held.rejected[n] = true
		}
		s.box.Requeuer = held
		done, err := s.replayAll(t.Context(), replayOrder{Lease: lease})
		return s, done, err
	}
	t.Run("G4_is_left_with_those_behind_it_and_the_others_are_replayed", func(t *testing.T) {
		s, done, err := replay(t, 3)
		if err != nil || tally(done, actualFate) != "4 applied, 1 waits, 1 left" || !strings.Contains(done[2].Why, "lock timeout") || done[2].OK() {
			t.Errorf("%s, %+v, %v", tally(done, actualFate), done, err)
		}
		if ids := s.effects(t, "key = 'k0'"); len(ids) != 1 || ids[0] != "m0" {
			t.Errorf("the effects of its key are %q", ids)
		}
	})
	t.Run("G4_ends_the_replay_where_none_can_be_made_due", func(t *testing.T) {
		_, done, err := replay(t, 1, 2, 3, 4, 5, 6)
		if err != nil || tally(done, actualFate) != "4 waits, 2 left" { // all dead letters together have two keys
			t.Errorf("%s, %v", tally(done, actualFate), err)
		}
	})
}

func TestAReplayOfARowThatIsRemovedMeanwhile(t *testing.T) {
	replay := func(t *testing.T, then string) Letter {
		t.Helper()
		s := newLetters(t)
		s.letters(t, 1, 1)
		s.repairHandler(t)
		s.worker = func(ctx context.Context, numbers []int64) error {
			if err := s.work(ctx, "", numbers); err != nil {
				return err
			}
			_, err := s.db.ExecContext(ctx, then+"; delete from semel_inbox")
			return err
		}
		done, err := s.replayAll(t.Context(), replayOrder{Lease: lease})
		if err != nil || len(done) != 1 {
			t.Fatalf("%+v, %v", done, err)
		}
		return done[0]
	}
	for name, is := range map[string]struct {
		then string
		fate Fate
		why  string
	}{
		"applied":                     {"select 1", FateApplied, "its marker says that it was applied"},
		"closed":                      {fmt.Sprintf("update semel_markers set outcome = %d", store.Discarded), FateDiscarded, "that it was discarded"},
		"set aside":                   {fmt.Sprintf("update semel_markers set outcome = %d", store.Parked), FateLeft, "parked"},
		"applied with other content":  {"update semel_markers set sum = zeroblob(16)", FateConflict, "another content of this identity is applied"},
		"gone together with its mark": {"delete from semel_markers", FateLeft, "it is unknown whether"},
	} {
		t.Run("G4_is_told_as_its_marker_says/"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if l := replay(t, is.then); l.Happened != is.fate || !strings.Contains(l.Why, is.why) || l.OK() != (is.fate == FateApplied) {
				t.Errorf("%+v", l)
			}
		})
	}
	t.Run("G4_is_told_as_its_marker_says_to_who_came_too_late", func(t *testing.T) {
		s := newLetters(t)
		s.letters(t, 2, 2)
		s.repairHandler(t)
		letters, err := s.predict(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"delete from semel_inbox", fmt.Sprintf("update semel_markers set outcome = %d where hex(id) like '%%6D30'", store.Applied), "delete from semel_markers where hex(id) like '%6D31'"} {
			if _, err := s.db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		done, err := s.box.Replay(t.Context(), letters, Replay{Who: "ann", Why: "x", Work: s.work})
		if err != nil || tally(done, actualFate) != "1 applied, 1 left" {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// killFunc returns a function that kills this process at the crash point of the replayOrder.
func (o replayOrder) killFunc() func(ReplayPoint) {
	met := 0
	return func(p ReplayPoint) {
		if p != o.Death {
			return
		}
		if met++; met > o.After {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // wait for the signal
		}
	}
}

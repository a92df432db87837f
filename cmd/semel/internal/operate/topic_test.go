package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// recordOf returns a dead letter of the consumer billing, whose original record has the given offset.
func recordOf(m *semel.Message, offset int64) kafka.Letter {
	copied := *m
	copied.Topic, copied.Origin = "orders", semel.Origin{Offset: offset}
	copied.Origin.SetTime(time.Date(2026, 1, 2, 3, 4, int(offset), 0, time.UTC))
	return kafka.Letter{Topic: "letters", Offset: offset, Consumer: "billing", Reason: semel.ReasonPermanent, Error: "no account " + string(m.Key), Attempts: 1,
		Delivery: source.Delivery{Message: &copied, Before: source.Unknown}}
}

func (s *letterStore) join(t *testing.T, letters ...kafka.Letter) (all []TopicLetter) {
	t.Helper()
	j := Joiner{Box: s.box, Consumer: "billing", Config: consumer.Config{Identity: identity.CloudEvents(), Fingerprint: identity.FingerprintBody()}}
	for _, l := range letters {
		joined, err := j.Join(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, joined)
	}
	return all
}

// receive calls Receive with a consumer that uses the test database.
func (s *letterStore) receive(ctx context.Context, p *TopicPlan) error {
	return s.box.Receive(ctx, p, 0, func(ctx context.Context, src source.Source) error {
		c, err := s.consumerOf(src)
		if err != nil {
			return err
		}
		return c.Run(ctx)
	})
}

func noDoubt(TopicLetter) string { return "" }

// newLetterPerStanding returns one dead letter for each Standing, and creates the rows and markers that the
// standings need.
func (s *letterStore) newLetterPerStanding(t *testing.T) []kafka.Letter {
	t.Helper()
	id := func(id string) *semel.Message { return message(id, "k", `{"id":"`+id+`"}`) }
	s.deliver(t, id("aside"), id("closed"), id("waits"))
	for verb, number := range map[string]int64{"discard": 2, "retry": 3} {
		rows, err := s.store.Rows(t.Context(), store.RowFilter{Numbers: []int64{number}})
		if err != nil || len(rows) != 1 {
			t.Fatal(len(rows), err)
		}
		act := store.Act{Verb: verb, Who: "ann", Why: "a test"}
		if verb == "discard" {
			err = errors.Join(s.store.Discard(t.Context(), act, store.RowRevision{Number: number, Revision: rows[0].Revision})...)
		} else {
			err = errors.Join(s.store.Requeue(t.Context(), act, store.RowRevision{Number: number, Revision: rows[0].Revision})...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.repairHandler(t)
	s.deliver(t, id("done"))
	letters := []kafka.Letter{recordOf(id("aside"), 0), recordOf(id("closed"), 1), recordOf(id("waits"), 2), recordOf(id("done"), 3),
		recordOf(message("done", "k", "other"), 4), recordOf(id("new"), 5), recordOf(message("", "k", "x"), 6), recordOf(id("x"), 7), recordOf(id("y"), 8), recordOf(id("z"), 9)}
	letters[7].Foreign, letters[8].Consumer = true, "other"
	letters[9].Cut, letters[9].Delivery.Refused = true, semel.ReasonTooLarge
	cut := recordOf(id("aside"), 10)
	cut.Cut, cut.Delivery.Refused = true, semel.ReasonTooLarge
	return append(letters, cut)
}

func TestTheStatusesOfDeadLettersOfATopic(t *testing.T) {
	t.Run("trap_18_none_hides_another_and_each_is_joined_by_its_identity_and_content", func(t *testing.T) {
		s := newLetters(t)
		var stands []Standing
		for _, l := range s.join(t, s.newLetterPerStanding(t)...) {
			stands = append(stands, l.Stands)
		}
		want := []Standing{StandsAside, StandsClosed, StandsDue, StandsDone, StandsOther, StandsUnknown, StandsNameless, StandsForeign, StandsForeign, StandsCut, StandsAside}
		if !slices.Equal(stands, want) {
			t.Errorf("their statuses are %q,\nnot %q", stands, want)
		}
	})
	t.Run("G2_it_is_joined_with_what_stands_in_the_generation_that_is_active", func(t *testing.T) {
		s := newLetters(t)
		letters := s.newLetterPerStanding(t)
		j := Joiner{Box: s.box, Consumer: "billing", Kept: "billing@1", Config: consumer.Config{Identity: identity.CloudEvents(), Fingerprint: identity.FingerprintBody()}}
		letters[3].Consumer = "billing@1" // dead letters of generation 1 have this consumer name
		for _, l := range letters[:4] {
			if joined, err := j.Join(t.Context(), l); err != nil || joined.Stands != StandsUnknown {
				t.Errorf("a dead letter that another generation has applied has the status %q: %v", joined.Stands, err)
			}
		}
	})
	t.Run("G4_what_becomes_of_each_is_as_it_was_foretold", func(t *testing.T) {
		s := newLetters(t)
		p, err := s.box.PlanTopic(t.Context(), s.join(t, s.newLetterPerStanding(t)...), nil, noDoubt)
		want := "3 applied, 2 skipped as applied, 1 conflict, 5 refused"
		if err != nil || tally(p.Letters, predictedFate) != want || p.Receives() != 1 {
			t.Fatalf("predicted %s, %d to be received: %v", tally(p.Letters, predictedFate), p.Receives(), err)
		}
		if err := s.receive(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if _, err := s.box.Replay(t.Context(), p.Letters, Replay{Who: "ann", Why: "x", Work: s.work}); err != nil {
			t.Fatal(err)
		}
		if p.Copies(); tally(p.Letters, actualFate) != want {
			t.Errorf("happened %s: %+v", tally(p.Letters, actualFate), p.Letters)
		}
		if ids := s.effects(t, "true"); len(ids) != 4 {
			t.Errorf("the effects are of %q", ids)
		}
	})
	t.Run("trap_20_nothing_is_received_of_which_nobody_knows_whether_it_took_effect", func(t *testing.T) {
		s := newLetters(t)
		s.repairHandler(t)
		letters := s.join(t, recordOf(message("old", "k", "a"), 1), recordOf(message("new", "k", "b"), 50))
		kept := time.Date(2026, 1, 2, 3, 4, 30, 0, time.UTC)
		p, err := s.box.PlanTopic(t.Context(), letters, nil, func(l TopicLetter) string {
			if l.Sent().Before(kept) {
				return "too old"
			}
			return ""
		})
		if err == nil {
			err = s.receive(t.Context(), p)
		}
		if p.Copies(); err != nil || tally(p.Letters, actualFate) != "1 applied, 1 refused" {
			t.Errorf("%s: %v", tally(p.Letters, actualFate), err)
		}
		if ids := s.effects(t, "true"); !slices.Equal(ids, []string{"new"}) {
			t.Errorf("the effects are of %q", ids)
		}
	})
	t.Run("trap_T45_of_copies_and_contents_of_one_identity_one_is_received", func(t *testing.T) {
		s := newLetters(t)
		s.repairHandler(t)
		p, err := s.box.PlanTopic(t.Context(), s.join(t, recordOf(message("a", "k", "1"), 1), recordOf(message("a", "k", "1"), 2), recordOf(message("a", "k", "2"), 3)), nil, noDoubt)
		if err == nil {
			err = s.receive(t.Context(), p)
		}
		want := "1 applied, 1 skipped as applied, 1 conflict"
		if p.Copies(); err != nil || tally(p.Letters, predictedFate) != want || tally(p.Letters, actualFate) != want {
			t.Errorf("%s; %s; %v", tally(p.Letters, predictedFate), tally(p.Letters, actualFate), err)
		}
	})
	t.Run("G4_a_copy_of_a_letter_that_fails_again_is_not_told_as_applied", func(t *testing.T) {
		s := newLetters(t)
		m := message("a", "k", "1")
		s.deliver(t, m)
		p, err := s.box.PlanTopic(t.Context(), s.join(t, recordOf(m, 1), recordOf(m, 2)), nil, noDoubt)
		if err != nil || tally(p.Letters, predictedFate) != "1 applied, 1 skipped as applied" {
			t.Fatal(tally(p.Letters, predictedFate), err)
		}
		if _, err := s.box.Replay(t.Context(), p.Letters, Replay{Who: "ann", Why: "x", Work: s.work}); err != nil {
			t.Fatal(err)
		}
		if p.Copies(); tally(p.Letters, actualFate) != "2 failed again" {
			t.Error(tally(p.Letters, actualFate))
		}
	})
	t.Run("trap_21_a_live_copy_that_was_first_is_told_as_a_change", func(t *testing.T) {
		s := newLetters(t)
		s.repairHandler(t)
		p, err := s.box.PlanTopic(t.Context(), s.join(t, recordOf(message("a", "k", "1"), 1)), nil, noDoubt)
		if err != nil {
			t.Fatal(err)
		}
		s.deliver(t, message("a", "k", "1"))
		if err := s.receive(t.Context(), p); err != nil || p.Letters[0].Happened != FateSkipped || !p.Letters[0].Changed() {
			t.Errorf("%+v: %v", p.Letters[0], err)
		}
		if ids := s.effects(t, "true"); len(ids) != 1 {
			t.Errorf("the effects are of %q", ids)
		}
	})
	t.Run("law_8_letters_of_one_key_are_received_the_oldest_first", func(t *testing.T) {
		s := newLetters(t)
		s.repairHandler(t)
		var letters []kafka.Letter
		var want []string
		for i := range 30 {
			letters = append(letters, recordOf(message(fmt.Sprint("m", i), "k", "x"), int64(i)))
			want = append(want, fmt.Sprint("m", i))
		}
		slices.Reverse(letters)
		p, err := s.box.PlanTopic(t.Context(), s.join(t, letters...), nil, noDoubt)
		if err == nil {
			err = s.receive(t.Context(), p)
		}
		if ids := s.effects(t, "true"); err != nil || !slices.Equal(ids, want) {
			t.Errorf("the effects are of %q: %v", ids, err)
		}
	})
}

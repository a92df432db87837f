package engine

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
)

func flightOf(ids ...string) *machine.Flight {
	f := &machine.Flight{}
	for _, id := range ids {
		f.Entries = append(f.Entries, machine.Entry{Item: &machine.Item{Source: "/shop", Identity: id}})
	}
	return f
}

func TestCanariesAreChosenByTheirIdentity(t *testing.T) {
	t.Run("L7b_one_message_in_so_many_is_chosen_and_always_the_same", func(t *testing.T) {
		c, first := canaries{oneIn: 100}, ""
		chosen := 0
		for i := range 10_000 {
			if id := fmt.Sprint("order-", i); c.due(flightOf(id), 0) {
				if chosen++; first == "" {
					first = id
				}
			}
		}
		// A release that chooses other messages makes a rerun that was seen once impossible to repeat.
		if chosen < 70 || chosen > 130 || first != "order-11" {
			t.Errorf("%d of 10,000 are chosen, the first is %s", chosen, first)
		}
	})
}

func TestTheRecordOfCanaryRerunsIsBounded(t *testing.T) {
	t.Run("law_11_the_record_of_canaries_forgets_ended_messages_and_never_grows_beyond_its_limit", func(t *testing.T) {
		c, f := canaries{oneIn: 1}, flightOf("1", "2")
		if !c.due(f, 0, 1) {
			t.Fatal("no canary is due")
		}
		c.recordRollback(f, 0, 1)
		if c.due(f, 0) || c.due(f, 0, 1) {
			t.Error("a canary is due twice")
		}
		ended := func(end source.End) func(*machine.Flight, int) (source.End, semel.Reason) {
			return func(*machine.Flight, int) (source.End, semel.Reason) { return end, reasonname.None }
		}
		if c.forgetEnded(f, ended(source.EndUnknown)); len(c.rolledBack) == 0 {
			t.Error("messages that have not ended are forgotten")
		}
		if c.forgetEnded(f, ended(source.EndApplied)); len(c.rolledBack) != 0 {
			t.Errorf("%d ended messages are kept", len(c.rolledBack))
		}
		for lost := range uint64(mostRolledBack) {
			c.rolledBack[lost+1] = true
		}
		if c.recordRollback(f, 0); len(c.rolledBack) != 1 || c.due(f, 0) {
			t.Errorf("%d messages are kept", len(c.rolledBack))
		}
	})
}

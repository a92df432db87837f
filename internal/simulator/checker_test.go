package simulator

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// sabotage changes the actions of a machine so that they break a law.
type sabotage struct {
	name, law string
	spoil     func(*spoiler, machine.Action) []machine.Action
}

func keep(a machine.Action) []machine.Action { return []machine.Action{a} }

var sabotages = []sabotage{
	{"law_1_an_effect_whose_mark_is_taken_back", "law 1", func(s *spoiler, a machine.Action) []machine.Action {
		if c, ok := a.(machine.Commit); ok && len(c.Trim) == 0 && len(s.fresh[c.Flight]) > 0 {
			c.Trim = s.fresh[c.Flight][:1]
			return keep(c)
		}
		return keep(a)
	}},
	{"law_1_a_mark_whose_handler_did_not_run", "law 1", func(_ *spoiler, a machine.Action) []machine.Action {
		if c, ok := a.(machine.Commit); ok {
			c.Trim = nil
			return keep(c)
		}
		return keep(a)
	}},
	{"law_2_a_settlement_before_the_commit", "law 2", func(_ *spoiler, a machine.Action) []machine.Action {
		if c, ok := a.(machine.Commit); ok {
			early := machine.Settlement{Item: c.Flight.Entries[0].Item, Kind: semel.Ack, Ending: source.EndApplied}
			return []machine.Action{&machine.Settle{Items: []machine.Settlement{early}}, a}
		}
		return keep(a)
	}},
	{"law_3_a_commit_of_a_failed_attempt", "law 3", func(_ *spoiler, a machine.Action) []machine.Action {
		if r, ok := a.(machine.Rollback); ok {
			return keep(machine.Commit{Flight: r.Flight})
		}
		return keep(a)
	}},
	{"law_9_a_settlement_that_is_told_twice", "law 9", func(_ *spoiler, a machine.Action) []machine.Action {
		if s, ok := a.(*machine.Settle); ok {
			return []machine.Action{a, &machine.Settle{Items: s.Items}}
		}
		return keep(a)
	}},
	{"law_11_a_wake_that_has_passed", "law 11", func(s *spoiler, a machine.Action) []machine.Action {
		if _, ok := a.(machine.Wake); ok {
			return keep(machine.Wake{At: s.now})
		}
		return keep(a)
	}},
	{"law_11_a_wake_that_never_comes", "law 11", func(_ *spoiler, a machine.Action) []machine.Action {
		if _, ok := a.(machine.Wake); ok {
			return nil
		}
		return keep(a)
	}},
	{"law_11_a_stuck_handler_that_is_not_killed", "law 11", func(_ *spoiler, a machine.Action) []machine.Action {
		if _, ok := a.(machine.Kill); ok {
			return nil
		}
		return keep(a)
	}},
	{"law_12_a_parked_message_without_its_row", "law 12", func(_ *spoiler, a machine.Action) []machine.Action {
		if c, ok := a.(machine.Commit); ok {
			c.Rows = nil
			return keep(c)
		}
		return keep(a)
	}},
	{"B9_a_version_that_runs_out_of_its_turn", "B9", func(_ *spoiler, a machine.Action) []machine.Action {
		if r, ok := a.(machine.Run); ok {
			r.Fresh = nil
			for i := range r.Flight.Entries {
				r.Fresh = append(r.Fresh, i)
			}
			return keep(r)
		}
		return keep(a)
	}},
	{"trap_T55_a_version_that_waits_for_no_time", "trap T55", func(_ *spoiler, a machine.Action) []machine.Action {
		if c, ok := a.(machine.Commit); ok {
			for i := range c.Rows {
				c.Rows[i].After = 0
			}
			return keep(c)
		}
		return keep(a)
	}},
	{"case_10_a_release_that_is_forgotten", "case 10", func(_ *spoiler, a machine.Action) []machine.Action {
		if _, ok := a.(machine.Release); ok {
			return nil
		}
		return keep(a)
	}},
	{"a second fetch", "protocol", func(_ *spoiler, a machine.Action) []machine.Action {
		if _, ok := a.(machine.Fetch); ok {
			return []machine.Action{a, a}
		}
		return keep(a)
	}},
	{"an action after Done", "protocol", func(_ *spoiler, a machine.Action) []machine.Action {
		if _, ok := a.(machine.Done); ok {
			return []machine.Action{a, machine.Fetch{Messages: 1, Bytes: 1}}
		}
		return keep(a)
	}},
	{"a rollback of a flight that has ended", "protocol", func(_ *spoiler, a machine.Action) []machine.Action {
		if r, ok := a.(machine.Report); ok && r.Kind == machine.ReportCommitted {
			return []machine.Action{a, machine.Rollback{Flight: &machine.Flight{}}}
		}
		return keep(a)
	}},
}

func TestTheCheckerFindsBrokenLaws(t *testing.T) {
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			maker := sabotaged(s.spoil)
			for seed := uint64(1); seed <= 200; seed++ {
				if r := Run(seed, maker, false); r.Broken != nil && r.Broken.Law == s.law {
					return
				}
			}
			t.Errorf("200 seeds do not break %s", s.law)
		})
	}
}

func TestAPanicIsAFault(t *testing.T) {
	r := Run(1, sabotaged(func(*spoiler, machine.Action) []machine.Action { panic("no") }), false)
	if r.Broken == nil || r.Broken.Law != "panic" {
		t.Errorf("it breaks %v", r.Broken)
	}
}

func TestACopyOfAConflictIsProvenByItsRow(t *testing.T) {
	t.Run("law_2_H3_also_where_that_was_removed_between_its_mark_and_its_commit", func(t *testing.T) {
		w := newWorld(chance.FromSeed(1), Real)
		w.store = model.NewStore()
		c := &checker{p: &process{w: w}, w: w}
		h := &itemState{delivery: &model.Delivery{Message: &model.Message{ID: "a"}}}
		h.item = &machine.Item{Handle: h, Print: semel.Fingerprint{Version: 1, Sum: [16]byte{2}}}
		s := &machine.Settlement{Item: h.item, Kind: semel.Ack, Ending: source.EndDuplicate}
		w.store.Markers["a"] = model.Marker{Print: semel.Fingerprint{Version: 1, Sum: [16]byte{1}}, Outcome: store.Applied}
		if c.proven(s, h) {
			t.Error("it is settled as a duplicate, and its identity has another content only")
		}
		w.store.Put(&model.Row{Key: model.RowKey{ID: "a", Conflict: true, Print: h.item.Print}, As: machine.AsDeadLettered})
		if !c.proven(s, h) {
			t.Error("the row of its conflict proves nothing")
		}
		if w.remove("a"); !c.proven(s, h) {
			t.Error("what the store held when it was marked proves nothing")
		}
	})
}

package simulator

import (
	"testing"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
	"github.com/semel-go/semel/internal/simulator/model"
)

func TestACallBesideAnother(t *testing.T) {
	const lease = time.Second
	// broken runs two claims of one row. The first claim is made at the start, the second at 300 ms, when the store's
	// clock shows the time at. Finally, the first process makes its call while the call of the second process is in
	// progress.
	broken := func(at time.Duration, jumped bool) *Violation {
		w := newWorld(chance.FromSeed(1), Real)
		w.start()
		w.now, w.store.Jumped = lease/2, jumped
		m := w.Messages[0]
		r := &model.Row{Message: m, As: machine.AsReceived, Token: 2, Taken: map[uint64]model.Takeover{1: {Until: lease, At: at}}}
		calls := make([]*call, 2)
		for i := range calls {
			c := &model.Claim{Row: r, Tokens: []uint64{uint64(i + 1)}, Ends: lease}
			calls[i] = &call{f: &flight{}, claim: c, token: c.Token(), message: m}
		}
		calls[0].f.of, calls[1].f.of = &machine.Flight{Number: 1}, &machine.Flight{Number: 2}
		w.checkOverlap(calls[0], calls[1])
		return w.law
	}
	t.Run("B11_breaks_the_law_although_a_process_was_frozen", func(t *testing.T) {
		for _, at := range []time.Duration{300 * time.Millisecond, time.Hour} {
			if v := broken(at, false); v == nil || v.Law != "B11" {
				t.Errorf("taken at %v: %v", at, v)
			}
		}
	})
	t.Run("B11_breaks_it_where_the_clock_jumped_and_the_lease_was_not_over_by_it", func(t *testing.T) {
		if v := broken(300*time.Millisecond, true); v == nil || v.Law != "B11" {
			t.Error(v)
		}
	})
	t.Run("B11_breaks_nothing_where_the_stores_clock_jumped_past_the_lease", func(t *testing.T) {
		if v := broken(time.Hour, true); v != nil {
			t.Error(v)
		}
	})
}

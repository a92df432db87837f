package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestClaimsAndDeliveriesTakeTurns(t *testing.T) {
	// kinds lets 1,000 deliveries and then n claimed rows arrive, and returns which of the next batches of the only
	// worker contain claimed rows.
	kinds := func(t *testing.T, n int, change func(*Config)) (text string) {
		a := newAsking(t, func(c *Config) { c.Workers, c.Lanes, c.Receive = 1, NoOrder, true; change(c) })
		step[Action](a, 0, Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		var came []*Item
		for i := range 1000 {
			came = append(came, &Item{Lane: source.Lane{ID: "a", Epoch: 1}, Identity: fmt.Sprint("d", i), Size: 1, Before: -1})
		}
		step[Action](a, 0, Fetched{Items: came})
		step[Action](a, 0, a.newClaimed(15, time.Minute))
		for range n {
			if len(a.flights) != 1 {
				t.Fatalf("%d flights", len(a.flights))
			}
			f := a.flights[0]
			for _, en := range f.Entries {
				if (en.Item.Claim != nil) != (f.Entries[0].Item.Claim != nil) {
					t.Error("claims and deliveries share a flight")
				}
			}
			kind := "d"
			if f.Entries[0].Item.Claim != nil {
				kind = "c"
			}
			text += kind
			a.flights = nil
			v := make([]store.Verdict, len(f.Entries))
			for i := range v {
				v[i].Kind = store.Fresh
			}
			for range step[Run](a, 0, Marked{Flight: f, Verdicts: v}) {
				step[Action](a, 0, Ran{Flight: f, Done: len(v)})
			}
			step[Action](a, 0, Ended{Flight: f, Outcome: store.Committed, Culprit: -1})
		}
		return text
	}
	t.Run("D3_what_was_claimed_waits_for_one_flight_of_what_was_fetched_before_it", func(t *testing.T) {
		if got := kinds(t, 6, func(*Config) {}); got != "dcdcdd" {
			t.Errorf("the flights are %s", got)
		}
	})
	t.Run("D3_nor_do_claims_that_fly_alone_wait_for_more", func(t *testing.T) {
		if got := kinds(t, 6, func(c *Config) { c.ClaimsAlone = true }); got != "dcdcdc" {
			t.Errorf("the flights are %s", got)
		}
	})
}

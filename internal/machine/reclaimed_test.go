package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/reasonname"
)

func TestClaimsOfAnothersAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Item)
		want   int64
	}{
		"K4_one_that_nobody_had":                {func(*Item) {}, 0},
		"K4_one_that_failed_and_was_given_back": {func(it *Item) { it.Claim.Attempts = 4 }, 0},
		"K4_one_that_another_had_to_its_end":    {func(it *Item) { it.Claim.Suspect = true }, 1},
		"K4_one_of_those_that_cannot_be_carried": {func(it *Item) {
			it.Claim.Suspect, it.Refused = true, &Refusal{Reason: reasonname.Kills, Why: errors.New("three died")}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsking(t, nil)
			step[Action](a, 0, Timer{})
			e := a.newClaimed(2, time.Minute)
			c.change(e.Items[1])
			step[Action](a, 0, e)
			if n := a.m.Counts().Claims; n.Claimed != 2 || n.Reclaimed != c.want {
				t.Errorf("%+v, not %d reclaimed", n, c.want)
			}
		})
	}
	t.Run("K4_one_that_comes_while_the_consumer_stops", func(t *testing.T) {
		a := newAsking(t, nil)
		step[Action](a, 0, Timer{})
		step[Action](a, 0, Stop{})
		e := a.newClaimed(1, time.Minute)
		e.Items[0].Claim.Suspect = true
		step[Action](a, 0, e)
		if n := a.m.Counts().Claims; n.Reclaimed != 1 || n.Released != 1 {
			t.Errorf("%+v", n)
		}
	})
}

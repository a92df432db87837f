package retention

import (
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room registers this fault test with the command itest/cmd/proof. Room also registers the measurement of rates.
type Room struct {
	markers, many, rounds int
	rates                 bool
}

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	flags.IntVar(&r.markers, "markers", 5_000_000, "number of old markers to remove, and of markers in the dropped partition")
	flags.BoolVar(&r.rates, "rates", false, "measure the cost of the index and of many markers")
	flags.IntVar(&r.many, "many", 10_000_000, "with -rates, number of markers")
	flags.IntVar(&r.rounds, "rounds", 11, "with -rates, number of rounds")
}

// Plants implements proof.Room. With the fault "blind", the workers do not check the age of a duplicate. With the fault
// "lock", the reaper holds a lock for which the workers wait.
func (r *Room) Plants() []string { return []string{"blind", "lock"} }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	if r.rates {
		p := Rates{Markers: r.many, Rounds: r.rounds, Seed: c.Seed}
		return []proof.Run{{Title: "rates", Within: 2 * time.Hour, Prove: proof.Proving(p.Run)}}
	}
	p := Proof{Markers: r.markers, Blind: c.Plant == "blind", Locks: c.Plant == "lock", Seed: c.Seed}
	runs := []proof.Run{{Title: "retention", Within: 2 * time.Hour, Prove: proof.Proving(p.Run)}}
	if !p.Blind { // a store with daily partitions always checks the age, so it cannot have this fault
		runs = append(runs, proof.Run{Title: "a day", Within: 2 * time.Hour, Prove: proof.Proving(Days{p}.Run)})
	}
	return runs
}

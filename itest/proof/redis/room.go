package redis

import (
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers the measurement.
type Room struct{ rounds, workers int }

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	flags.IntVar(&r.rounds, "rounds", 11, "how often each takes its turn")
	flags.IntVar(&r.workers, "workers", 64, "how many messages are under way")
}

// Plants implements proof.Room: there are none.
func (r *Room) Plants() []string { return nil }

// Runs implements proof.Room.
func (r *Room) Runs(proof.Choice) []proof.Run {
	return []proof.Run{{Title: "rates", Within: time.Hour, Prove: proof.Proving(Rates{Rounds: r.rounds, Workers: r.workers}.Run)}}
}

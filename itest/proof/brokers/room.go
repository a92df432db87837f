package brokers

import (
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers the proof.
type Room struct{ Proof }

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	flags.IntVar(&r.Events, "events", 60_000, "the fewest events to publish")
	flags.IntVar(&r.Rate, "rate", 600, "events a second")
	flags.IntVar(&r.Members, "members", 3, "members of the consumer")
	flags.IntVar(&r.Rounds, "rounds", 3, "how often a broker is killed and another frozen")
	flags.DurationVar(&r.Freeze, "freeze", 12*time.Second, "how long one is frozen")
	flags.BoolVar(&r.NextGen, "next-gen", false, "let the brokers balance the group (KIP-848)")
}

// Plants implements proof.Room: "natural" leaves the markers out.
func (r *Room) Plants() []string { return []string{"natural"} }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	r.Seed, r.Natural = c.Seed, c.Plant == "natural"
	return []proof.Run{{Title: "three brokers", Within: 20 * time.Minute, Prove: proof.Proving(r.Run)}}
}

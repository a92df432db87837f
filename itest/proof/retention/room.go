package retention

import (
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers the proof.
type Room struct{ markers int }

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	flags.IntVar(&r.markers, "markers", 5_000_000, "how many old markers are reaped")
}

// Plants implements proof.Room: "blind" has workers not ask for the age of a copy.
func (r *Room) Plants() []string { return []string{"blind"} }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	p := Proof{Markers: r.markers, Blind: c.Plant != "", Seed: c.Seed}
	return []proof.Run{{Title: "retention", Within: 2 * time.Hour, Prove: proof.Proving(p.Run)}}
}

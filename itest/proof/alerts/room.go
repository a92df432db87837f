//go:build unix

package alerts

import (
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers the proof.
type Room struct{ Proof }

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	flags.IntVar(&r.Scale, "scale", 30, "how many times shorter the rules' durations are; the sampler of stores takes 15 s all the same, so that more than 60 leaves rules without figures")
	flags.StringVar(&r.Binary, "binary", "", "a semel that was built before; without, it is built")
	flags.DurationVar(&r.Healthy, "healthy", time.Minute, "how long nothing is wrong at first; 5m is that of the rules that ship")
}

// Plants implements proof.Room: "poison" has a message fail for good in the healthy run, and
// "unbroken" leaves a fault out.
func (r *Room) Plants() []string { return []string{plantPoison, plantUnbroken} }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	p := r.Proof
	p.Plant = c.Plant
	return []proof.Run{{Title: "alerts", Within: p.Healthy + 20*time.Minute, Prove: proof.Proving(p.Run)}}
}

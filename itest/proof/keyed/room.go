//go:build unix

package keyed

import (
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// PlantForgets has the server, which says that it is durable, forget the last second.
const PlantForgets = "forgets"

// Room offers the proof.
type Room struct {
	Proof
	quick bool
}

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	flags.IntVar(&r.Deliveries, "deliveries", 200_000, "lines of all files")
	flags.IntVar(&r.Messages, "messages", 80_000, "messages, each with an id of its own")
	flags.IntVar(&r.Kills, "kills", 20, "how often a process is killed")
	flags.IntVar(&r.Freezes, "freezes", 4, "how often a process is frozen for longer than a lease")
	flags.IntVar(&r.Restarts, "restarts", 4, "how often Redis is killed and started again")
	flags.BoolVar(&r.EverySecond, "everysec", false, "appendfsync everysec, and each restart loses the last second: completions are forgotten, and counted")
	flags.BoolVar(&r.quick, "quick", false, "a form of a minute")
}

// Plants implements proof.Room.
func (r *Room) Plants() []string { return []string{PlantForgets} }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	p, title := r.Proof, "appendfsync always"
	if r.quick {
		p.Deliveries, p.Messages, p.Kills, p.Freezes, p.Restarts = 20_000, 8_000, 4, 1, 2
	}
	if p.EverySecond {
		title = "appendfsync everysec"
	}
	p.Seed, p.Forgets = c.Seed, c.Plant == PlantForgets
	return []proof.Run{{Title: title, Within: time.Hour, Prove: proof.Proving(p.Run)}}
}

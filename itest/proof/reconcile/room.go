//go:build unix

package reconcile

import (
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers the proof.
type Room struct{ messages int }

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	flags.IntVar(&r.messages, "messages", 1_000_000, "how many were sent")
}

// Plants implements proof.Room: "effects" tells the command of no effects.
func (r *Room) Plants() []string { return []string{"effects"} }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	p := Proof{Messages: r.messages, Blind: c.Plant != ""}
	return []proof.Run{{Title: "reconcile", Within: time.Hour, Prove: proof.Proving(p.Run)}}
}

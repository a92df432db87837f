//go:build unix

package file

import (
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room registers this fault test with the command itest/cmd/proof.
type Room struct{ Proof }

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	proof.Payloads(flags, &r.Input.Webhooks)
	flags.IntVar(&r.Input.Deliveries, "deliveries", 100_000, "number of lines of the file")
	flags.IntVar(&r.Input.IDs, "ids", 30_000, "webhooks, each with an id of its own")
	flags.IntVar(&r.Kills, "kills", 30, "how often the process is killed")
	flags.IntVar(&r.Open, "open", 20, "minimum number of kills in an open transaction")
}

// Plants implements proof.Room.
func (r *Room) Plants() []string { return nil }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	r.Input.Seed, r.Batch = c.Seed, 500
	return []proof.Run{{Title: "file", Within: time.Hour, Prove: proof.Proving(r.Proof.Run)}}
}

//go:build unix

package file

import (
	"errors"
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers both proofs.
type Room struct {
	Fleet
	into string
}

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	proof.Payloads(flags, &r.Input.Webhooks)
	flags.IntVar(&r.Input.Deliveries, "deliveries", 100_000, "lines of the file")
	flags.IntVar(&r.Input.IDs, "ids", 30_000, "webhooks, each with an id of its own")
	flags.IntVar(&r.Kills, "kills", 30, "how often a process is killed")
	flags.IntVar(&r.Open, "open", 20, "how many kills must meet an open transaction")
	r.into = "sqlite"
	flags.Func("into", "the `database`: sqlite or postgres (default sqlite)", func(name string) error {
		if name != "sqlite" && name != "postgres" {
			return errors.New("there are sqlite and postgres")
		}
		r.into = name
		return nil
	})
	flags.IntVar(&r.Restarts, "restarts", 5, "how often the server is restarted; postgres only")
}

// Plants implements proof.Room.
func (r *Room) Plants() []string { return nil }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	r.Input.Seed, r.Batch, r.Timeout = c.Seed, 100, 5*time.Second
	prove := proof.Proving(r.Fleet.Run)
	if r.into != "postgres" {
		prove = proof.Proving(Proof{Input: r.Input, Batch: 500, Kills: r.Kills, Open: r.Open}.Run)
	}
	return []proof.Run{{Title: "into " + r.into, Within: time.Hour, Prove: prove}}
}

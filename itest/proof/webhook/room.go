//go:build unix

package webhook

import (
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers the proof in two sizes.
type Room struct {
	Proof
	quick bool
}

// Full is the proof's size: some two minutes.
func Full() Proof {
	return Proof{Events: 5_000, Publish: 90 * time.Second, Kills: 30, Rounds: 4, Ends: 5, Restarts: 4, Scale: 5_000}
}

// Quick is a proof of less than a minute. The provider's three days are long beside the time
// that a process and PostgreSQL take to start on a machine that has other work.
func Quick() Proof {
	return Proof{Events: 800, Publish: 10 * time.Second, Kills: 4, Rounds: 1, Ends: 1, Restarts: 1, Scale: 5_000}
}

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	p := &r.Proof
	*p = Full()
	flags.BoolVar(&r.quick, "quick", false, "take the sizes of the form that takes less than a minute, whatever other flags say")
	flags.IntVar(&p.Events, "events", p.Events, "events, each with an id of its own")
	flags.DurationVar(&p.Publish, "publish", p.Publish, "over how long they happen, at least")
	flags.IntVar(&p.Kills, "kills", p.Kills, "kills at random moments")
	flags.IntVar(&p.Rounds, "rounds", p.Rounds, "kills at each named point")
	flags.IntVar(&p.Ends, "ends", p.Ends, "ends by SIGTERM")
	flags.IntVar(&p.Restarts, "restarts", p.Restarts, "restarts of PostgreSQL, every other time by SIGKILL")
	flags.IntVar(&p.Scale, "scale", p.Scale, "how many times faster the provider's three days pass")
}

// Plants implements proof.Room. "early" has somebody in front answer before anything is
// stored; "forgetful" has the store forget at each kill what is done; "leaked" has a forger
// know the secret.
func (r *Room) Plants() []string { return []string{plantEarly, plantForgetful, plantLeaked} }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	p := r.Proof
	if r.quick {
		p = Quick()
	}
	p.Seed, p.Plant = c.Seed, c.Plant
	return []proof.Run{{Title: "webhook", Within: p.Publish + 15*time.Minute, Prove: proof.Proving(p.Run)}}
}

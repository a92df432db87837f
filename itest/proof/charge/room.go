//go:build unix

package charge

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

// Full is the proof's size: some four minutes of publishing.
func Full() Proof {
	return Proof{Payments: 20_000, Duplicates: 2_000, Publish: 4 * time.Minute, Consumers: 3, Senders: 3, Naive: 2,
		Kills: 30, Freezes: 10, Rounds: 4, Restarts: 3, Window: 20 * time.Second, Timeout: 2 * time.Second, Lease: 3 * time.Second, Most: 2 * time.Second}
}

// Quick is a proof of less than a minute.
func Quick() Proof {
	return Proof{Payments: 2_000, Duplicates: 200, Publish: 20 * time.Second, Consumers: 3, Senders: 3, Naive: 2,
		Kills: 4, Freezes: 2, Rounds: 1, Restarts: 1, Window: 6 * time.Second, Timeout: time.Second, Lease: 2 * time.Second, Most: 600 * time.Millisecond}
}

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	p := &r.Proof
	*p = Full()
	flags.BoolVar(&r.quick, "quick", false, "take the sizes of the form that takes a minute, whatever other flags say")
	flags.IntVar(&p.Payments, "payments", p.Payments, "payments, each with an identity of its own")
	flags.IntVar(&p.Duplicates, "duplicates", p.Duplicates, "copies by producers")
	flags.DurationVar(&p.Publish, "publish", p.Publish, "over how long they are published, at least")
	flags.IntVar(&p.Kills, "kills", p.Kills, "kills at random moments")
	flags.IntVar(&p.Freezes, "freezes", p.Freezes, "freezes at random moments")
	flags.IntVar(&p.Rounds, "rounds", p.Rounds, "kills at each named point")
	flags.IntVar(&p.Restarts, "restarts", p.Restarts, "restarts of the provider, by SIGKILL")
}

// Plants implements proof.Room. "new-key" has a sender make a key for each attempt;
// "settle-first" has it say that a payment is charged before it calls; "forgotten" has it
// repeat calls when the provider has forgotten their key.
func (r *Room) Plants() []string { return []string{"new-key", "settle-first", "forgotten"} }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	p := r.Proof
	if r.quick {
		p = Quick()
	}
	p.Seed, p.Plant = c.Seed, c.Plant
	return []proof.Run{{Title: "charge", Within: p.Publish + 15*time.Minute, Prove: proof.Proving(p.Run)}}
}

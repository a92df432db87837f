//go:build unix

package replay

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

// Full is the proof's size.
func Full() Proof {
	return Proof{Messages: 100_000, Copies: 20_000, Publish: 60 * time.Second, Partitions: 6, Crew: 3, Batch: 100, Session: 6 * time.Second,
		Kills: 8, Shots: Shots{2, 2, 2, 3}, Edited: 40}
}

// Quick is a proof of less than a minute.
func Quick() Proof {
	return Proof{Messages: 8_000, Copies: 2_000, Publish: 6 * time.Second, Partitions: 6, Crew: 3, Batch: 100, Session: 6 * time.Second, Static: true,
		Kills: 2, Shots: Shots{Group: 1, Rebuild: 1}, Edited: 5}
}

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	p := &r.Proof
	*p = Full()
	flags.BoolVar(&r.quick, "quick", false, "take the sizes of the form that takes a minute, whatever other flags say")
	flags.IntVar(&p.Messages, "messages", p.Messages, "transfers, each with an identity of its own")
	flags.IntVar(&p.Copies, "copies", p.Copies, "copies by producers")
	flags.DurationVar(&p.Publish, "publish", p.Publish, "over how long the first part is published, at least")
	flags.IntVar(&p.Kills, "kills", p.Kills, "kills of members while the first part is published, and as many over the others")
	flags.IntVar(&p.Edited, "edited", p.Edited, "dead letters that are edited")
}

// Plants implements proof.Room. "new-ids" has somebody send dead letters to the topic
// again, under new ids; "unmended" has the causes stay; "by-hand" has somebody give up on
// the new projection and put it into the live one's place by an update.
func (r *Room) Plants() []string { return []string{"new-ids", "unmended", "by-hand"} }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	p := r.Proof
	if r.quick {
		p = Quick()
	}
	p.Seed, p.Plant = c.Seed, c.Plant
	return []proof.Run{{Title: "replay", Within: p.Publish + 20*time.Minute, Prove: proof.Proving(p.Run)}}
}

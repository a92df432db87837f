//go:build unix

package replay

import (
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room registers this fault test with the command itest/cmd/proof, in two sizes. The fault "new-ids" publishes dead
// letters again under new ids. The fault "unmended" does not repair the causes. The fault "by-hand" abandons the
// rebuild and activates the new projection with an UPDATE.
func Room() proof.Room {
	return &proof.Form[Proof, Ledger]{Title: "replay", Within: 20 * time.Minute, Lasts: func(p Proof) time.Duration { return p.Publish },
		Sizes: Full(), Quick: func(Proof) Proof { return Quick() },
		Faults: []string{"new-ids", "unmended", "by-hand"}, Choose: func(p *Proof, c proof.Choice) { p.Seed, p.Plant = c.Seed, c.Plant }, Prove: Proof.Run}
}

// Full returns the configuration of the large size.
func Full() Proof {
	return Proof{Messages: 100_000, Copies: 20_000, Publish: 60 * time.Second, Partitions: 6, Crew: 3, Batch: 100, Session: 6 * time.Second,
		Kills: 8, Shots: Shots{2, 2, 2, 3}, Edited: 40}
}

// Quick returns a configuration that takes less than a minute.
func Quick() Proof {
	return Proof{Messages: 8_000, Copies: 2_000, Publish: 6 * time.Second, Partitions: 6, Crew: 3, Batch: 100, Session: 6 * time.Second, Static: true,
		Kills: 2, Shots: Shots{Group: 1, Rebuild: 1}, Edited: 5}
}

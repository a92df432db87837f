//go:build unix

package webhook

import (
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers the proof in two sizes. "early" has somebody in front answer before anything is
// stored; "forgetful" has the store forget at each kill what is done; "leaked" has a forger
// know the secret.
func Room() proof.Room {
	return &proof.Form[Proof, Ledger]{Title: "webhook", Within: 15 * time.Minute, Lasts: func(p Proof) time.Duration { return p.Publish },
		Sizes: Full(), Quick: func(Proof) Proof { return Quick() },
		Faults: []string{plantEarly, plantForgetful, plantLeaked}, Choose: func(p *Proof, c proof.Choice) { p.Seed, p.Plant = c.Seed, c.Plant }, Prove: Proof.Run}
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

//go:build unix

package webhook

import (
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room registers this fault test with the command itest/cmd/proof, in two sizes. The fault "early" puts a proxy in
// front of the receiver that answers before anything is stored. The fault "forgetful" deletes the store's markers at
// each kill. The fault "leaked" gives the attacker the secret.
func Room() proof.Room {
	return &proof.Form[Proof, Ledger]{Title: "webhook", Within: 15 * time.Minute, Lasts: func(p Proof) time.Duration { return p.Publish },
		Sizes: Full(), Quick: func(Proof) Proof { return Quick() },
		Faults: []string{plantEarly, plantForgetful, plantLeaked}, Choose: func(p *Proof, c proof.Choice) { p.Seed, p.Plant = c.Seed, c.Plant }, Prove: Proof.Run}
}

// Full returns the configuration of the large size, which takes about two minutes.
func Full() Proof {
	return Proof{Events: 5_000, Publish: 90 * time.Second, Kills: 30, Rounds: 4, Ends: 5, Restarts: 4, Scale: 5_000}
}

// Quick returns the configuration of the small size, which takes less than a minute. The scaled three days are still
// long enough for the start of a process and of PostgreSQL on a busy machine.
func Quick() Proof {
	return Proof{Events: 800, Publish: 10 * time.Second, Kills: 4, Rounds: 1, Ends: 1, Restarts: 1, Scale: 5_000}
}

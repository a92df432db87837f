//go:build unix

package charge

import (
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room registers this fault test with the command itest/cmd/proof, with its two sizes. The fault "new-key" makes a
// sender use a new key for each attempt. The fault "settle-first" makes a sender record a payment as charged before the
// call. The fault "forgotten" makes a sender repeat calls after the provider has forgotten the calls' key.
func Room() proof.Room {
	return &proof.Form[Proof, Ledger]{Title: "charge", Within: 15 * time.Minute, Lasts: func(p Proof) time.Duration { return p.Publish },
		Sizes: Full(), Quick: func(Proof) Proof { return Quick() },
		Faults: []string{"new-key", "settle-first", "forgotten"}, Choose: func(p *Proof, c proof.Choice) { p.Seed, p.Plant = c.Seed, c.Plant }, Prove: Proof.Run}
}

// Full returns the configuration of the large size, which publishes for about four minutes.
func Full() Proof {
	return Proof{Payments: 20_000, Duplicates: 2_000, Publish: 4 * time.Minute, Consumers: 3, Senders: 3, Naive: 2,
		Kills: 30, Freezes: 10, Rounds: 4, Restarts: 3, Window: 20 * time.Second, Timeout: 2 * time.Second, Lease: 3 * time.Second, Most: 2 * time.Second}
}

// Quick returns the configuration of the small size, which takes less than a minute.
func Quick() Proof {
	return Proof{Payments: 2_000, Duplicates: 200, Publish: 20 * time.Second, Consumers: 3, Senders: 3, Naive: 2,
		Kills: 4, Freezes: 2, Rounds: 1, Restarts: 1, Window: 6 * time.Second, Timeout: time.Second, Lease: 2 * time.Second, Most: 600 * time.Millisecond}
}

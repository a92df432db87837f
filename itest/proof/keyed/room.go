//go:build unix

package keyed

import (
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// PlantForgets is the name of a fault that the run must detect: Redis loses the last second, although it reports that
// it syncs every write.
const PlantForgets = "forgets"

// Room registers this fault test with the command itest/cmd/proof, in two sizes.
func Room() proof.Room {
	return &proof.Form[Proof, Ledger]{Title: "keyed", Within: time.Hour,
		Sizes: Proof{Deliveries: 200_000, Messages: 80_000, Kills: 20, Freezes: 4, Restarts: 4},
		Quick: func(p Proof) Proof {
			return Proof{Deliveries: 20_000, Messages: 8_000, Kills: 4, Freezes: 1, Restarts: 2, EverySecond: p.EverySecond}
		},
		Faults: []string{PlantForgets}, Choose: func(p *Proof, c proof.Choice) { p.Seed, p.Forgets = c.Seed, c.Plant == PlantForgets }, Prove: Proof.Run}
}

//go:build unix

package alerts

import (
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers the proof. "poison" lets a message fail permanently in the healthy run, and
// "unbroken" omits a fault.
func Room() proof.Room {
	return &proof.Form[Proof, Ledger]{Title: "alerts", Within: 20 * time.Minute, Lasts: func(p Proof) time.Duration { return p.Healthy },
		Sizes:  Proof{Scale: 30, Healthy: time.Minute},
		Faults: []string{plantPoison, plantUnbroken}, Choose: func(p *Proof, c proof.Choice) { p.Plant = c.Plant }, Prove: Proof.Run}
}

//go:build unix

package alerts

import (
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room registers this fault test with the command itest/cmd/proof. The fault "poison" makes a message fail permanently
// during the healthy run. The fault "unbroken" leaves out one of the faults that the test should produce.
func Room() proof.Room {
	return &proof.Form[Proof, Ledger]{Title: "alerts", Within: 20 * time.Minute, Lasts: func(p Proof) time.Duration { return p.Healthy },
		Sizes:  Proof{Scale: 30, Healthy: time.Minute},
		Faults: []string{plantPoison, plantUnbroken}, Choose: func(p *Proof, c proof.Choice) { p.Plant = c.Plant }, Prove: Proof.Run}
}

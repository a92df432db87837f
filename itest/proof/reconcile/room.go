//go:build unix

package reconcile

import (
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room registers this fault test with the command itest/cmd/proof. With the fault "effects", `semel reconcile` runs
// without the flag --effects.
func Room() proof.Room {
	return &proof.Form[Proof, Ledger]{Title: "reconcile", Within: time.Hour, Sizes: Proof{Messages: 1_000_000},
		Faults: []string{"effects"}, Choose: func(p *Proof, c proof.Choice) { p.Blind = c.Plant != "" }, Prove: Proof.Run}
}

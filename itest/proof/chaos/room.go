//go:build unix

package chaos

import (
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Chaos registers the fault test with all faults. The fault "settle-first" replaces semel by a plain loop that commits
// the offsets before it applies the messages.
func Chaos() proof.Room {
	return &proof.Form[Proof, Ledger]{Title: "chaos", Within: 20 * time.Minute, Lasts: lasts, Sizes: Proof{For: 2 * time.Minute, Rate: 200},
		Quick: func(p Proof) Proof {
			p.For = time.Minute
			return p
		},
		Faults: []string{proof.SettleFirst}, Choose: choose, Prove: Proof.RunChaos}
}

// Soak registers the fault test without faults. The fault "unreaped" keeps markers that are older than the retention.
func Soak() proof.Room {
	return &proof.Form[Proof, SoakLedger]{Title: "soak", Within: 20 * time.Minute, Lasts: lasts, Sizes: Proof{For: 2 * time.Minute, Rate: 100, Every: 10 * time.Second},
		Quick: func(p Proof) Proof {
			p.For, p.Every = 100*time.Second, 5*time.Second // within 90 s each process has removed markers
			return p
		},
		Faults: []string{unreaped}, Choose: choose, Prove: Proof.RunSoak}
}

func lasts(p Proof) time.Duration { return p.For }

func choose(p *Proof, c proof.Choice) { p.Seed, p.Plant = c.Seed, c.Plant }

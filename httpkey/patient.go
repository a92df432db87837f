package httpkey

import (
	"context"
	"time"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/timing"
)

// patient is a store of keys that is asked for a claim for so long at most, and once more
// where its answer was lost: it gives the same one, and nobody waits for a lease of nobody.
type patient struct{ contract.KeyStore }

// patience is how long after a failure a claim is asked for again.
const patience = 50 * time.Millisecond

// ClaimKey implements contract.KeyStore.
func (p patient) ClaimKey(ctx context.Context, c contract.KeyClaim) (contract.KeyAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	a, err := p.KeyStore.ClaimKey(ctx, c)
	if err != nil && p.Classify(err) != contract.ClassPermanent && timing.Wait(ctx, patience) {
		a, err = p.KeyStore.ClaimKey(ctx, c)
	}
	return a, err
}

// Durable implements contract.KeyDurability, for the store.
func (p patient) Durable() (d contract.Durability, why string) {
	if says, able := p.KeyStore.(contract.KeyDurability); able {
		return says.Durable()
	}
	return contract.Durable, "the store says nothing else"
}

// patientNotes is patient of a store that keeps notes.
type patientNotes struct {
	patient
	contract.RequestStore
}

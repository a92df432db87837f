package httpkey

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// patient is a store of keys that is asked for a claim for so long at most, and once more
// where its answer was lost: it gives the same one, and nobody waits for a lease of nobody.
type patient struct{ keystore.Store }

// patience is how long after a failure a claim is asked for again.
const patience = 50 * time.Millisecond

// ClaimKey implements keystore.Store.
func (p patient) ClaimKey(ctx context.Context, c keystore.Claim) (keystore.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	a, err := p.Store.ClaimKey(ctx, c)
	if err != nil && p.Classify(err) != store.ClassPermanent && timing.Wait(ctx, patience) {
		a, err = p.Store.ClaimKey(ctx, c)
	}
	return a, err
}

// patientNotes is patient of a store that keeps notes.
type patientNotes struct {
	patient
	admin.RequestStore
}

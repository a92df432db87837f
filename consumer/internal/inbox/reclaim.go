package inbox

import (
	"context"
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// Reclaim takes a row anew after a commit whose outcome is unknown. What ended as this
// process wanted it was ended by it.
func (b *Inbox) Reclaim(ctx context.Context, h *ClaimedRow, en *machine.Entry) (store.Verdict, error) {
	if h.retaking == 0 { // the next try asks with the same one
		h.retaking = store.NewToken()
		h.tokens = append(h.tokens, h.retaking) // also if the answer is lost
	}
	next := h.retaking
	from := slices.Clone(h.tokens)
	got, err := b.Leases.Reclaim(ctx, []int64{h.Number}, from, next)
	if err == nil {
		h.retaking = 0
	}
	switch wanted, _ := store.StateInProgress.After(ClaimEvent(en.As)); {
	case err != nil:
		return store.Verdict{}, err
	case got[0].Taken:
		return store.Verdict{}, nil
	case got[0].State == wanted:
		return store.Verdict{Kind: store.Seen, Was: en.As.Outcome(), Known: true}, nil
	}
	return store.Verdict{Kind: store.ClaimLost}, nil
}

func (b *Inbox) Start(ctx context.Context, h *ClaimedRow) (store.Verdict, error) {
	lost, err := b.Leases.Start(ctx, []store.Claim{h.Claim()})
	if err != nil || len(lost) == 0 {
		h.Started = err == nil
		return store.Verdict{}, err
	}
	return store.Verdict{Kind: store.ClaimLost}, nil
}

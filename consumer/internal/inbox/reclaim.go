package inbox

import (
	"context"
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// Reclaim claims a row again after a commit whose outcome is unknown. If the row is in the state that the
// commit would have written, Reclaim treats the commit as successful and returns store.Seen.
func (b *Inbox) Reclaim(ctx context.Context, h *ClaimedRow, en *machine.Entry) (store.Verdict, error) {
	if h.retaking == 0 { // a further attempt uses the same token
		h.retaking = store.NewToken()
		h.tokens = append(h.tokens, h.retaking) // the store may write the token and not respond
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

// Start records that the handler of a row starts. If the claim is lost, Start returns store.ClaimLost.
func (b *Inbox) Start(ctx context.Context, h *ClaimedRow) (store.Verdict, error) {
	lost, err := b.Leases.Start(ctx, []store.Claim{h.Claim()})
	if err != nil || len(lost) == 0 {
		h.Started = err == nil
		return store.Verdict{}, err
	}
	return store.Verdict{Kind: store.ClaimLost}, nil
}

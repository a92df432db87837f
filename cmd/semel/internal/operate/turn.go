package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// TurnLease is how long other processes wait after a replaying process has died, measured by the store's
// clock.
const TurnLease = 10 * time.Second

// Turn is the exclusive right of one process to replay the dead letters of some consumers. End releases the
// right.
type Turn struct {
	store  keystore.Store
	token  store.Token
	keys   []semel.Key
	lease  time.Duration
	stop   context.CancelFunc
	keeper worker.Group
}

// TakeTurn waits until no other process replays dead letters of the given consumers. If TakeTurn has to wait,
// it calls the function waits once, with the first consumer that another process replays. The returned
// context is cancelled, with the cause, when this process loses the turn (its exclusive right). When this
// process has lost the turn, another process may take the turn.
func TakeTurn(ctx context.Context, st keystore.Store, consumers []string, lease time.Duration, waits func(consumer string)) (context.Context, *Turn, error) {
	t := &Turn{store: st, token: store.NewToken(), lease: lease, stop: func() {}}
	told := false
	for _, name := range consumers {
		key := turnOf(name)
		for {
			a, err := st.ClaimKey(ctx, keystore.Claim{Key: key, Token: t.token, Lease: lease, Keep: 2 * lease})
			if err != nil {
				return ctx, nil, errors.Join(fmt.Errorf("consumer %s: take a turn to replay: %w", name, err), t.End())
			}
			if a.State == keystore.Claimed {
				t.keys = append(t.keys, key)
				break
			}
			if !told {
				told = true
				waits(name)
			}
			if err := pause(ctx, min(a.Left+time.Millisecond, lookAgain)); err != nil {
				return ctx, nil, errors.Join(err, t.End())
			}
		}
	}
	kept, lost := context.WithCancelCause(ctx)
	keeping, stop := context.WithCancel(kept)
	t.stop = func() { stop(); lost(nil) }
	t.keeper.Go(func() { t.keep(keeping, lost) })
	return kept, t, nil
}

// turnOf returns the leased key that represents a consumer's turn. The source of this leased key is one that
// no message can have.
func turnOf(consumer string) semel.Key {
	return semel.Key{Consumer: consumer, Source: "\x00semel", ID: "dead letters"}
}

// keep extends the leases until ctx ends.
func (t *Turn) keep(ctx context.Context, lost context.CancelCauseFunc) {
	kept := time.Now()
	for pause(ctx, t.lease/3) == nil {
		for _, key := range t.keys {
			switch err := t.store.ExtendKey(ctx, key, t.token, t.lease); {
			case ctx.Err() != nil:
				return
			case errors.Is(err, store.ErrClaimLost) || err != nil && time.Since(kept) > t.lease:
				lost(fmt.Errorf("consumer %s: the turn to replay is lost: %w", key.Consumer, err))
				return
			case err == nil:
				kept = time.Now()
			}
		}
	}
}

// End releases the turn, unless the process has lost the turn.
func (t *Turn) End() error {
	t.stop()
	t.keeper.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), t.lease)
	defer cancel()
	var errs []error
	for _, key := range t.keys {
		err := t.store.EndKey(ctx, key, t.token, keystore.Ending{Event: keystore.Forget, Keep: t.lease})
		if err != nil && !errors.Is(err, store.ErrClaimLost) {
			errs = append(errs, fmt.Errorf("consumer %s: release the turn to replay: %w", key.Consumer, err))
		}
	}
	t.keys = nil
	return errors.Join(errs...)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

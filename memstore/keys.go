package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// Keys is a contract.KeyStore in memory, the reference of what the others do: it knows
// nothing after its process has ended. Use NewKeys. It is safe for use by several
// goroutines.
type Keys struct {
	store *Store // for its lock, clock and faults
	keys  map[semel.Key]leasedKey
	sweep int // at how many keys those that are over are looked for
}

// leasedKey is a key as it stands.
type leasedKey struct {
	ended              contract.KeyEvent // how the last claim ended; 0: it has not
	token              contract.Token
	first, until, over time.Time
	started, finished  int
	fingerprint        semel.Fingerprint
	result             []byte
}

// NewKeys returns a store without keys. Fail is asked for "key-before" and "key-after",
// before and after something is done.
func NewKeys(options ...Option) *Keys {
	return &Keys{store: New(options...), keys: map[semel.Key]leasedKey{}}
}

// Durable implements contract.KeyDurability.
func (*Keys) Durable() (contract.Durability, string) {
	return contract.Volatile, "keys are in the memory of the process"
}

// Classify implements contract.KeyStore.
func (k *Keys) Classify(err error) contract.Class { return k.store.Classify(err) }

// ClaimKey implements contract.KeyStore.
func (k *Keys) ClaimKey(_ context.Context, c contract.KeyClaim) (a contract.KeyAnswer, err error) {
	if err := c.Fits(); err != nil {
		return contract.KeyAnswer{}, err
	}
	return a, k.do(func(now time.Time) error {
		l, there := k.at(c.Key, now)
		switch {
		case there && l.fingerprint.Conflicts(c.Fingerprint):
			a = l.answer(contract.KeyConflict, now)
		case l.ended == contract.KeyComplete:
			a = l.answer(contract.KeyCompleted, now)
		case l.ended == contract.KeyFail:
			a = l.answer(contract.KeyFailed, now)
		case there && l.token == c.Token && l.ended == 0:
			a = l.answer(contract.KeyClaimed, now)
		case there && (l.token == c.Token || l.ended == 0 && l.until.After(now)):
			a = l.answer(contract.KeyHeld, now)
		default:
			if !there {
				l = leasedKey{first: now, fingerprint: c.Fingerprint}
			}
			l.started++
			l.ended, l.token, l.until, l.over = 0, c.Token, now.Add(c.Lease), now.Add(c.Keep)
			k.put(c.Key, l, now)
			a = l.answer(contract.KeyClaimed, now)
		}
		return nil
	})
}

func (l leasedKey) answer(s contract.KeyState, now time.Time) contract.KeyAnswer {
	a := contract.KeyAnswer{State: s, Started: l.started, Finished: l.finished, Since: now.Sub(l.first), Result: slices.Clone(l.result)}
	if s == contract.KeyClaimed || s == contract.KeyHeld {
		a.Left = max(l.until.Sub(now), 0)
	}
	return a
}

// ExtendKey implements contract.KeyStore.
func (k *Keys) ExtendKey(_ context.Context, key semel.Key, t contract.Token, lease time.Duration) error {
	return k.do(func(now time.Time) error {
		l, there := k.at(key, now)
		if !there || l.ended != 0 || l.token != t {
			return contract.ErrClaimLost
		}
		l.until = now.Add(lease)
		if l.over.Before(l.until) {
			l.over = l.until
		}
		k.keys[key] = l
		return nil
	})
}

// EndKey implements contract.KeyStore.
func (k *Keys) EndKey(_ context.Context, key semel.Key, t contract.Token, e contract.KeyEnding) error {
	if err := e.Fits(); err != nil {
		return err
	}
	return k.do(func(now time.Time) error {
		l, there := k.at(key, now)
		switch {
		case !there || l.token != t:
			return contract.ErrClaimLost
		case l.ended == e.Event:
			return nil // the answer was lost
		case l.ended != 0:
			return contract.ErrClaimLost
		}
		if e.Event == contract.KeyForget {
			delete(k.keys, key)
			return nil
		}
		l.ended, l.over, l.result = e.Event, now.Add(e.Keep), slices.Clone(e.Result)
		if e.Event != contract.KeyAbandon {
			l.finished++
		}
		k.keys[key] = l
		return nil
	})
}

// do does something to the keys in one step, unless a fault is to be.
func (k *Keys) do(f func(now time.Time) error) error {
	if err := k.store.ask("key-before"); err != nil {
		return err
	}
	k.store.mu.Lock()
	err := f(k.store.now())
	k.store.mu.Unlock()
	if err != nil {
		return err
	}
	return k.store.ask("key-after")
}

// at is a key that is kept.
func (k *Keys) at(key semel.Key, now time.Time) (leasedKey, bool) {
	l, there := k.keys[key]
	if there && !l.over.After(now) {
		delete(k.keys, key)
		return leasedKey{}, false
	}
	return l, there
}

// put keeps a key, and forgets those that are over whenever there are twice as many as the
// last time.
func (k *Keys) put(key semel.Key, l leasedKey, now time.Time) {
	k.keys[key] = l
	if len(k.keys) < max(k.sweep, 1024) {
		return
	}
	for key, l := range k.keys {
		if !l.over.After(now) {
			delete(k.keys, key)
		}
	}
	k.sweep = 2 * len(k.keys)
}

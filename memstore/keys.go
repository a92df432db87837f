package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// Keys is a keystore.Store in memory, and the reference for other implementations. The keys are lost when the process
// ends. Create Keys with NewKeys. Keys is safe for concurrent use.
type Keys struct {
	store *Store // for its lock, its clock and the option Fail
	keys  map[semel.Key]sqlform.Key
	sweep int // number of keys at which put removes expired keys
}

// NewKeys returns an empty Keys. The function of the option Fail is called with "key-before" and "key-after",
// before and after each operation.
func NewKeys(options ...Option) *Keys {
	return &Keys{store: New(options...), keys: map[semel.Key]sqlform.Key{}}
}

// Durable implements keystore.Store.
func (*Keys) Durable() (keystore.Durability, string) {
	return keystore.Volatile, "keys are in the memory of the process"
}

// Classify implements keystore.Store.
func (k *Keys) Classify(err error) store.Class { return k.store.Classify(err) }

// ClaimKey implements keystore.Store.
func (k *Keys) ClaimKey(_ context.Context, c keystore.Claim) (a keystore.Answer, err error) {
	if err := c.Fits(); err != nil {
		return keystore.Answer{}, err
	}
	return a, k.withLock(func(now int64) error {
		l, there := k.stateOf(c.Key, now)
		claimed := false
		if a, claimed = l.Claim(&c, there, now); claimed {
			k.put(c.Key, l, now)
		}
		a.Result = slices.Clone(a.Result)
		return nil
	})
}

// ExtendKey implements keystore.Store.
func (k *Keys) ExtendKey(_ context.Context, key semel.Key, t store.Token, lease time.Duration) error {
	return k.withLock(func(now int64) error {
		l, there := k.stateOf(key, now)
		if !there || !l.Extend(t, now, lease) {
			return store.ErrClaimLost
		}
		k.keys[key] = l
		return nil
	})
}

// EndKey implements keystore.Store.
func (k *Keys) EndKey(_ context.Context, key semel.Key, t store.Token, e keystore.Ending) error {
	if err := e.Fits(); err != nil {
		return err
	}
	e.Result = slices.Clone(e.Result)
	return k.withLock(func(now int64) error {
		l, there := k.stateOf(key, now)
		written, lost := l.End(t, &e, now)
		switch {
		case !there || lost:
			return store.ErrClaimLost
		case written && e.Event == keystore.Forget:
			delete(k.keys, key)
		case written:
			k.keys[key] = l
		}
		return nil
	})
}

// SaveRequest implements admin.RequestStore.
func (k *Keys) SaveRequest(_ context.Context, key semel.Key, t store.Token, note []byte) error {
	if err := admin.NoteFits(note); err != nil {
		return err
	}
	return k.withLock(func(now int64) error {
		l, there := k.stateOf(key, now)
		if !there || !l.Note(t, slices.Clone(note)) {
			return store.ErrClaimLost
		}
		k.keys[key] = l
		return nil
	})
}

// AbandonedKeys implements admin.RequestStore. The keys are ordered by their hashes.
func (k *Keys) AbandonedKeys(_ context.Context, of admin.AbandonedKeysQuery) (left admin.AbandonedKeys, err error) {
	return left, k.withLock(func(now int64) error {
		bySum := make(map[string]semel.Key, len(k.keys))
		for key := range k.keys {
			if sum := string(sqlform.KeySum(key)); sum > string(of.After) {
				bySum[sum] = key
			}
		}
		for i, sum := range slices.Sorted(maps.Keys(bySum)) {
			if i == of.Most {
				break
			}
			key := bySum[sum]
			l, there := k.stateOf(key, now)
			if quiet, is := l.Left(of.Quiet, now); there && is && key.Consumer == of.Consumer {
				left.Keys = append(left.Keys, admin.AbandonedKey{Key: key, Note: slices.Clone(l.Result), Started: l.Started, Quiet: quiet})
			}
			if left.Next = nil; i+1 == of.Most && i+1 < len(bySum) {
				left.Next = []byte(sum)
			}
		}
		return nil
	})
}

// withLock locks the store and calls the function f. If the function of the option Fail returns an error, withLock
// returns that error.
func (k *Keys) withLock(f func(now int64) error) error {
	if err := k.store.ask("key-before"); err != nil {
		return err
	}
	k.store.mu.Lock()
	err := f(k.store.now().UnixMicro())
	k.store.mu.Unlock()
	if err != nil {
		return err
	}
	return k.store.ask("key-after")
}

// stateOf returns the state of a key. If the key does not exist or has expired, the bool is false.
func (k *Keys) stateOf(key semel.Key, now int64) (sqlform.Key, bool) {
	l, there := k.keys[key]
	if there && l.Over <= now {
		delete(k.keys, key)
		return sqlform.Key{}, false
	}
	return l, there
}

// put stores a key. Each time the number of keys has doubled, put removes expired keys.
func (k *Keys) put(key semel.Key, l sqlform.Key, now int64) {
	k.keys[key] = l
	if len(k.keys) < max(k.sweep, 1024) {
		return
	}
	for key, l := range k.keys {
		if l.Over <= now {
			delete(k.keys, key)
		}
	}
	k.sweep = 2 * len(k.keys)
}

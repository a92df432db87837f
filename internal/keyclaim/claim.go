// Package keyclaim keeps the claim of a leased key while a call is made under it: its lease is
// extended, whoever calls learns when it may be over, and its end is recorded. It is the same
// for consumers and for package leasedkey.
package keyclaim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// Claim is a leased key that is this process's, for now. Set its fields before Hold.
type Claim struct {
	Store keystore.Store
	Key   semel.Key
	Token store.Token
	// Lease is how long it lasts when it was given or extended.
	Lease time.Duration
	// Unheeded says that the call goes on when the store does not answer.
	Unheeded bool
	// Refused, if not nil, is called each time that the store has not recorded how the claim
	// ends, with what it said and how long it is left alone then.
	Refused func(err error, wait time.Duration)

	mutex sync.Mutex
	until time.Time          // when the lease surely lasts no longer; guarded by mutex
	timer *time.Timer        // extends; nil: nothing is extended any more; guarded by mutex
	life  context.Context    // of the questions to the store; set before timer
	end   context.CancelFunc // ends life
	lost  func(error)        // is told that the lease is over; guarded by mutex
}

// extensions is how often in a lease it is extended.
const extensions = 3

// Hold begins to extend the lease, for which the store was asked at that time and which it
// said to last for so long.
func (c *Claim) Hold(asked time.Time, left time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.until = asked.Add(min(left, c.Lease))
	c.life, c.end = context.WithCancel(context.Background())
	c.timer = time.AfterFunc(max(0, min(left/extensions, c.Lease/extensions, time.Until(c.until))), c.extend)
}

// Until is when the lease is over, as far as is known.
func (c *Claim) Until() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.until
}

// Holds reports whether the lease still lasts, as far as is known, and has lost called once
// when it does no more: with store.ErrClaimLost where the store says that the claim is
// another's, otherwise with what kept it from being extended. Nil: nobody is told any more.
func (c *Claim) Holds(lost func(error)) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.lost = lost
	return c.timer != nil && time.Now().Before(c.until)
}

// LetGo extends the lease no longer. A second call does nothing.
func (c *Claim) LetGo() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.letGo()
}

// letGo is LetGo with the mutex held.
func (c *Claim) letGo() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
		c.end()
	}
}

// extend extends once, and comes again after a third of the lease, or when it is over. No
// lease is taken to last for longer than the store has said.
func (c *Claim) extend() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(c.life, min(c.Lease/extensions, max(0, time.Until(c.Until()))))
	defer cancel()
	err := c.Store.ExtendKey(ctx, c.Key, c.Token, c.Lease)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	another := errors.Is(err, store.ErrClaimLost)
	switch {
	case c.timer == nil: // it has ended meanwhile
		return
	case err == nil:
		c.until = began.Add(c.Lease)
	case !another && c.Unheeded:
		c.until = time.Now().Add(c.Lease)
	case another || !time.Now().Before(c.until):
		c.letGo()
		if !another {
			err = fmt.Errorf("the lease is over and could not be extended: %w", err)
		}
		if c.lost != nil {
			c.lost(err)
		}
		return
	}
	c.timer.Reset(max(0, min(c.Lease/extensions-time.Since(began), time.Until(c.until))))
}

// Waits between the tries to record an end.
const (
	firstWait = 20 * time.Millisecond
	mostWait  = time.Second
)

// End records how the claim ends and lets go of it. It asks again while the store does not
// answer and ctx lasts, and extends the lease meanwhile. The error is store.ErrClaimLost
// where the claim is another's, or what the store said last: the end may be recorded then,
// unless that error is permanent.
func (c *Claim) End(ctx context.Context, e keystore.Ending) error {
	defer c.LetGo()
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		err := c.Store.EndKey(ctx, c.Key, c.Token, e)
		if err == nil || errors.Is(err, store.ErrClaimLost) || c.Store.Classify(err) == store.ClassPermanent || ctx.Err() != nil {
			return err
		}
		if c.Refused != nil {
			c.Refused(err, wait)
		}
		if !timing.Wait(ctx, wait) {
			return err
		}
	}
}

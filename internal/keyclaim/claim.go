// Package keyclaim manages the claim of a leased key while a call is made. The package extends the lease, notifies the
// caller when the claim may be lost, and records the outcome of the claim. Consumers and package leasedkey use package
// keyclaim.
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

// Claim is the claim of this process on a leased key. Set the exported fields before Hold.
type Claim struct {
	Store keystore.Store
	Key   semel.Key
	Token store.Token
	// Lease is the duration for which the claim is granted and extended.
	Lease time.Duration
	// Unheeded means that the call continues even if the store does not respond.
	Unheeded bool
	// Refused, if not nil, is called after each failed attempt to record the outcome of the claim. The arguments of
	// Refused are the store's error and the delay before the next attempt.
	Refused func(err error, wait time.Duration)

	mutex sync.Mutex
	until time.Time          // when the lease ends at the latest; guarded by mutex
	timer *time.Timer        // runs extend; nil after LetGo; guarded by mutex
	life  context.Context    // context of ExtendKey; set before timer
	end   context.CancelFunc // ends life
	lost  func(error)        // called once when the claim is lost; guarded by mutex
}

// extensions is the number of extensions of a lease within its duration.
const extensions = 3

// Hold starts to extend the lease. The parameter asked is the time of the request to the store. The parameter left is
// the remaining lease that the store returned.
func (c *Claim) Hold(asked time.Time, left time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.until = asked.Add(min(left, c.Lease))
	c.life, c.end = context.WithCancel(context.Background())
	c.timer = time.AfterFunc(max(0, min(left/extensions, c.Lease/extensions, time.Until(c.until))), c.extend)
}

// Until returns when the lease ends, according to the responses of the store so far.
func (c *Claim) Until() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.until
}

// Holds reports whether the lease is still valid, according to the responses of the store so far. When the claim is
// lost, the function lost is called once. If another process has the claim, the argument of lost is store.ErrClaimLost.
// In other cases, the argument is the reason why the lease could not be extended. A new call of Holds replaces the
// function lost of the previous call; nil removes that function.
func (c *Claim) Holds(lost func(error)) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.lost = lost
	return c.timer != nil && time.Now().Before(c.until)
}

// LetGo stops extending the lease. If LetGo is called twice, the second call has no effect.
func (c *Claim) LetGo() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.letGo()
}

// letGo does the same as LetGo, for a caller that has locked the mutex.
func (c *Claim) letGo() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
		c.end()
	}
}

// extend extends the lease once, and schedules the next extension: after a third of the lease, or at the end of the
// lease if that is earlier. The process never assumes a longer lease than the store has granted.
func (c *Claim) extend() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(c.life, min(c.Lease/extensions, max(0, time.Until(c.Until()))))
	defer cancel()
	err := c.Store.ExtendKey(ctx, c.Key, c.Token, c.Lease)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	another := errors.Is(err, store.ErrClaimLost)
	switch {
	case c.timer == nil: // LetGo was called in the meantime
		return
	case err == nil:
		c.until = began.Add(c.Lease)
	case !another && c.Unheeded:
		c.until = time.Now().Add(c.Lease)
	case another || !time.Now().Before(c.until):
		c.letGo()
		if !another {
			err = fmt.Errorf("the lease ended and could not be extended: %w", err)
		}
		if c.lost != nil {
			c.lost(err)
		}
		return
	}
	c.timer.Reset(max(0, min(c.Lease/extensions-time.Since(began), time.Until(c.until))))
}

// The delays between attempts to record the end of a claim.
const (
	firstWait = 20 * time.Millisecond
	mostWait  = time.Second
)

// End records how the claim ends, and stops extending the lease. End tries again until the store responds or ctx ends,
// and extends the lease until then. If another process has the claim, End returns store.ErrClaimLost. After any other
// failure, End returns the last error of the store; the end may still have been recorded, unless the error is
// permanent.
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

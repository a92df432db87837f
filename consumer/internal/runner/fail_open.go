package runner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/consumer/internal/report"
)

// How a store of keys that is down is asked while messages are applied without keys.
const (
	// patienceOpen is how long a message waits for an answer of the store before it is applied without
	// a key.
	patienceOpen = 2 * time.Second
	// askOpen is how long the store is not asked again.
	askOpen = time.Second
)

// FailOpenPath decides whether a message is applied without a key because the store of the keys is
// down. That is possible only for effects that are idempotent by nature (KeyPolicy.FailOpen).
type FailOpenPath struct {
	config *Options
	// applied counts the messages that were applied without a key.
	applied atomic.Int64

	mutex sync.Mutex
	// since is when the store stopped answering, zero while it answers. before is the value of applied
	// at that time. Guarded by mutex.
	since  time.Time
	before int64
	// next is when the store is asked again, why its last error. Guarded by mutex.
	next time.Time
	why  error
}

// NewFailOpenPath returns the FailOpenPath of a consumer over keys.
func NewFailOpenPath(o *Options) *FailOpenPath { return &FailOpenPath{config: o} }

// Count returns how many messages were applied without a key; 0 for a nil FailOpenPath.
func (d *FailOpenPath) Count() int64 {
	if d == nil {
		return 0
	}
	return d.applied.Load()
}

// open reports whether messages may be applied without a key.
func (d *FailOpenPath) open() bool { return d.config.FailOpen != "" }

// within returns the context of one question to the store.
func (d *FailOpenPath) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if !d.open() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, patienceOpen)
}

// leads returns the store's last error if a message is to be applied without a key and without asking
// the store. leads returns nil if the store is to be asked: while it is down, one message in each
// askOpen asks it.
func (d *FailOpenPath) leads() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	now := time.Now()
	if d.since.IsZero() {
		return nil
	}
	if now.Before(d.next) {
		return d.why
	}
	d.next = now.Add(askOpen)
	return nil
}

// after reports whether a message is applied without a key after the store returned err. ctx is the
// context of the flight, from which that of the question was derived; if it has ended, after returns
// false.
func (d *FailOpenPath) after(ctx context.Context, err error) bool {
	if !d.open() || ctx.Err() != nil {
		return false
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	now := time.Now()
	d.next, d.why = now.Add(askOpen), err
	if d.since.IsZero() {
		d.since, d.before = now, d.applied.Load()
		d.config.Logger.Warn("the store of the keys does not work; messages are applied without a key, and copies of them again, until it does",
			"consumer", d.config.Consumer, "bearable", d.config.FailOpen, "error", report.Cause(err))
	}
	return true
}

// works notes that the store has answered.
func (d *FailOpenPath) works() {
	if !d.open() {
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.since.IsZero() {
		return
	}
	d.config.Logger.Info("the store of the keys works again", "consumer", d.config.Consumer, "after", report.Rounded(time.Since(d.since)), "applied_without_a_key", d.applied.Load()-d.before)
	d.since, d.why = time.Time{}, nil
}

// Reasons returns the reason for Consumer.Ready while messages are applied without a key, otherwise
// nil.
func (d *FailOpenPath) Reasons() []string {
	if d == nil {
		return nil
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.since.IsZero() {
		return nil
	}
	return []string{fmt.Sprintf("store: %s; messages are applied without a key", report.Cause(d.why))}
}

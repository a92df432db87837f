package runner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/consumer/internal/report"
)

// How a store of keys that is down is asked where messages are applied without it.
const (
	// patienceOpen is how long one answer is waited for: the message behind it is applied
	// all the same.
	patienceOpen = 2 * time.Second
	// askOpen is how long nobody asks again.
	askOpen = time.Second
)

// FailOpenPath is the way past a store of keys that is down, for effects that are idempotent by
// nature (KeyPolicy.FailOpen). For other effects the detour is closed.
type FailOpenPath struct {
	config *Options
	// applied are all that went this way.
	applied atomic.Int64

	mutex sync.Mutex
	// since is when the store stopped answering, zero while it answers; before is what
	// applied was then. Guarded by mutex.
	since  time.Time
	before int64
	// next is when it is asked again, and why what it said last. Guarded by mutex.
	next time.Time
	why  error
}

// NewFailOpenPath returns the way past a store of keys.
func NewFailOpenPath(o *Options) *FailOpenPath { return &FailOpenPath{config: o} }

// Count is how many messages went this way. A nil detour has none.
func (d *FailOpenPath) Count() int64 {
	if d == nil {
		return 0
	}
	return d.applied.Load()
}

// open reports whether there is such a way.
func (d *FailOpenPath) open() bool { return d.config.FailOpen != "" }

// within is the context of one question to the store.
func (d *FailOpenPath) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if !d.open() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, patienceOpen)
}

// leads returns why a message goes this way without asking: what the store said a moment ago.
// It is nil if the store is to be asked, which one message in a while does of one that is down.
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

// after reports whether a message goes this way after a question that ended with an error. ctx
// is what the question was given time from: if it has ended nobody waits for an answer.
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

// Reasons says that messages go this way, and why, if they do.
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

package runner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/consumer/internal/report"
)

// Times for requests to a key store that is down, for a consumer that applies messages without keys during that time
// (fail open).
const (
	// patienceOpen is how long a message waits for a response of the store. After patienceOpen, the message is applied
	// without a key.
	patienceOpen = 2 * time.Second
	// askOpen is the interval between requests to a store that is down.
	askOpen = time.Second
)

// FailOpenPath decides whether a message is applied without a key because the key store is down. Messages may be
// applied without a key only if their effects are idempotent by nature (KeyPolicy.FailOpen).
type FailOpenPath struct {
	config *Options
	// applied counts the messages that were applied without a key.
	applied atomic.Int64

	mutex sync.Mutex
	// The field since is the time when the store stopped responding, or zero while the store responds. The field before
	// is the value of applied at the time since. The mutex guards since and before.
	since  time.Time
	before int64
	// The field next is the time of the next request to the store. The field why is the last error of the store. The
	// mutex guards next and why.
	next time.Time
	why  error
}

// NewFailOpenPath returns the FailOpenPath of a consumer with leased keys.
func NewFailOpenPath(o *Options) *FailOpenPath { return &FailOpenPath{config: o} }

// Count returns the number of messages that were applied without a key. For a nil FailOpenPath, Count returns
// 0.
func (d *FailOpenPath) Count() int64 {
	if d == nil {
		return 0
	}
	return d.applied.Load()
}

// The method open reports whether the policy allows messages to be applied without a key (fail open).
func (d *FailOpenPath) open() bool { return d.config.FailOpen != "" }

// The method within returns the context for one request to the store.
func (d *FailOpenPath) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if !d.open() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, patienceOpen)
}

// leads returns the store's last error if the store is down and a message must be applied without a key and without a
// request to the store. If a request must be made, leads returns nil. While the store is down, one request is made per
// askOpen.
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

// The method after reports whether a message is applied without a key after the store returned err. The parameter ctx
// is the context of the attempt, from which the context of the request was derived. If ctx has ended, the result is
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

// works records that the store has responded.
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

// Reasons returns the reason for Consumer.Ready while messages are applied without a key. If no message is applied
// without a key, Reasons returns nil.
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

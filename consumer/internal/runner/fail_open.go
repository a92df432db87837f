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
	// downSince is the time when the store stopped responding, or zero while the store responds. appliedBefore is the
	// value of the field applied at the time downSince. The mutex guards downSince and appliedBefore.
	downSince     time.Time
	appliedBefore int64
	// nextRequest is the time of the next request to the store. lastErr is the last error of the store. The mutex
	// guards nextRequest and lastErr.
	nextRequest time.Time
	lastErr     error
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

// isAllowed reports whether the policy allows messages to be applied without a key (fail open).
func (d *FailOpenPath) isAllowed() bool { return d.config.FailOpen != "" }

// requestContext returns the context for one request to the store.
func (d *FailOpenPath) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if !d.isAllowed() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, patienceOpen)
}

// downError returns the store's last error if the store is down and a message must be applied without a key and without
// a request to the store. If a request must be made, downError returns nil. While the store is down, one request is
// made per askOpen.
func (d *FailOpenPath) downError() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	now := time.Now()
	if d.downSince.IsZero() {
		return nil
	}
	if now.Before(d.nextRequest) {
		return d.lastErr
	}
	d.nextRequest = now.Add(askOpen)
	return nil
}

// canApplyWithoutKey reports whether a message is applied without a key after the store returned err. The parameter ctx
// is the context of the attempt, from which the context of the request was derived. If ctx has ended, the result is
// false.
func (d *FailOpenPath) canApplyWithoutKey(ctx context.Context, err error) bool {
	if !d.isAllowed() || ctx.Err() != nil {
		return false
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	now := time.Now()
	d.nextRequest, d.lastErr = now.Add(askOpen), err
	if d.downSince.IsZero() {
		d.downSince, d.appliedBefore = now, d.applied.Load()
		d.config.Logger.Warn("the store of the keys does not work; messages are applied without a key, and copies of them again, until it does",
			"consumer", d.config.Consumer, "bearable", d.config.FailOpen, "error", report.Cause(err))
	}
	return true
}

// recordResponse records that the store has responded.
func (d *FailOpenPath) recordResponse() {
	if !d.isAllowed() {
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.downSince.IsZero() {
		return
	}
	d.config.Logger.Info("the store of the keys works again", "consumer", d.config.Consumer, "after", report.Rounded(time.Since(d.downSince)), "applied_without_a_key", d.applied.Load()-d.appliedBefore)
	d.downSince, d.lastErr = time.Time{}, nil
}

// Reasons returns the reason for Consumer.Ready while messages are applied without a key. If no message is applied
// without a key, Reasons returns nil.
func (d *FailOpenPath) Reasons() []string {
	if d == nil {
		return nil
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.downSince.IsZero() {
		return nil
	}
	return []string{fmt.Sprintf("store: %s; messages are applied without a key", report.Cause(d.lastErr))}
}

package hook

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// last is when something happened last.
type last struct {
	mu sync.Mutex // guards at
	at time.Time  // zero: never
}

func (l *last) note() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Now()
}

// Within reports whether it happened, and not longer ago than d.
func (l *last) Within(d time.Duration, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.at.IsZero() && now.Sub(l.at) <= d
}

// LastAnswer notes when a broker last answered.
type LastAnswer struct{ last }

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (a *LastAnswer) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e kgo.BrokerE2E) {
	if e.Err() == nil {
		a.note()
	}
}

// Cancelled is what a fetch returns at its context's end with nothing taken: the
// client waits for brokers that are away without an error of its own. Silence is
// how long none may have answered for the brokers to count as there.
func (a *LastAnswer) Cancelled(ctx context.Context, silence time.Duration) error {
	if a.Within(silence, time.Now()) {
		return nil
	}
	return ctx.Err()
}

// UnansweredCommits notes when a commit was last given up.
type UnansweredCommits struct{ last }

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (u *UnansweredCommits) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	if kmsg.Key(key) == kmsg.OffsetCommit && e.Err() != nil {
		u.note()
	}
}

// LastDial remembers why the last connection failed.
type LastDial struct {
	mu  sync.Mutex // guards err
	err error
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (d *LastDial) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// Err is why the last connection failed; nil if it did not.
func (d *LastDial) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

var (
	_ kgo.HookBrokerE2E     = (*LastAnswer)(nil)
	_ kgo.HookBrokerE2E     = (*UnansweredCommits)(nil)
	_ kgo.HookBrokerConnect = (*LastDial)(nil)
)

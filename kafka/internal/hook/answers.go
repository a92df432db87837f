package hook

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// last stores the time of the last event.
type last struct {
	mu sync.Mutex // guards at
	at time.Time  // zero if there was no event
}

func (l *last) note() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Now()
}

// Within reports whether the event happened within the time d before now.
func (l *last) Within(d time.Duration, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.at.IsZero() && now.Sub(l.at) <= d
}

// LastAnswer stores the time of a broker's last answer.
type LastAnswer struct{ last }

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (a *LastAnswer) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e kgo.BrokerE2E) {
	if e.Err() == nil {
		a.note()
	}
}

// Cancelled returns the error of a fetch whose context ended without a record. The client itself returns no error while
// it waits for unreachable brokers. Cancelled counts the brokers as unreachable if no broker has answered for the time
// silence.
func (a *LastAnswer) Cancelled(ctx context.Context, silence time.Duration) error {
	if a.Within(silence, time.Now()) {
		return nil
	}
	return ctx.Err()
}

// UnansweredCommits stores the time of the last commit without an answer.
type UnansweredCommits struct{ last }

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (u *UnansweredCommits) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	if kmsg.Key(key) == kmsg.OffsetCommit && e.Err() != nil {
		u.note()
	}
}

// LastDial stores the error of the last connection attempt.
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

// Err returns the error of the last connection attempt; nil if the attempt succeeded.
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

package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// publication is what has one record, however often a handler runs: a message on its way
// to a topic.
type publication struct {
	identity semel.Key
	topic    string
}

// sending is a record on its way. A second call for the same publication waits for the
// first one's record, and writes no copy.
type sending struct {
	ctx    context.Context
	cancel context.CancelFunc
	// before is how many requests to write were begun when it was handed over.
	before uint64
	// since is when that was.
	since time.Time
	done  chan struct{}
	err   error // read after done
}

// answer says how it ended.
func (s *sending) answer(err error) {
	s.err = err
	s.cancel()
	close(s.done)
}

// ended reports whether it has ended.
func (s *sending) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// unsent reports whether it was taken back before it was sent. Read after done.
func (s *sending) unsent() bool { return errors.Is(s.err, context.Canceled) }

// sendings are those under way, and those that ended while nobody waited for them.
type sendings struct {
	mu  sync.Mutex // guards all
	all map[publication]*sending
}

const (
	// mostSendings bounds what is remembered of publications that nobody waits for.
	mostSendings = 10_000
	// sendingAge is for how long the end of one is remembered.
	sendingAge = 10 * time.Minute
)

// begin finds the sending of a publication, or makes one.
func (s *sendings) begin(life context.Context, which publication, before uint64, now time.Time) (one *sending, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one = s.all[which]; one != nil && (!one.ended() || one.err == nil && now.Sub(one.since) < sendingAge) {
		return one, false
	}
	if len(s.all) >= mostSendings {
		s.forgetEnded()
	}
	one = &sending{before: before, since: now, done: make(chan struct{})}
	one.ctx, one.cancel = context.WithCancel(life)
	s.all[which] = one
	return one, true
}

// forgetEnded forgets what has ended. Called with mu held.
func (s *sendings) forgetEnded() {
	for which, one := range s.all {
		if one.ended() {
			delete(s.all, which)
		}
	}
}

// forget forgets a sending whose end was told.
func (s *sendings) forget(which publication, one *sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[which] == one {
		delete(s.all, which)
	}
}

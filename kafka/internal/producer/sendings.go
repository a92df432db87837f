package producer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Publication is a message on its way to a topic. It has one record, however often its handler
// runs.
type Publication struct {
	Identity semel.Key
	Topic    string
}

// Pending is the outcome of a record on its way.
type Pending struct {
	// Done is closed when there is an outcome; Err is read after that.
	Done chan struct{}
	Err  error
}

// NewPending returns an outcome that is not known yet.
func NewPending() *Pending { return &Pending{Done: make(chan struct{})} }

// Answer says what the outcome is. It is called once.
func (p *Pending) Answer(err error) {
	p.Err = err
	close(p.Done)
}

// Ended reports whether there is an outcome.
func (p *Pending) Ended() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Sending is a record on its way. A second call for the same publication waits for the
// first one's record, and writes no copy.
type Sending struct {
	*Pending
	Ctx    context.Context
	Cancel context.CancelFunc
	// Before is how many requests to write were begun when it was handed over.
	Before uint64
	// since is when that was.
	since time.Time
}

// Answer says what the outcome is, and ends Ctx.
func (s *Sending) Answer(err error) {
	s.Cancel()
	s.Pending.Answer(err)
}

// Unsent reports whether it was taken back before it was sent. Read after Done.
func (s *Sending) Unsent() bool { return errors.Is(s.Err, context.Canceled) }

// Sendings are the records under way, and those that were answered while no call waited for them.
type Sendings struct {
	mu  sync.Mutex // guards all
	all map[Publication]*Sending
}

const (
	// mostSendings bounds what is remembered of publications that nobody waits for.
	mostSendings = 10_000
	// sendingAge is for how long the end of one is remembered.
	sendingAge = 10 * time.Minute
)

// NewSendings returns an empty list.
func NewSendings() *Sendings { return &Sendings{all: map[Publication]*Sending{}} }

// Begin finds the sending of a publication, or makes one.
func (s *Sendings) Begin(life context.Context, which Publication, before uint64, now time.Time) (one *Sending, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one = s.all[which]; one != nil && (!one.Ended() || one.Err == nil && now.Sub(one.since) < sendingAge) {
		return one, false
	}
	if len(s.all) >= mostSendings {
		s.forgetEnded()
	}
	one = &Sending{Pending: NewPending(), Before: before, since: now}
	one.Ctx, one.Cancel = context.WithCancel(life)
	s.all[which] = one
	return one, true
}

// forgetEnded forgets what has ended. Called with mu held.
func (s *Sendings) forgetEnded() {
	for which, one := range s.all {
		if one.Ended() {
			delete(s.all, which)
		}
	}
}

// Forget forgets a sending whose outcome a call returns.
func (s *Sendings) Forget(which Publication, one *Sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[which] == one {
		delete(s.all, which)
	}
}

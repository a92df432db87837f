package producer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Publication identifies a message to be published to a topic. Publication has one record, however often its
// handler runs.
type Publication struct {
	Identity semel.Key
	Topic    string
}

// Pending is the outcome of a record in progress.
type Pending struct {
	// Done is closed when the outcome is known. Err may be read after that.
	Done chan struct{}
	Err  error
}

// NewPending returns an outcome that is not known yet.
func NewPending() *Pending { return &Pending{Done: make(chan struct{})} }

// Answer sets the outcome. Answer is called once.
func (p *Pending) Answer(err error) {
	p.Err = err
	close(p.Done)
}

// Ended reports whether the outcome is known.
func (p *Pending) Ended() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Sending is a record in progress. A second call for the same publication waits for the first call's record and writes
// no copy.
type Sending struct {
	*Pending
	Ctx    context.Context
	Cancel context.CancelFunc
	// Before is the number of write requests that had begun when the record was passed to the client.
	Before uint64
	// since is the time of that.
	since time.Time
}

// Answer sets the outcome, and ends Ctx.
func (s *Sending) Answer(err error) {
	s.Cancel()
	s.Pending.Answer(err)
}

// Unsent reports whether the record was cancelled before it was sent. Valid after Done.
func (s *Sending) Unsent() bool { return errors.Is(s.Err, context.Canceled) }

// Sendings contains the records in progress, and the answered ones whose outcome no call has returned yet.
type Sendings struct {
	mu  sync.Mutex // guards all
	all map[Publication]*Sending
}

const (
	// mostSendings limits the number of publications without a waiting call.
	mostSendings = 10_000
	// sendingAge is how long the outcome of a publication is kept.
	sendingAge = 10 * time.Minute
)

// NewSendings returns an empty list.
func NewSendings() *Sendings { return &Sendings{all: map[Publication]*Sending{}} }

// Begin returns the sending of a publication, or creates one.
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

// forgetEnded removes outcomes that are too old. The caller holds mu.
func (s *Sendings) forgetEnded() {
	for which, one := range s.all {
		if one.Ended() {
			delete(s.all, which)
		}
	}
}

// Forget removes a sending whose outcome a call returns.
func (s *Sendings) Forget(which Publication, one *Sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[which] == one {
		delete(s.all, which)
	}
}

package producer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Publication identifies the publication of a message to a topic. Only one record is written for a
// Publication, even if the handler runs several times.
type Publication struct {
	Identity semel.Key
	Topic    string
}

// Pending is the outcome of a record that is being written.
type Pending struct {
	// Done is closed when the outcome is known. Err is valid after Done is closed.
	Done chan struct{}
	Err  error
}

// NewPending returns a Pending without an outcome.
func NewPending() *Pending { return &Pending{Done: make(chan struct{})} }

// Answer sets the outcome. Answer must be called once.
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

// Sending is a record that is being written. A second call for the same publication waits for the record of
// the first call and writes no copy.
type Sending struct {
	*Pending
	Ctx    context.Context
	Cancel context.CancelFunc
	// Before is the number of write requests that had begun when the client got the record.
	Before uint64
	// The time when the client got the record.
	since time.Time
}

// Answer sets the outcome and ends Ctx.
func (s *Sending) Answer(err error) {
	s.Cancel()
	s.Pending.Answer(err)
}

// Unsent reports whether the record was cancelled before it was sent. Call Unsent only after Done is closed.
func (s *Sending) Unsent() bool { return errors.Is(s.Err, context.Canceled) }

// Sendings contains the records that are being written, and the outcomes that no call of Publish has returned
// yet.
type Sendings struct {
	mu  sync.Mutex // guards all
	all map[Publication]*Sending
}

const (
	// The maximum number of publications for which no call waits.
	mostSendings = 10_000
	// The time for which an outcome is kept.
	sendingAge = 10 * time.Minute
)

// NewSendings returns an empty Sendings.
func NewSendings() *Sendings { return &Sendings{all: map[Publication]*Sending{}} }

// Begin returns the current sending of a publication: the attempt to write its record, which may have ended already. If
// the publication has no sending, Begin creates a sending, and the result begun is true.
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

// forgetEnded removes the sendings whose outcome is known. The caller holds mu.
func (s *Sendings) forgetEnded() {
	for which, one := range s.all {
		if one.Ended() {
			delete(s.all, which)
		}
	}
}

// Forget removes a sending. A call of Publish that returns the outcome must call Forget.
func (s *Sendings) Forget(which Publication, one *Sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[which] == one {
		delete(s.all, which)
	}
}

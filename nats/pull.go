package nats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/source"
)

// pull sends a pull request, unless one is open. The source asks only for what the consumer has asked for, because the
// hold time of a message begins when the server sends the message.
func (s *Source) pull(most source.Bound) {
	if paused, _, _ := s.ledger.state(time.Now()); paused {
		return
	}
	s.mu.Lock()
	current, alone := s.session, s.oneByOne
	free := !s.pulling && !s.closed && current != nil
	s.pulling = s.pulling || free
	s.mu.Unlock()
	if !free {
		return
	}
	batch, open, bytes := current.request(most, alone)
	ctx, cancel := context.WithTimeout(s.life, open)
	pulled := time.Now()
	messages, err := current.consumer.Fetch(batch, jetstream.FetchContext(ctx), jetstream.FetchMaxBytes(bytes))
	if err != nil {
		cancel()
		s.pullEnded(fmt.Errorf("nats: pull request to consumer %s of stream %s: %w", s.config.Consumer, s.config.Stream, err), false)
		return
	}
	s.background.Go(func() {
		defer cancel()
		s.receive(current, messages, pulled, open, alone)
	})
}

// request returns the size of a pull request: the number of messages, the time for which the request is open, and the
// number of bytes. If alone is true, the request is for one message of any size.
func (v *session) request(most source.Bound, alone bool) (batch int, open time.Duration, bytes int) {
	limits := v.info.Config
	batch, open, bytes = max(1, most.Messages), min(pullFor, v.hold()/4), int(min(max(1, most.Bytes), math.MaxInt32))
	if alone {
		batch, bytes = 1, math.MaxInt32
	}
	if limits.MaxAckPending > 0 {
		batch = min(batch, limits.MaxAckPending)
	}
	if limits.MaxRequestBatch > 0 {
		batch = min(batch, limits.MaxRequestBatch)
	}
	if limits.MaxRequestExpires > 0 {
		open = min(open, limits.MaxRequestExpires)
	}
	if limits.MaxRequestMaxBytes > 0 {
		bytes = min(bytes, limits.MaxRequestMaxBytes)
	}
	return batch, open, bytes
}

// receive adds the messages of a pull request to the ledger.
func (s *Source) receive(v *session, messages jetstream.MessageBatch, pulled time.Time, open time.Duration, alone bool) {
	n := 0
	for raw := range messages.Messages() {
		about, err := raw.Metadata()
		if err != nil {
			continue // no message of a stream; only the consumer's own server can send it
		}
		n++
		if !s.ledger.add(v.lane, raw, about, pulled) {
			s.lose(v) // the message comes again, in the next epoch
		}
		s.noteAnswer()
		s.rouse()
	}
	err := messages.Error()
	switch {
	case s.life.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		err = nil
	case errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, nats.ErrNoResponders):
		s.doubt()
	}
	// A request that ended early without a message has no room for the next message.
	noRoom := n == 0 && err == nil && time.Since(pulled) < open/2
	if err != nil {
		err = s.explain(err)
	} else if noRoom && alone {
		err = permanent("nats: the next message is larger than a pull request to consumer %s of stream %s may be; raise the limit: nats consumer edit %[2]s %[1]s --max-pull-bytes=BYTES", s.config.Consumer, s.config.Stream)
	}
	s.pullEnded(err, noRoom)
}

func (s *Source) pullEnded(err error, oneByOne bool) {
	s.mu.Lock()
	s.pulling, s.oneByOne = false, oneByOne
	s.mu.Unlock()
	s.addFault(err)
}

// probe asks the server for an answer, so that Fetch can tell whether the server is reachable although there are no
// messages.
func (s *Source) probe(ctx context.Context) {
	probing, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := s.connection().FlushWithContext(probing)
	switch {
	case err == nil:
		s.noteAnswer()
	case ctx.Err() == nil:
		s.addFault(s.explain(err))
	}
}

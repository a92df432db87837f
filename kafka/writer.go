package kafka

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Dead letters have a client of their own, made with the first of them, since
// it may have to be replaced: a client that was not given an id to produce
// with, because its user may write to no topic, does not ask again.

// writerOptions: writes are idempotent and acknowledged by all replicas, which
// is the client's default, and nothing here can weaken it.
func (s *Source) writerOptions() []kgo.Opt {
	return append(s.common(), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchMaxBytes(mostRecord+1<<20))
}

// openWriter returns the client for dead letters. Called with Source.mu held.
func (s *Source) openWriter() (*kgo.Client, error) {
	if s.closed {
		return nil, kgo.ErrClientClosed
	}
	if s.writer == nil {
		writer, err := kgo.NewClient(s.writerOptions()...)
		if err != nil {
			return nil, err
		}
		s.writer = writer
	}
	return s.writer, nil
}

// wrote is called with the answer to a write, and must not wait.
func (s *Source) wrote(writer *kgo.Client, err error) {
	switch {
	case errors.Is(err, kerr.UnknownTopicID): // the topic was deleted and created anew
		writer.PurgeTopicsFromProducing(s.config.DeadLetters)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.writer == writer && !s.closed {
			s.writer = nil
			s.group.Go(writer.Close)
		}
	}
}

// closeWriter is called when nothing runs any more.
func (s *Source) closeWriter() {
	s.mu.Lock()
	writer := s.writer
	s.mu.Unlock()
	if writer != nil {
		writer.Close()
	}
}

package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/twmb/franz-go/pkg/kerr"
)

var errPublisherClosed = fmt.Errorf("kafka: nothing was sent: the publisher is closed: %w", semel.ErrClosed)

// unpublished is a call of which no record is known to be written. Its text is made here.
type unpublished struct {
	text string
	err  error
}

func (e *unpublished) Error() string { return e.text }
func (e *unpublished) Unwrap() error { return e.err }

// judge says what the end of a sending means for its message.
func (p *Publisher) judge(ctx context.Context, s *sending, topic string) error {
	switch refusal := refused(s.err); {
	case s.err == nil:
		return nil
	case refusal != "":
		return semel.Permanent(&unpublished{fmt.Sprintf("kafka: nothing was written to topic %s: %s", topic, refusal), s.err})
	case errors.Is(s.err, kerr.UnknownTopicID):
		return semel.Retry(&unpublished{fmt.Sprintf("kafka: nothing was written to topic %s: it was deleted, or deleted and created anew", topic), s.err})
	}
	return p.unconfirmed(ctx, s, topic)
}

// refused says why brokers did not take a record, where waiting cannot mend it, and what to
// do; empty for any other end.
func refused(err error) string {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return "the record is larger than the topic takes; raise the topic's max.message.bytes"
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return "the topic does not exist, or this user may not see it; create it or correct its name"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		// The latter is said of who may write to no topic at all.
		return "this user may not write to the topic; allow it WRITE and DESCRIBE"
	case errors.Is(err, kerr.InvalidTopicException):
		return "the brokers do not allow to write to this topic"
	case errors.Is(err, kerr.InvalidRecord):
		return "the brokers take no such record there, such as one without a key where the topic is compacted"
	case errors.Is(err, kerr.InvalidTimestamp):
		return "the topic does not take records of this host's time; set its clock, or the topic's message.timestamp.before.max.ms and after.max.ms"
	}
	return ""
}

// unconfirmed says what is known of a record of which no broker said that it is written.
func (p *Publisher) unconfirmed(ctx context.Context, s *sending, topic string) error {
	err := context.Cause(ctx)
	// One that ended because its call did is told as that, whichever is seen first.
	byItself := s.ended() && (err == nil || !errors.Is(s.err, context.Canceled))
	if byItself {
		err = s.err
	}
	why := "the brokers have not confirmed it: " + legible.Printable(fmt.Sprint(err))
	switch {
	case s.ended() && p.life.Err() != nil:
		why = "the publisher was closed"
	case byItself:
	case errors.Is(err, errUnconfirmed):
		why = "the brokers have not confirmed it within " + legible.Span(p.config.Timeout)
	case err != nil:
		why = "the call was ended here"
	}
	if s.ended() && s.unsent() || p.produces.Begun() == s.before {
		return semel.Retry(&unpublished{fmt.Sprintf("kafka: nothing was sent to topic %s: %s%s", topic, why, p.away()), err})
	}
	return semel.Unknown(&unpublished{fmt.Sprintf("kafka: the outcome of publishing to topic %s is not known: %s%s; another attempt publishes it with the same id", topic, why, p.away()), err})
}

// away says why no broker could be connected to, if that is so.
func (p *Publisher) away() string {
	if err := p.brokers.lastDial.Err(); err != nil {
		return " (" + legible.Printable(err.Error()) + ")"
	}
	return ""
}

package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/source"
)

// leastHold is the shortest ack wait of a consumer that the source accepts.
const leastHold = time.Second

// checkConsumer returns all settings of a consumer with which messages could be lost, stay undelivered, or be processed
// by two processes all the time. Each fault names the command that changes the setting.
func checkConsumer(info *jetstream.ConsumerInfo) error {
	c := info.Config
	name := fmt.Sprintf("nats: consumer %s of stream %s", info.Name, info.Stream)
	edit := fmt.Sprintf("nats consumer edit %s %s", info.Stream, info.Name)
	again := fmt.Sprintf("create another consumer: %s", createCommand(info.Stream, "NAME"))
	held := (&session{info: info}).hold()
	var faults []error
	for _, rule := range []struct {
		broken bool
		says   string
	}{
		{c.Durable == "", "is ephemeral or ordered: the server deletes it when no process reads it, and its acks with it; " + again},
		{c.AckPolicy != jetstream.AckExplicitPolicy, fmt.Sprintf("has the ack policy %v, and each message must be acked by itself; %s", c.AckPolicy, again)},
		{c.MaxDeliver > 0, fmt.Sprintf("delivers a message at most %d times (max_deliver), and the server then keeps it and delivers it never again; run: %s --max-deliver=-1", c.MaxDeliver, edit)},
		{c.Durable != "" && c.InactiveThreshold > 0, fmt.Sprintf("is deleted when no process reads it for %v (inactive_threshold), for example during an outage; run: %s --interactive, and remove inactive_threshold", c.InactiveThreshold, edit)},
		{c.HeadersOnly, fmt.Sprintf("delivers headers without bodies (headers_only); run: %s --no-headers-only", edit)},
		{held < leastHold, fmt.Sprintf("waits %v for an ack (ack_wait or backoff), and at least %v is needed; run: %s --wait=30s --backoff=none", held, leastHold, edit)},
		{c.PriorityPolicy != jetstream.PriorityPolicyNone, "has priority groups, which this source does not support; " + again},
	} {
		if rule.broken {
			faults = append(faults, fmt.Errorf("%s %s", name, rule.says))
		}
	}
	return errors.Join(faults...)
}

// createCommand returns the command that creates a consumer that fits.
func createCommand(stream, consumer string) string {
	return fmt.Sprintf("nats consumer add %s %s --pull --ack=explicit --deliver=all --max-deliver=-1 --wait=30s --defaults", stream, consumer)
}

// lostRange returns the sequences of the messages that the stream has removed before the consumer got them. The result
// ok is false if there are none, or if the consumer filters by subject, so that the messages may not have been for it.
func lostRange(stream *jetstream.StreamInfo, info *jetstream.ConsumerInfo) (from, to uint64, ok bool) {
	if info.Config.FilterSubject != "" || len(info.Config.FilterSubjects) > 0 {
		return 0, 0, false
	}
	from, to = info.Delivered.Stream+1, stream.State.FirstSeq-1
	return from, to, stream.State.FirstSeq > 0 && from <= to
}

// reportLost logs messages that the stream has removed before the consumer got them, once.
func (s *Source) reportLost(v *session) {
	from, to, lost := lostRange(v.stream, v.info)
	s.mu.Lock()
	report := lost && s.reported != to
	if report {
		s.reported = to
	}
	s.mu.Unlock()
	if report {
		s.config.Logger.Error("nats: messages were lost: the stream has removed them before the consumer got them; raise the limits of the stream (max_age, max_msgs, max_bytes)",
			"stream", s.config.Stream, "consumer", s.config.Consumer, "first", from, "last", to)
	}
}

// horizon implements source.Info.Horizon. The server can deliver a message again as long as the stream has it.
func (s *Source) horizon(ctx context.Context) (source.Horizon, error) {
	js, err := s.connect()
	if err != nil {
		return source.Horizon{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	stream, err := js.Stream(ctx, s.config.Stream)
	if err != nil {
		return source.Horizon{}, s.explain(err)
	}
	age := stream.CachedInfo().Config.MaxAge
	if age == 0 {
		return source.Horizon{Unlimited: true, Why: fmt.Sprintf("stream %s: no max_age", s.config.Stream)}, nil
	}
	return source.Horizon{Late: age, Why: fmt.Sprintf("stream %s: max_age %v", s.config.Stream, age)}, nil
}

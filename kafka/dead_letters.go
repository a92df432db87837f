package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/kafka/internal/deadletter"
	"github.com/semel-go/semel/kafka/internal/producer"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type deadLetters struct {
	config     *Config
	brokers    *brokers
	deliveries *deliveries
	life       context.Context // this context ends when dead letters may no longer be written
	current    *producer.Current
	consumer   string // set by prepareDeadLetters
	// The largest allowed size of a batch of dead letters.
	batch atomic.Int32
}

func newDeadLetters(c *Config, b *brokers, d *deliveries, life context.Context, background *worker.Group) *deadLetters {
	letters := &deadLetters{config: c, brokers: b, deliveries: d, life: life}
	letters.batch.Store(producer.UsualBatch)
	letters.current = producer.NewCurrent(background, func(spent func(*producer.Producer)) (*producer.Producer, error) {
		return producer.New(b.commonOptions, int(letters.batch.Load()), spent)
	})
	return letters
}

// letterWait is the time for which Settle waits for dead letters. If a dead letter is not confirmed in time, the write
// continues in the background, and the next Settle waits for the same dead letter again. Acks of other lanes do not
// wait for dead letters.
const letterWait = 5 * time.Second

// prepareDeadLetters implements source.Info.DeadLetters. prepareDeadLetters returns an error if
// Config.DeadLetters is empty.
func (s *Source) prepareDeadLetters(consumer string) error {
	if s.config.DeadLetters == "" {
		return errors.New("kafka: there is no topic for dead letters; set Config.DeadLetters (in a policy: dead_letter: {topic: …} at the consumer), or choose another action than dead letters")
	}
	s.deadLetters.consumer = consumer
	return nil
}

// write copies deliveries to the topic for dead letters and waits until all replicas have the copies. write
// returns the deliveries whose dead letters could not be written or are not confirmed yet.
func (d *deadLetters) write(ctx context.Context, all []source.Settlement, which []int) ([]int, error) {
	if len(which) == 0 {
		return nil, nil
	}
	if d.config.DeadLetters == "" {
		return which, fmt.Errorf("kafka: there is no topic for dead letters: %w", semel.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeout(ctx, letterWait)
	defer cancel()
	letters := make([]*producer.Pending, len(which))
	for n, i := range which {
		letters[n] = d.send(&all[i])
	}
	var left []int
	var failed complaints
	for n, i := range which {
		if err := outcome(ctx, letters[n]); err != nil {
			left = append(left, i)
			failed.add(&all[i], err)
		}
	}
	return left, failed.join(d.config.DeadLetters)
}

// outcome waits for the outcome of a dead letter. If letter is nil, the delivery was already acked.
func outcome(ctx context.Context, letter *producer.Pending) error {
	if letter == nil {
		return nil
	}
	select {
	case <-letter.Done:
		return letter.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send writes the dead letter of a delivery. If the write of the dead letter is already in progress, send returns the
// Pending of the write in progress and writes nothing. The result is nil if the delivery was already acked.
func (d *deadLetters) send(v *source.Settlement) *producer.Pending {
	raw, sent, begun := d.deliveries.letterOf(v.Delivery.Handle.(*record))
	if !begun {
		return sent
	}
	writer, err := d.current.Open()
	if err != nil {
		sent.Answer(err)
		return sent
	}
	// The dead letter needs a context of its own: a record that is cancelled after it was sent may still be
	// written.
	letter := deadletter.New(d.config.DeadLetters, d.consumer, raw, v)
	writer.Write(&producer.Record{Ctx: d.life, Record: letter, Answer: sent.Answer, Cut: deadletter.Cut, WasCut: d.logCut})
	return sent
}

// letterOf returns the dead letter of a record that is not acked yet. If the dead letter must still be written, begun
// is true and raw is the record to copy.
func (d *deliveries) letterOf(r *record) (raw *kgo.Record, l *producer.Pending, begun bool) {
	d.lanes.withAll(func([]*lane) {
		if begun = r.raw != nil && (r.letter == nil || r.letter.Ended() && r.letter.Err != nil); begun {
			raw, r.letter = r.raw, producer.NewPending()
		}
		l = r.letter
	})
	return raw, l, begun
}

// logCut logs that a dead letter was truncated.
func (d *deadLetters) logCut(letter *kgo.Record) {
	said := deadletter.Headers(letter)
	d.config.Logger.Warn("a dead letter was cut, because the topic does not accept records of its size; the row in the store has the whole message. Raise the topic's max.message.bytes to keep whole dead letters",
		"group", d.config.Group, "dead_letters", d.config.DeadLetters,
		"topic", said[HeaderTopic], "partition", said[HeaderPartition], "offset", said[HeaderOffset], "bytes", said[HeaderLength])
}

// askSize requests the largest batch size that the topic for dead letters accepts. If the brokers do not
// answer, a refused batch is sent record by record.
func (d *deadLetters) askSize(ctx context.Context) {
	if d.config.DeadLetters == "" {
		return
	}
	size := producer.UsualBatch
	all, err := kadm.NewClient(d.brokers.client()).DescribeTopicConfigs(ctx, d.config.DeadLetters)
	if err == nil && len(all) == 1 && all[0].Err == nil {
		for _, c := range all[0].Configs {
			if n, e := strconv.Atoi(c.MaybeValue()); e == nil && c.Key == "max.message.bytes" {
				size = n
			}
		}
	}
	d.batch.Store(int32(min(max(size, producer.LeastBatch), producer.LargestBatch)))
}

// complaints collects the errors of dead letters that one call of Settle could not write. complaints keeps one error
// per cause, with the first dead letter and the number of dead letters.
type complaints struct{ all []complaint }

type complaint struct {
	what  string
	first *source.Settlement
	err   error
	count int
}

func (c *complaints) add(v *source.Settlement, err error) {
	what := notWrittenReason(err)
	for i := range c.all {
		if c.all[i].what == what {
			c.all[i].count++
			return
		}
	}
	c.all = append(c.all, complaint{what, v, err, 1})
}

func (c *complaints) join(topic string) error {
	var errs error
	for _, one := range c.all {
		m := one.first.Delivery.Message
		which := "the dead letter of"
		if one.count > 1 {
			which = fmt.Sprintf("%d dead letters, the first of", one.count)
		}
		errs = errors.Join(errs, fmt.Errorf("kafka: %s topic %s, partition %d, offset %d: not in topic %s yet, %s: %w",
			which, m.Topic, m.Origin.Partition, m.Origin.Offset, topic, one.what, one.err))
	}
	return errs
}

// notWrittenReason returns a text for operators: why a dead letter is not written, and what to do.
func notWrittenReason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "because the brokers have not confirmed it yet"
	case errors.Is(err, kerr.MessageTooLarge):
		return "because the topic does not accept even its origin and reason; raise the topic's max.message.bytes"
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return "because the topic does not exist; create it"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		// The brokers answer ClusterAuthorizationFailed if the user may write to no topic at all.
		return "because this user may not write to the topic; allow it WRITE and DESCRIBE"
	}
	return "and will be tried again"
}

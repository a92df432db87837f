package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/deadletter"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Letter is a dead letter: a record of a topic for dead letters.
type Letter struct {
	// Topic, Partition and Offset are the position of the dead letter.
	Topic     string
	Partition int32
	Offset    int64
	// WrittenAt is the time when the dead letter was written; zero if the record has no time.
	WrittenAt time.Time
	// Foreign is true if no consumer of Semel wrote the record: the headers of a dead letter are missing or invalid. Of
	// a foreign record, only the position is known, and Delivery contains the record unchanged.
	Foreign bool
	// Consumer is the consumer that wrote the dead letter. Reason, Error and Attempts describe the failure.
	Consumer string
	Reason   semel.Reason
	Error    string
	Attempts int
	// Cut is true if the topic did not accept the whole record; see HeaderLength.
	Cut bool
	// Delivery contains the message as the consumer's source delivered it, with the topic, partition, offset and time
	// of the original record. The field Refused of the delivery is set if the message cannot be read. Origin.BrokerID
	// is empty, because the original topic may have been created again.
	Delivery source.Delivery
}

// The time for which ReadLetters waits for records of a partition before it requests the partition's end again.
const letterPatience = 5 * time.Second

// ReadLetters calls the function each for every record of a topic for dead letters. ReadLetters reads each partition in
// order, from the beginning to the current end. ReadLetters joins no group and changes nothing. The parameter c is the
// configuration of the consumer; if topic is empty, ReadLetters reads c.DeadLetters. If the function each returns an
// error, ReadLetters returns this error at once. If the topic was deleted and created again during the call, the error
// wraps ErrRange.
func ReadLetters(ctx context.Context, c Config, topic string, each func(Letter) error) error {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	if topic == "" {
		topic = c.DeadLetters
	}
	if topic == "" {
		return errors.New("kafka: there is no topic for dead letters; name one, or set Config.DeadLetters (in a policy: dead_letter: {topic: …} at the consumer)")
	}
	r := &letterReader{config: c, topic: topic, each: each, decoder: c.decoder()}
	r.brokers.config = &r.config
	return r.read(ctx)
}

// letterReader does the work of one call of ReadLetters.
type letterReader struct {
	config  Config
	topic   string
	each    func(Letter) error
	brokers brokers
	decoder *message.Decoder
	// The end offsets of the partitions that are not read completely.
	ends map[int32]int64
	// The id of the topic.
	id [16]byte
}

func (r *letterReader) read(ctx context.Context) error {
	if _, err := r.brokers.openClient(func() {}); err != nil {
		return err
	}
	defer r.brokers.close()
	starts, err := r.ask(ctx)
	if err != nil {
		return err
	}
	if len(r.ends) == 0 {
		return nil
	}
	partitions := map[int32]kgo.Offset{}
	for p := range r.ends {
		partitions[p] = kgo.NewOffset().At(starts[p])
	}
	client, err := r.brokers.reader(map[string]map[int32]kgo.Offset{r.topic: partitions})
	if err != nil {
		return err
	}
	defer client.Close()
	for len(r.ends) > 0 {
		if err := r.poll(ctx, client); err != nil {
			return err
		}
	}
	return r.checkUnchanged(ctx)
}

// checkUnchanged returns an error if the topic was deleted and created again after the first request. In this case, the
// end offsets belong to the deleted topic, and neither the old nor the new topic was read completely.
func (r *letterReader) checkUnchanged(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	response, err := metadataOf(r.topic).RequestWith(ctx, r.brokers.client())
	if err != nil {
		return r.explain(err)
	}
	for _, t := range response.Topics {
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case err != nil:
			return r.explain(err)
		case r.id == noTopicID:
			r.id = t.TopicID
		case t.TopicID != r.id:
			return fmt.Errorf("topic %s was deleted and created again while it was read; read it again: %w", r.topic, ErrRange)
		}
	}
	return nil
}

// ask requests the beginnings and ends of the partitions.
func (r *letterReader) ask(ctx context.Context) (starts map[int32]int64, err error) {
	if err := r.checkUnchanged(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	admin := kadm.NewClient(r.brokers.client())
	ends, err := r.config.endOffsets(ctx, admin, r.topic)
	if err != nil {
		return nil, r.explain(err)
	}
	begins, err := allListed(admin.ListStartOffsets(ctx, r.topic))
	if err != nil {
		return nil, r.explain(err)
	}
	asked := r.ends
	r.ends, starts = map[int32]int64{}, map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		begin, _ := begins.Lookup(o.Topic, o.Partition)
		end := o.Offset
		if asked != nil {
			was, left := asked[o.Partition]
			if !left {
				return
			}
			end = min(end, was)
		}
		if begin.Offset < end {
			r.ends[o.Partition], starts[o.Partition] = end, begin.Offset
		}
	})
	return starts, nil
}

func (r *letterReader) explain(err error) error {
	var answer *kerr.Error
	if errors.As(err, &answer) {
		return explain(err, r.topic, r.config.Group)
	}
	return r.brokers.unreachableError(err)
}

// poll reads the records that arrive. If no record arrives, the remaining records may have been deleted, so poll
// requests the ends of the partitions again.
func (r *letterReader) poll(ctx context.Context, client *kgo.Client) error {
	waiting, cancel := context.WithTimeout(ctx, letterPatience)
	defer cancel()
	fetches := client.PollFetches(waiting)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) {
			return r.explain(e.Err)
		}
	}
	var failed error
	fetches.EachRecord(func(raw *kgo.Record) {
		end, left := r.ends[raw.Partition]
		switch {
		case failed != nil || !left:
			return
		case raw.Offset >= end-1:
			delete(r.ends, raw.Partition)
		}
		if raw.Offset < end && !raw.Attrs.IsControl() {
			failed = r.each(r.letter(raw))
		}
	})
	if failed == nil && fetches.NumRecords() == 0 {
		_, failed = r.ask(ctx)
	}
	return failed
}

// letter decodes a record as a dead letter.
func (r *letterReader) letter(raw *kgo.Record) Letter {
	l := Letter{Topic: raw.Topic, Partition: raw.Partition, Offset: raw.Offset, WrittenAt: message.TimeOf(raw)}
	said := deadletter.Headers(raw)
	l.Consumer, l.Reason, l.Error = said[HeaderConsumer], semel.Reason(said[HeaderReason]), said[HeaderError]
	l.Attempts, _ = strconv.Atoi(said[HeaderAttempts])
	_, l.Cut = said[HeaderLength]
	original, whole := deadletter.Original(raw, said)
	l.Foreign = !whole
	l.Delivery = source.Delivery{Message: new(semel.Message), Before: source.Unknown}
	r.decoder.Read(original, "", &l.Delivery)
	l.Delivery.Decode(nil)
	return l
}

package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kerr"
)

// complaints are the dead letters of one settlement that are not written yet:
// of each cause one error, with the first of them and how many there are.
type complaints struct{ all []complaint }

type complaint struct {
	what  string
	first *source.Settlement
	err   error
	count int
}

func (c *complaints) add(v *source.Settlement, err error) {
	what := notWritten(err)
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

// notWritten says why a dead letter is not written, and what to do.
func notWritten(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "because the brokers have not confirmed it; it is on its way"
	case errors.Is(err, kerr.MessageTooLarge):
		return "because the topic does not even take its place and reason; raise the topic's max.message.bytes"
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return "because the topic does not exist; create it"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		// The latter is said of who may write to no topic at all.
		return "because this user may not write to the topic; allow it WRITE and DESCRIBE"
	}
	return "and will be tried again"
}

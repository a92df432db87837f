package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/timing"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Check asks the brokers for the topics, so that a misspelt one is told once, and not by
// each message that is set aside for it. Its error names the topics that do not exist or may
// not be used, or says that the user is refused. Where no broker answers it is nil: they may
// be back when there is something to publish.
func (p *Publisher) Check(ctx context.Context) error {
	err := p.check(ctx)
	for deadline := time.Now().Add(newTopic); errors.Is(err, kerr.UnknownTopicOrPartition) && time.Now().Before(deadline) && ctx.Err() == nil; {
		timing.Wait(ctx, newTopic/10)
		err = p.check(ctx)
	}
	return err
}

func (p *Publisher) check(ctx context.Context) error {
	writer, err := p.open()
	if err != nil {
		return err
	}
	request := kmsg.NewPtrMetadataRequest()
	for _, topic := range p.config.all() {
		one := kmsg.NewMetadataRequestTopic()
		one.Topic = &topic
		request.Topics = append(request.Topics, one)
	}
	response, err := request.RequestWith(ctx, writer.Batches)
	if err != nil {
		var answer *kerr.Error
		if err = p.brokers.unreachable(err); errors.As(err, &answer) {
			return err
		}
		return nil
	}
	var all error
	for _, t := range response.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); refused(err) != "" && t.Topic != nil {
			all = errors.Join(all, fmt.Errorf("kafka: topic %s: %s: %w", *t.Topic, refused(err), err))
		}
	}
	return all
}

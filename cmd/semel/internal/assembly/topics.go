package assembly

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/kafka"
)

// Topics read topics of the cluster of a consumer's source, beside its group and without it.
// Close them.
func (a *Assembly) Topics(c *policy.Consumer, topics ...string) (*kafka.Range, error) {
	s := a.policy.Source(c.From)
	if s == nil || s.Kafka == nil {
		return nil, fmt.Errorf("consumer %s reads no topics of Kafka", c.Name)
	}
	config, err := a.kafkaConfig(c, s, newLanes(a.options.Logger, time.Now))
	if err != nil {
		return nil, err
	}
	config.Topics, config.TopicPattern = topics, ""
	return kafka.NewRange(config)
}

package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
)

// Topics are Kafka topics to replay.
type Topics struct{ reader *kafka.Range }

// NewTopics returns topics that are read with the configuration of the consumer's Kafka source.
func NewTopics(c kafka.Config) (*Topics, error) {
	reader, err := kafka.NewRange(c)
	return &Topics{reader}, err
}

// Plan implements Origin.
func (t *Topics) Plan(ctx context.Context, from, to Bound) (p admin.ReplayProgress, err error) {
	for _, b := range []Bound{from, to} {
		if _, unnamed := b.Offsets[""]; unnamed {
			return p, errors.New("an offset needs a partition: write it as orders/0=1200")
		}
	}
	p.Lanes, err = t.reader.Lanes(ctx, kafka.Bound{Time: from.Time, Offsets: from.Offsets}, kafka.Bound{Time: to.Time, Offsets: to.Offsets})
	var parts []string
	for i, l := range p.Lanes {
		if i == mostNamed {
			parts = append(parts, fmt.Sprintf("and %d further partitions", len(p.Lanes)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d to %d", l.Lane, l.From, l.To))
	}
	p.Range = rangeOf(strings.Join(parts, ", "), from, to)
	return p, err
}

// mostNamed is the maximum number of partitions that the description of a range lists.
const mostNamed = 8

// Source implements Origin.
func (t *Topics) Source(ctx context.Context, p admin.ReplayProgress) (source.Source, error) {
	if err := t.reader.Check(ctx, p.Lanes); err != nil {
		return nil, err
	}
	return t.reader.Source(p.Lanes)
}

// Close implements Origin.
func (t *Topics) Close() { t.reader.Close() }

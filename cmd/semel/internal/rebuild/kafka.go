package rebuild

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/kafka"
)

// Topics reports how much of its topics a rebuild has read.
type Topics struct{ Recovery *kafka.Recovery }

// Ends implements Far. A partition without records has been read completely.
func (t *Topics) Ends(ctx context.Context) (map[string]int64, error) {
	all, err := t.Recovery.Compare(ctx)
	ends := map[string]int64{}
	for _, p := range all {
		if p.End > p.Start {
			ends[lane(p)] = p.End
		}
	}
	return ends, err
}

// Done implements Far.
func (t *Topics) Done(ctx context.Context) (map[string]int64, error) {
	all, err := t.Recovery.Compare(ctx)
	done := map[string]int64{}
	for _, p := range all {
		done[lane(p)] = max(p.Group, 0)
	}
	return done, err
}

func lane(p kafka.PartitionPosition) string { return fmt.Sprintf("%s/%d", p.Topic, p.Partition) }

package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// starts is what is known of where topics began.
type starts struct{}

func (s *starts) metadata(string) *string { return nil }

// begin is called with the group's offsets of new lanes, before they are read.
func (s *Source) begin(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, partitions := range offsets {
		for partition, offset := range partitions {
			l := s.lanes[place{topic, partition}]
			if at := offset.EpochOffset(); l != nil && at.Offset >= 0 {
				l.committed = position{at.Offset, at.Epoch}
			}
		}
	}
	return offsets, nil
}

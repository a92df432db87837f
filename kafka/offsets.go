package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// pending is a lane and the position to commit for it.
type pending struct {
	lane  *lane
	at    position
	owner owner
	topic [16]byte
}

// toCommit are the lanes of which the group does not know how far they are done,
// by who owns them. With late an older commit may still be carried out, see
// unanswered.go; renewed is who the member is now, where no callback tells.
func (ls *lanes) toCommit(renewed *owner, late bool) map[owner]map[topicPartition]pending {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if renewed != nil {
		ls.renewEpochs(*renewed)
	}
	now := time.Now()
	all := map[owner]map[topicPartition]pending{}
	for _, l := range ls.order {
		if !l.dirty() && !(late && l.uncertain(now)) || l.refused == l.owner {
			continue
		}
		if all[l.owner] == nil {
			all[l.owner] = map[topicPartition]pending{}
		}
		all[l.owner][l.topicPartition] = pending{l, l.done, l.owner, l.topicID}
	}
	return all
}

// renewEpochs: with the protocol of KIP-848 a member's epoch rises with a
// heartbeat, and no callback tells. What is not gone here was not given up
// there: the callbacks that give lanes up return before the brokers hear of it.
func (ls *lanes) renewEpochs(now owner) {
	for _, l := range ls.order {
		if !l.gone && l.refused == l.owner && l.owner.member == now.member {
			l.owner = now
		}
	}
}

// toBegin are living lanes, by who owns them, and where they begin.
func (ls *lanes) toBegin(found map[topicPartition]int64) map[owner]map[topicPartition]pending {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	all := map[owner]map[topicPartition]pending{}
	for p, at := range found {
		l := ls.byPartition[p]
		if l == nil || l.gone {
			continue
		}
		if all[l.owner] == nil {
			all[l.owner] = map[topicPartition]pending{}
		}
		all[l.owner][p] = pending{l, position{at, -1}, l.owner, l.topicID}
	}
	return all
}

// answered notes the answer for one lane. It says why the lane is lost, if it
// is; an error says that the offset is not committed and may be later.
func (ls *lanes) answered(c pending, err error) (lost string, why error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	switch {
	case err == nil:
		c.lane.committed, c.lane.committedAt = c.at, time.Now()
		return "", nil
	case c.lane.gone:
		return "", nil
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.FencedInstanceID):
		return "the group does not know this member any more", nil
	case staleGeneration(err):
		// A newer generation exists and this member is in it: its callback
		// decides whether the lane is still ours. Until then nothing is tried.
		if c.lane.refused != c.owner {
			c.lane.refused, c.lane.refusedAt = c.owner, time.Now()
		}
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
		ls.faults.topicDeleted(c.lane.topic, fmt.Errorf("kafka: topic %s: it was deleted, or deleted and created anew; what was applied of it stays applied: %w", c.lane.topic, err))
		return "its topic was deleted", nil
	}
	return "", fmt.Errorf("kafka: the offset of lane %s is not committed yet: %w", c.lane.id.ID, explain(err, c.lane.topic, ls.config.Group))
}

// awaitsGeneration is an error while the group takes no offsets of a lane,
// because it is shared out anew.
func (ls *lanes) awaitsGeneration() error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.order {
		if !l.gone && l.refused == l.owner && l.dirty() {
			return fmt.Errorf("kafka: the offset of lane %s is not committed: group %s is shared out anew", l.id.ID, ls.config.Group)
		}
	}
	return nil
}

package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// offsets are how far lanes are done, and what the group knows of it. What is to
// be committed is asked for here, and what the group answered is told.
type offsets struct {
	config *Config
	member *member
	faults *faultList
	lanes  *lanes
	intake *intake
}

// pending is a lane and the position to commit for it.
type pending struct {
	lane  *lane
	at    position
	owner owner
	topic [16]byte
	// kept is what the store must have of the lane; -1 if nothing is known.
	kept int64
}

// toCommit are the lanes of which the group does not know how far they are done,
// by who owns them. With late an older commit may still be carried out, see
// commit_timeout.go; renewed is who the member is now, where no callback tells.
func (o *offsets) toCommit(renewed *owner, late bool) map[owner]map[topicPartition]pending {
	now := time.Now()
	all := map[owner]map[topicPartition]pending{}
	for l := range o.lanes.each {
		if renewed != nil {
			l.renewEpoch(*renewed)
		}
		if !l.dirty() && !(late && l.uncertain(now)) || l.refused == l.owner {
			continue
		}
		if all[l.owner] == nil {
			all[l.owner] = map[topicPartition]pending{}
		}
		l.committing, l.uncommitted = earlier(l.committing, l.uncommitted), time.Time{}
		all[l.owner][l.topicPartition] = pending{l, l.done, l.owner, l.topicID, l.kept}
	}
	return all
}

// renewEpoch: with the protocol of KIP-848 a member's epoch rises with a
// heartbeat, and no callback tells. What is not gone here was not given up
// there: the callbacks that give lanes up return before the brokers hear of it.
func (l *lane) renewEpoch(now owner) {
	if !l.gone && l.refused == l.owner && l.owner.member == now.member {
		l.owner = now
	}
}

// toBegin are living lanes, by who owns them, and where they begin.
func (o *offsets) toBegin(found map[topicPartition]int64) map[owner]map[topicPartition]pending {
	all := map[owner]map[topicPartition]pending{}
	for l := range o.lanes.each {
		at, begins := found[l.topicPartition]
		if !begins || l.gone {
			continue
		}
		if all[l.owner] == nil {
			all[l.owner] = map[topicPartition]pending{}
		}
		all[l.owner][l.topicPartition] = pending{l, position{at, -1}, l.owner, l.topicID, l.kept}
	}
	return all
}

// answered notes the answer for one lane. It says why the lane is lost, if it
// is; an error says that the offset is not committed and may be later.
func (o *offsets) answered(c pending, err error) (lost string, why error) {
	o.lanes.with(func([]*lane) { lost, why = o.note(c, err) })
	return lost, why
}

// note is called with lanes.mu held.
func (o *offsets) note(c pending, err error) (lost string, why error) {
	switch {
	case err == nil:
		c.lane.committed, c.lane.committedAt = c.at, time.Now()
		c.lane.committing = time.Time{}
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
		o.faults.topicDeleted(c.lane.topic, fmt.Errorf("kafka: topic %s: it was deleted, or deleted and created anew; what was applied of it stays applied: %w", c.lane.topic, err))
		return "its topic was deleted", nil
	}
	return "", fmt.Errorf("kafka: the offset of lane %s is not committed yet: %w", c.lane.id.ID, explain(err, c.lane.topic, o.config.Group))
}

// awaitsGeneration is an error while the group takes no offsets of a lane,
// because it is shared out anew.
func (o *offsets) awaitsGeneration() error {
	for l := range o.lanes.each {
		if !l.gone && l.refused == l.owner && l.dirty() {
			return fmt.Errorf("kafka: the offset of lane %s is not committed: group %s is shared out anew", l.id.ID, o.config.Group)
		}
	}
	return nil
}

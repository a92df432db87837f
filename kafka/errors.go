package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The interval at which the source reports a commit that fails again and again.
const complainEvery = 10 * time.Second

// faultList is the list of faults that concern the whole source; the next Fetch returns these faults. The list does not
// contain stopped lanes, because the source itself still works.
type faultList struct {
	config *Config
	member *member
	gate   *gate

	mu   sync.Mutex // guards news; no other lock is taken while it is held
	news []error
}

func (f *faultList) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(f.news, func(known error) bool { return known.Error() == err.Error() }) {
		f.news = append(f.news, err)
	}
}

func (f *faultList) take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.news
	f.news = nil
	return errors.Join(all...)
}

// complain adds an error that has lasted for some time, and wakes Fetch to return the error at once.
func (f *faultList) complain(err error) {
	f.add(err)
	f.gate.wakeUp()
}

// remind wakes Fetch if the list has faults, so that Fetch returns the faults even if no delivery arrives.
func (f *faultList) remind() {
	f.mu.Lock()
	due := len(f.news) > 0
	f.mu.Unlock()
	if due {
		f.gate.wakeUp()
	}
}

// topicDeleted reports that a topic was deleted, and demands a new member that continues without this topic. With a
// pattern, a deleted topic is not a fault, because the source can read the other topics without the help of an
// operator.
func (f *faultList) topicDeleted(topic string, why error) {
	if f.config.TopicPattern == "" {
		f.add(why)
	}
	first := f.member.demandReplacement("topic "+topic+" was deleted", allOf(topic))
	if f.config.TopicPattern != "" && first {
		f.config.Logger.Warn("a topic was deleted, or deleted and created again: its unread records are lost; if it exists again, it is read from its beginning",
			"group", f.config.Group, "topic", topic, "error", why)
	}
}

// handleFetchError handles the error of a fetch of a partition. The parameter l is nil if this process has no lane for
// the partition. The caller holds lanes.mu.
func (i *intake) handleFetchError(l *lane, topic string, p *kgo.FetchPartition) {
	var loss *kgo.ErrDataLoss
	var session *kgo.ErrGroupSession
	var large *kgo.ErrDecompressTooLarge
	switch err := p.Err; {
	case errors.Is(err, hook.ErrOverBudget):
		i.pauseOverBudget(l)
	case errors.As(err, &large) && l != nil && !l.ended:
		i.stopLane(l, i.tooLargeError(l, large))
	case errors.As(err, &session) && removedByGroup(err): // the source reports lost lanes, and the client joins the group again
	case errors.As(err, &session):
		i.faults.add(explain(err, topic, i.config.Group))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, kgo.ErrClientClosed):
	case errors.As(err, &loss):
		i.faults.add(fmt.Errorf("kafka: topic %s, partition %d: the brokers lost records: offsets %d to %d were read and are no longer in the log (an unclean leader election?); their effects stay applied: %w",
			topic, p.Partition, loss.ResetTo, loss.ConsumedTo, err))
	case errors.Is(err, kerr.OffsetOutOfRange) && l != nil && !l.ended:
		i.handleOutOfRange(l, p)
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.InconsistentTopicID):
		i.faults.topicDeleted(topic, fmt.Errorf("kafka: topic %s: it was deleted, or deleted and created again: its unread records are lost; if it exists again, it is read from its beginning: %w", topic, err))
	case isUnreadable(p) && l != nil && !l.ended:
		i.handleCorrupt(l, p)
	default:
		i.faults.add(explain(err, topic, i.config.Group))
	}
}

// removedByGroup reports whether an error says that the group has removed this member, or that the member has
// missed a generation.
func removedByGroup(err error) bool {
	for _, known := range []error{kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.RebalanceInProgress, kerr.FencedMemberEpoch, kerr.StaleMemberEpoch} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// tooLargeError returns the error for a batch that would need too much memory. The text of the error says what an
// operator must do.
func (i *intake) tooLargeError(l *lane, large *kgo.ErrDecompressTooLarge) error {
	return fmt.Errorf("kafka: topic %s, partition %d: the batch of offsets %d to %d is larger than %d MiB when it is decompressed, so the partition has stopped: set a larger MaxBatch (in a policy: max_batch), which needs memory of about four times the batch; or skip the batch, which loses its records: stop the consumer, check that the group's offset is %d, set it (kafka-consumer-groups.sh --reset-offsets --group %s --topic %s:%d --to-offset %d --execute), and start again",
		l.topic, l.partition, large.Offset, large.NextOffset-1, i.config.MaxBatch>>20, large.Offset, i.config.Group, l.topic, l.partition, large.NextOffset)
}

// explain adds an explanation for operators to an error of the brokers. If waiting cannot fix the error, the result has
// the decision semel.DecidePermanent: see source.Source.
func explain(err error, topic, group string) error {
	what, lasts := "", true
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		what = "the brokers refused the user or its password; correct the SASL settings"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		what = "the brokers do not offer this SASL mechanism; use one that the listener has"
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		what = fmt.Sprintf("topic %s does not exist, or this user may not see it; create it or correct its name", topic)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		what = fmt.Sprintf("this user may not read topic %s; allow it READ and DESCRIBE", topic)
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		what = fmt.Sprintf("this user may not use group %s; allow it READ on the group", group)
	case errors.Is(err, kerr.UnreleasedInstanceID):
		lasts = false // the other member may end
		what = "another active member of the group has this Instance; give each process its own"
	case errors.Is(err, kerr.FencedInstanceID):
		what = "another process has joined the group with this Instance; give each process its own"
	case errors.Is(err, kerr.InconsistentGroupProtocol):
		what = fmt.Sprintf("group %s has members that do not use cooperative rebalancing; give this consumer a group of its own, or stop the others", group)
	case errors.Is(err, kerr.InvalidSessionTimeout):
		what = "the brokers do not allow this SessionTimeout; choose one between group.min.session.timeout.ms and group.max.session.timeout.ms"
	case errors.Is(err, kerr.GroupMaxSizeReached):
		lasts = false // a member may leave
		what = fmt.Sprintf("group %s has as many members as the brokers allow", group)
	default:
		return fmt.Errorf("kafka: group %s: %w", group, err)
	}
	err = fmt.Errorf("kafka: %s: %w", what, err)
	if lasts {
		return &semel.HandlerError{Decision: semel.DecidePermanent, Err: err}
	}
	return err
}

// The number of attempts to read an unreadable batch, which may have been damaged during transfer. Each attempt uses a
// new member, because the client may already have moved past the batch.
const mostReads = 3

// corruptBatch is the position of an unreadable batch, and the number of attempts to read it.
type corruptBatch struct {
	offset int64
	reads  int
}

// isUnreadable reports whether the brokers answered a fetch with data that is not a batch.
func isUnreadable(p *kgo.FetchPartition) bool {
	var answer *kerr.Error
	return p.HighWatermark > 0 && !errors.As(p.Err, &answer)
}

// handleCorrupt handles a batch that cannot be read. The caller holds lanes.mu.
func (i *intake) handleCorrupt(l *lane, p *kgo.FetchPartition) {
	known := i.readAgain(l)
	what := fmt.Errorf("kafka: topic %s, partition %d: the batch at offset %d cannot be read", l.topic, l.partition, known.offset)
	if known.reads < mostReads {
		l.broken = what
		i.faults.add(fmt.Errorf("%w and is read again: %w", what, p.Err))
		i.reflow(l)
		i.member.demandReplacement("a batch could not be read", l.topicPartition)
		return
	}
	i.stopLane(l, fmt.Errorf("%w: it was damaged on the brokers' disks or by its producer, so the partition has stopped; other partitions continue. Inspect the batch (kafka-dump-log.sh); to skip it, which loses its records, stop the consumer and set the group's offset after it (kafka-consumer-groups.sh --reset-offsets --group %s --topic %s:%d --to-offset … --execute): %w",
		what, i.config.Group, l.topic, l.partition, p.Err))
}

// readAgain counts one more attempt to read the batch at a lane's position, and returns the count.
func (i *intake) readAgain(l *lane) corruptBatch {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.corruptBatches[l.topicPartition]
	if at := l.readAt(); known.offset != at || known.reads == 0 {
		known = corruptBatch{offset: at}
	}
	known.reads++
	i.corruptBatches[l.topicPartition] = known
	return known
}

// handleOutOfRange handles a lane whose position is no longer in the log. The caller holds lanes.mu.
func (i *intake) handleOutOfRange(l *lane, p *kgo.FetchPartition) {
	begins := ""
	if p.LogStartOffset > 0 { // not every broker sends the log start with this error
		begins = fmt.Sprintf(", which now begins at %d", p.LogStartOffset)
	}
	l.skipLost = i.config.OnLostRecords == GoOn
	remedy := howToReset(i.config.Group, l)
	if l.skipLost {
		remedy = "The partition continues after them, as the policy says"
	}
	i.stopLane(l, fmt.Errorf("kafka: topic %s, partition %d: offset %d of group %s is no longer in the log%s: records were deleted before they were read, and are lost. %s: %w",
		l.topic, l.partition, l.readAt(), i.config.Group, begins, remedy, p.Err))
}

// howToReset returns advice for an operator about skipping lost records.
func howToReset(group string, l *lane) string {
	return fmt.Sprintf("Nothing is skipped automatically: stop the consumer, set the group's offset (kafka-consumer-groups.sh --reset-offsets --group %s --topic %s:%d --to-earliest --execute), and start again",
		group, l.topic, l.partition)
}

// skipLost skips lost records if Config.OnLostRecords is GoOn: skipLost commits the beginning of the log in the name of
// the lanes' owner, and a new member begins at the committed offset. If the log ends before the lane's position, the
// lane stays stopped, because nobody knows which records are lost.
func (s *Source) skipLost() {
	skipping := s.commits.lanesToSkip()
	if len(skipping) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	var partitions []topicPartition
	for p := range skipping {
		partitions = append(partitions, p)
	}
	begins, err := s.brokers.listOffsets(ctx, partitions, atBegin, false)
	if err != nil {
		return // watch calls skipLost again
	}
	found := map[topicPartition]int64{}
	for p, at := range begins {
		if at > skipping[p] {
			found[p] = at
		}
	}
	if s.commits.commitStarts(ctx, found) != nil {
		return // the lanes stay stopped until the next attempt
	}
	s.commits.finishSkip(skipping, begins, found)
}

// lanesToSkip returns the lanes that must skip lost records, with their positions.
func (c *commits) lanesToSkip() map[topicPartition]int64 {
	all := map[topicPartition]int64{}
	for l := range c.lanes.each {
		if l.skipLost && !l.ended && !c.member.replaceDemanded(l.topicPartition) {
			all[l.topicPartition] = l.readAt()
		}
	}
	return all
}

// finishSkip updates the lanes after an attempt to skip lost records: lanes whose new offset was found continue, and
// all other lanes stay stopped.
func (c *commits) finishSkip(skipping, begins, found map[topicPartition]int64) {
	for p, from := range skipping {
		c.lanes.withLane(p, func(l *lane) {
			to, passes := found[p]
			switch _, known := begins[p]; {
			case passes:
				c.config.Logger.Error("records are lost: they were deleted before they were read, and are skipped, as the policy says",
					"group", c.config.Group, "topic", p.topic, "partition", p.partition, "from", from, "to", to-1, "offsets", to-from)
				l.committed = position{to, -1} // records that are acked later have lower offsets
				c.member.demandReplacement("records were lost", p)
			case known:
				c.intake.stopLane(l, fmt.Errorf("kafka: topic %s, partition %d: offset %d of group %s is after the end of the log: the brokers lost records (an unclean leader election?), and it is not known which. %s: %w",
					p.topic, p.partition, from, c.config.Group, howToReset(c.config.Group, l), kerr.OffsetOutOfRange))
			default:
				return
			}
			l.skipLost = false
		})
	}
}

// sessionEnded is a hook of the Kafka client. sessionEnded logs why the member was removed from the group. The client
// calls the hook after the member has lost its lanes.
type sessionEnded struct{ config *Config }

// OnGroupManageError implements kgo.HookGroupManageError. The method logs only errors that the group caused; Fetch
// returns all other errors.
func (e sessionEnded) OnGroupManageError(err error) {
	if removedByGroup(err) {
		e.config.Logger.Warn("the group removed this member and took its partitions: it was silent for too long, or has missed a rebalance", "group", e.config.Group, "error", err)
	}
}

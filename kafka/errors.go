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

// complainEvery is how often a commit that goes on failing is told again.
const complainEvery = 10 * time.Second

// faultList is what is wrong with the source as a whole, told with the next Fetch.
// A lane that cannot go on is none: the source works.
type faultList struct {
	config *Config
	member *member
	gate   *gate

	mu   sync.Mutex // guards news; no other lock is taken under it
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

// complain lets Fetch say at once what has failed for long.
func (f *faultList) complain(err error) {
	f.add(err)
	f.gate.rouse()
}

// remind lets Fetch say what others noted, also where nothing comes that would
// end its wait.
func (f *faultList) remind() {
	f.mu.Lock()
	due := len(f.news) > 0
	f.mu.Unlock()
	if due {
		f.gate.rouse()
	}
}

// topicDeleted says that a topic was deleted, and lets a new member go on without
// it: with a pattern the other topics need not wait for a person.
func (f *faultList) topicDeleted(topic string, why error) {
	if f.config.TopicPattern == "" {
		f.add(why)
	}
	first := f.member.demandReplacement("topic "+topic+" was deleted", allOf(topic))
	if f.config.TopicPattern != "" && first {
		f.config.Logger.Warn("a topic was deleted, or deleted and created anew, and is let go: what it held and was not read is lost, what was applied stays applied; if it is there again it is read from its beginning",
			"group", f.config.Group, "topic", topic, "error", why)
	}
}

// failed notes what a fetch of a partition failed with. l is nil for what is
// not of a lane. Called with lanes.mu held.
func (i *intake) failed(l *lane, topic string, p *kgo.FetchPartition) {
	var loss *kgo.ErrDataLoss
	var session *kgo.ErrGroupSession
	var large *kgo.ErrDecompressTooLarge
	switch err := p.Err; {
	case errors.Is(err, hook.ErrOverBudget):
		i.pauseOverBudget(l)
	case errors.As(err, &large) && l != nil && !l.gone:
		i.standStill(l, i.tooLarge(l, large))
	case errors.As(err, &session) && removedByGroup(err): // told as lost lanes; the client joins again by itself
	case errors.As(err, &session):
		i.faults.add(explain(err, topic, i.config.Group))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, kgo.ErrClientClosed):
	case errors.As(err, &loss):
		i.faults.add(fmt.Errorf("kafka: topic %s, partition %d: the brokers lost records: offsets %d to %d were read and are no longer in the log (an unclean election of a leader?); what was applied stays applied: %w",
			topic, p.Partition, loss.ResetTo, loss.ConsumedTo, err))
	case errors.Is(err, kerr.OffsetOutOfRange) && l != nil && !l.gone:
		i.outOfRange(l, p)
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.InconsistentTopicID):
		i.faults.topicDeleted(topic, fmt.Errorf("kafka: topic %s: it was deleted, or deleted and created anew: what it held and was not read is lost; if it exists it is read from its beginning: %w", topic, err))
	case unreadable(p) && l != nil && !l.gone:
		i.corrupt(l, p)
	default:
		i.faults.add(explain(err, topic, i.config.Group))
	}
}

// removedByGroup reports whether the group has removed this member, or the member
// has missed a generation.
func removedByGroup(err error) bool {
	for _, known := range []error{kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.RebalanceInProgress, kerr.FencedMemberEpoch, kerr.StaleMemberEpoch} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// tooLarge says what to do about a batch that would need too much memory.
func (i *intake) tooLarge(l *lane, large *kgo.ErrDecompressTooLarge) error {
	return fmt.Errorf("kafka: topic %s, partition %d: the batch of offsets %d to %d is larger than %d MiB when it is decompressed, and the partition waits: read it with a larger MaxBatch (in a policy: max_batch), for which the process needs memory of about four times the batch, or stop the consumer, see that the group's offset is %d, and pass the batch by deliberately, which loses what it holds (kafka-consumer-groups.sh --reset-offsets --group %s --topic %s:%d --to-offset %d --execute), and start again",
		l.topic, l.partition, large.Offset, large.NextOffset-1, i.config.MaxBatch>>20, large.Offset, i.config.Group, l.topic, l.partition, large.NextOffset)
}

// explain says what an error of the brokers means for an operator. One that waiting cannot mend
// has the decision semel.DecidePermanent: see source.Source.
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
		lasts = false // until that member ends
		what = "another living member of the group has this Instance; give each process its own"
	case errors.Is(err, kerr.FencedInstanceID):
		what = "another process has joined the group with this Instance; give each process its own"
	case errors.Is(err, kerr.InconsistentGroupProtocol):
		what = fmt.Sprintf("group %s has members that do not balance cooperatively; give this consumer a group of its own, or stop the others", group)
	case errors.Is(err, kerr.InvalidSessionTimeout):
		what = "the brokers do not allow this SessionTimeout; choose one between group.min.session.timeout.ms and group.max.session.timeout.ms"
	case errors.Is(err, kerr.GroupMaxSizeReached):
		lasts = false // until a member leaves
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

// mostReads is how often a batch that cannot be read is read again: it may have
// been spoilt on its way. Each time by a new member, because the client may
// already have passed it.
const mostReads = 3

// corruptBatch is where in a partition a batch could not be read.
type corruptBatch struct {
	at    int64
	reads int
}

// unreadable reports whether a fetch brought something that is no batch: the
// brokers answered, and what failed is not theirs.
func unreadable(p *kgo.FetchPartition) bool {
	var answer *kerr.Error
	return p.HighWatermark > 0 && !errors.As(p.Err, &answer)
}

// corrupt notes a batch that cannot be read. Called with lanes.mu held.
func (i *intake) corrupt(l *lane, p *kgo.FetchPartition) {
	known := i.readAgain(l)
	what := fmt.Errorf("kafka: topic %s, partition %d: the batch at offset %d cannot be read", l.topic, l.partition, known.at)
	if known.reads < mostReads {
		l.broken = what
		i.faults.add(fmt.Errorf("%w and is read again: %w", what, p.Err))
		i.reflow(l)
		i.member.demandReplacement("a batch could not be read", l.topicPartition)
		return
	}
	i.standStill(l, fmt.Errorf("%w: it was damaged on the brokers' disks, or by who wrote it, and the partition waits; the others go on. Look for the batch (kafka-dump-log.sh); to pass it by, which loses what it holds, stop the consumer and set the group's offset behind it (kafka-consumer-groups.sh --reset-offsets --group %s --topic %s:%d --to-offset … --execute): %w",
		what, i.config.Group, l.topic, l.partition, p.Err))
}

// readAgain counts how often the batch where a lane stands could not be read.
func (i *intake) readAgain(l *lane) corruptBatch {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.corruptBatches[l.topicPartition]
	if at := l.readAt(); known.at != at || known.reads == 0 {
		known = corruptBatch{at: at}
	}
	known.reads++
	i.corruptBatches[l.topicPartition] = known
	return known
}

// outOfRange notes that the place where a lane would be read has left the log.
// Called with lanes.mu held.
func (i *intake) outOfRange(l *lane, p *kgo.FetchPartition) {
	begins := ""
	if p.LogStartOffset > 0 { // not every broker says it with the error
		begins = fmt.Sprintf(", which now begins at %d", p.LogStartOffset)
	}
	l.skipsLost = i.config.OnLostRecords == GoOn
	remedy := howToReset(i.config.Group, l)
	if l.skipsLost {
		remedy = "The partition goes on behind them, as the policy says"
	}
	i.standStill(l, fmt.Errorf("kafka: topic %s, partition %d: offset %d of group %s is no longer in the log%s: records were deleted before they were read, and are lost. %s: %w",
		l.topic, l.partition, l.readAt(), i.config.Group, begins, remedy, p.Err))
}

// howToReset says how a person passes over what is lost.
func howToReset(group string, l *lane) string {
	return fmt.Sprintf("Nothing is skipped by itself: stop the consumer, set the group's offset deliberately (kafka-consumer-groups.sh --reset-offsets --group %s --topic %s:%d --to-earliest --execute), and start again",
		group, l.topic, l.partition)
}

// skipLost passes over records that are lost, where the policy says so: it
// commits the beginning of the log as the lanes' owner, and a new member begins
// there. A log that ends before the lane's place has lost something else, which
// nobody knows: that lane stands still.
func (s *Source) skipLost() {
	skipping := s.commits.skipping()
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
		return // and is asked again
	}
	found := map[topicPartition]int64{}
	for p, at := range begins {
		if at > skipping[p] {
			found[p] = at
		}
	}
	if s.commits.starts(ctx, found) != nil {
		return // what stands still is told, and it is tried again
	}
	s.commits.skipped(skipping, begins, found)
}

// skipping are lanes that are to pass over what is lost, and where they are.
func (c *commits) skipping() map[topicPartition]int64 {
	all := map[topicPartition]int64{}
	for l := range c.lanes.each {
		if l.skipsLost && !l.gone && !c.member.replaceDemanded(l.topicPartition) {
			all[l.topicPartition] = l.readAt()
		}
	}
	return all
}

// skipped notes which lanes go on, and which stand still.
func (c *commits) skipped(skipping, begins, found map[topicPartition]int64) {
	for p, from := range skipping {
		c.lanes.living(p, func(l *lane) {
			to, passes := found[p]
			switch _, known := begins[p]; {
			case passes:
				c.config.Logger.Error("records are lost: they were deleted before they were read, and are passed over, as the policy says",
					"group", c.config.Group, "topic", p.topic, "partition", p.partition, "from", from, "to", to-1, "offsets", to-from)
				l.committed = position{to, -1} // what is settled later is before it
				c.member.demandReplacement("records were lost", p)
			case known:
				c.intake.standStill(l, fmt.Errorf("kafka: topic %s, partition %d: offset %d of group %s is behind the end of the log: the brokers lost records (an unclean election of a leader?), and which ones is not known. %s: %w",
					p.topic, p.partition, from, c.config.Group, howToReset(c.config.Group, l), kerr.OffsetOutOfRange))
			default:
				return
			}
			l.skipsLost = false
		})
	}
}

// sessionEnded is a hook of the member: it says why the group's management
// failed, after the lanes are lost.
type sessionEnded struct{ config *Config }

// OnGroupManageError implements kgo.HookGroupManageError. What is not the
// group's doing comes as an error of Fetch.
func (e sessionEnded) OnGroupManageError(err error) {
	if removedByGroup(err) {
		e.config.Logger.Warn("the group took away what this member had: it was silent for too long, or has missed a rebalance", "group", e.config.Group, "error", err)
	}
}

package kafka

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/kafka/internal/producer"
	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/semel-go/semel/source"
)

// Source reads topics as a member of a consumer group. It implements
// [source.Source], and its Info has everything but an end.
type Source struct {
	config  Config
	between func() // of tests: after a poll, before its records find their lanes

	decoder     *message.Decoder
	gate        gate
	brokers     brokers
	member      *member
	faults      *faultList
	budget      *hook.Budget
	lanes       *lanes
	intake      *intake
	deliveries  *deliveries
	offsets     *offsets
	progress    *progress
	positions   *positions
	commits     *commits
	topics      *topics
	beginnings  *beginnings
	group       *group
	deadLetters *deadLetters

	// open ends when Close begins, life when it ends; background is what runs
	// until then.
	open, life context.Context
	shut, end  context.CancelFunc
	background worker.Group
}

var _ source.Source = (*Source)(nil)

// Info implements source.Source.
func (s *Source) Info() source.Info {
	return source.Info{
		DeadLetters: s.prepareDeadLetters, Positions: s.keepPositions, Horizon: s.horizon,
		Idle: s.isIdle, LaneFaults: s.progress.faulty, Ages: s.ages,
	}
}

// New checks the configuration and reports every fault of it. It does not
// connect: the first Fetch does, and says what it finds wrong.
func New(c Config) (*Source, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Source{config: c, budget: hook.NewBudget(), member: &member{}}
	s.life, s.end = context.WithCancel(context.Background())
	s.open, s.shut = context.WithCancel(s.life)
	s.assemble(&s.config)
	return s, nil
}

// assemble makes the parts of a source. Each knows those before it only.
func (s *Source) assemble(c *Config) {
	s.decoder = c.decoder()
	s.brokers.config = c
	s.faults = &faultList{config: c, member: s.member, gate: &s.gate}
	s.lanes = newLanes(c, s.budget, s.member)
	s.intake = &intake{config: c, budget: s.budget, member: s.member, faults: s.faults, lanes: s.lanes, corruptBatches: map[topicPartition]corruptBatch{}}
	s.deliveries = &deliveries{budget: s.budget, lanes: s.lanes, intake: s.intake}
	s.offsets = &offsets{config: c, member: s.member, faults: s.faults, lanes: s.lanes, intake: s.intake}
	s.progress = &progress{config: c, lanes: s.lanes}
	s.lanes.ended = s.progress.ended
	s.topics = newTopics(c, &s.brokers, s.member, s.faults)
	s.beginnings = &beginnings{
		config: c, brokers: &s.brokers, member: s.member, topics: s.topics, intake: s.intake,
		known: map[string]stored.Beginning{}, undecided: map[string]error{},
	}
	s.positions = &positions{config: c, brokers: &s.brokers, lanes: s.lanes, gate: &s.gate, told: map[topicPartition]bool{}}
	s.commits = &commits{
		config: c, brokers: &s.brokers, lanes: s.lanes, offsets: s.offsets, member: s.member, faults: s.faults, positions: s.positions, startWords: s.beginnings.startWords,
		wake: make(chan struct{}, 1), interval: c.CommitInterval, next: newRound(),
	}
	s.member.replacementDemanded = s.commits.rouse
	s.group = &group{
		config: c, gate: &s.gate, member: s.member, lanes: s.lanes, offsets: s.offsets, topics: s.topics, beginnings: s.beginnings, commits: s.commits,
		open: s.open, life: s.life, announcing: newSemaphore(), handingOver: newSemaphore(), backoff: backoff{},
	}
	s.deadLetters = &deadLetters{
		config: c, brokers: &s.brokers, member: s.member, deliveries: s.deliveries, life: s.life, background: &s.background, batch: producer.UsualBatch,
	}
}

// keepPositions is source.Info.Positions: where the group first began is kept in
// the consumer's store, under the name "kafka:GROUP:TOPIC". A store that is a
// source.OffsetStore is told, before the group is, how far each partition is done,
// as "kafka:GROUP:TOPIC/PARTITION@ID" with the topic's id.
func (s *Source) keepPositions(consumer string, store source.PositionStore) {
	s.beginnings.store = stored.Store{Consumer: consumer, Positions: store}
	s.positions.consumer = consumer
	s.positions.store, _ = store.(source.OffsetStore)
}

// Lanes sets who is told of partitions that come and go.
func (s *Source) Lanes(o source.LaneObserver) { s.lanes.observer = o }

// Fetch implements source.Source. The first one connects, checks topics and
// group, and joins; it fails with what is wrong and can be called again. After
// Close its error wraps semel.ErrClosed; one that wraps semel.ErrBehind says that the
// store lost what it had, and that nothing more is read. An error may come with deliveries:
// other lanes go on.
func (s *Source) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	s.budget.Raise(most.Bytes)
	for {
		if err := s.join(ctx); err != nil {
			if ended := ctx.Err(); ended != nil {
				return nil, ended
			}
			return nil, err
		}
		if s.topics.foundNone() {
			return nil, nil
		}
		found := s.take(most)
		if len(found.records) > 0 || found.err != nil {
			return deliveriesOf(found.records, s.decoder), found.err
		}
		if ctx.Err() != nil {
			return nil, s.brokers.lastAnswer.Cancelled(ctx, silence)
		}
		s.poll(ctx, most, found)
	}
}

// take takes what is ready, and what is wrong.
func (s *Source) take(most source.Bound) found {
	if s.member.isClosed() {
		return found{err: fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)}
	}
	if err := s.positions.fault(); err != nil {
		return found{err: err}
	}
	f := s.deliveries.take(most)
	f.err = s.faults.take()
	return f
}

// poll takes records out of the client and gives them to their lanes. It ends
// with ctx, when the gate is roused, and when something handed back is due.
func (s *Source) poll(ctx context.Context, most source.Bound, f found) {
	if !f.due.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, f.due)
		defer cancel()
	}
	ctx, cancel := s.gate.enter(ctx)
	if ctx == nil {
		return
	}
	defer cancel()
	defer s.gate.leave()
	client := s.member.current()
	if client == nil || f.enough {
		<-ctx.Done()
		return
	}
	polled := client.PollRecords(ctx, s.budget.Polls(most.Messages, most.Bytes))
	if s.between != nil {
		s.between()
	}
	s.intake.accept(client, polled)
}

// Flow pauses or resumes a lane. Records that were polled stay here and are
// delivered after it is resumed.
func (s *Source) Flow(which source.Lane, on bool) {
	s.intake.flow(which, on)
	s.gate.rouse()
}

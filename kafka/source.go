package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Source reads topics as a member of a consumer group. Source implements [source.Source]. The method Info returns a
// source.Info in which all functions are set, except AtEnd.
type Source struct {
	config  Config
	between func() // set by tests; called after a poll, before the records are added to lanes

	decoder     *message.Decoder
	gate        gate
	brokers     brokers
	member      *member
	faults      *faultList
	budget      *hook.Budget
	lanes       *lanes
	intake      *intake
	deliveries  *deliveries
	progress    *progress
	positions   *positions
	commits     *commits
	topics      *topics
	beginnings  *beginnings
	group       *group
	deadLetters *deadLetters

	// The context open ends when Close begins, and the context life when Close ends. The group background has the
	// goroutines that run until Close.
	open, life context.Context
	shut, end  context.CancelFunc
	background worker.Group
}

var _ source.Source = (*Source)(nil)

// Info implements source.Source.
func (s *Source) Info() source.Info {
	return source.Info{
		DeadLetters: s.prepareDeadLetters, Positions: s.keepPositions, Horizon: s.horizon,
		Idle: s.isIdle, LaneFaults: s.progress.faultyLanes, Ages: s.laneAges,
	}
}

// New checks the configuration and returns an error with all its faults. New does not connect: the first call of Fetch
// connects, and returns an error if the connection fails.
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

// assemble creates the parts of a source. Each part uses only parts that are created before it.
func (s *Source) assemble(c *Config) {
	s.decoder = c.decoder()
	s.brokers.config = c
	s.faults = &faultList{config: c, member: s.member, gate: &s.gate}
	s.lanes = newLanes(c, s.budget, s.member)
	s.intake = &intake{config: c, budget: s.budget, member: s.member, faults: s.faults, lanes: s.lanes, corruptBatches: map[topicPartition]corruptBatch{}}
	s.deliveries = &deliveries{budget: s.budget, lanes: s.lanes, intake: s.intake}
	s.progress = &progress{config: c, lanes: s.lanes}
	s.lanes.onEnd = s.progress.recordEnded
	s.topics = newTopics(c, &s.brokers, s.member, s.faults)
	s.beginnings = &beginnings{
		config: c, brokers: &s.brokers, member: s.member, topics: s.topics, intake: s.intake,
		known: map[string]stored.Beginning{}, undecided: map[string]error{},
	}
	s.positions = &positions{config: c, brokers: &s.brokers, lanes: s.lanes, gate: &s.gate, logged: map[topicPartition]bool{}}
	s.commits = &commits{
		config: c, brokers: &s.brokers, lanes: s.lanes, intake: s.intake, member: s.member, faults: s.faults, positions: s.positions, startMetadata: s.beginnings.startMetadata,
		wake: make(chan struct{}, 1), interval: c.CommitInterval, next: newRound(),
	}
	s.member.onReplacementDemand = s.commits.wakeUp
	s.group = &group{
		config: c, gate: &s.gate, member: s.member, lanes: s.lanes, topics: s.topics, beginnings: s.beginnings, commits: s.commits,
		open: s.open, life: s.life, announcing: newSemaphore(), handingOver: newSemaphore(), backoff: backoff{},
	}
	s.deadLetters = newDeadLetters(c, &s.brokers, s.deliveries, s.life, &s.background)
}

// keepPositions implements source.Info.Positions. The source stores the offsets at which the group first began a topic
// under the name "kafka:GROUP:TOPIC". If the store is a laneoffset.Store, the source also stores the position of each
// partition before it commits the position to the group. The name of the position is "kafka:GROUP:TOPIC/PARTITION@ID"
// with the topic's id.
func (s *Source) keepPositions(consumer string, store source.PositionStore) {
	s.beginnings.store = stored.Store{Consumer: consumer, Positions: store}
	s.positions.consumer = consumer
	s.positions.store, _ = store.(laneoffset.Store)
}

// Lanes sets the observer of assigned and lost partitions.
func (s *Source) Lanes(o source.LaneObserver) { s.lanes.observer = o }

// Fetch implements source.Source. The first call connects, checks topics and group, and joins the group. If the first
// call fails, the error contains the reason, and the caller can call Fetch again. After Close, the error wraps
// semel.ErrClosed. An error that wraps semel.ErrBehind means that the store lost data; after this error, Fetch reads no
// further records. Fetch may return deliveries together with an error, because other lanes continue.
func (s *Source) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	s.budget.Raise(most.Bytes)
	for {
		if err := s.join(ctx); err != nil {
			if ended := ctx.Err(); ended != nil {
				return nil, ended
			}
			return nil, err
		}
		if s.topics.takeNoTopics() {
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

// take returns the deliverable records and the faults.
func (s *Source) take(most source.Bound) fetchResult {
	if s.member.isClosed() {
		return fetchResult{err: fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)}
	}
	if err := s.positions.fault(); err != nil {
		return fetchResult{err: err}
	}
	f := s.deliveries.take(most)
	f.err = s.faults.take()
	return f
}

// poll takes records from the client and adds them to their lanes. poll ends when ctx ends, when another goroutine
// calls gate.wakeUp, or when it is time to deliver a nacked record again.
func (s *Source) poll(ctx context.Context, most source.Bound, f fetchResult) {
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
	client := s.member.currentClient()
	if client == nil || f.skipPoll {
		<-ctx.Done()
		return
	}
	polled := client.PollRecords(ctx, s.budget.Polls(most.Messages, most.Bytes))
	if s.between != nil {
		s.between()
	}
	s.intake.accept(client, polled)
}

// Flow pauses or resumes a lane. Records that were polled before the pause are kept, and delivered after the
// lane is resumed.
func (s *Source) Flow(which source.Lane, on bool) {
	s.intake.flow(which, on)
	s.gate.wakeUp()
}

const (
	// The maximum duration of the requests before the join.
	askTimeout = 10 * time.Second
	// The time for which some brokers may not know a new topic.
	newTopic = time.Second
	// metadataAge is the largest age of cached metadata. Within the time metadataAge, the source begins to read a new
	// partition, and notices a deleted topic.
	metadataAge = 10 * time.Second
	// metadataWait is the client's shortest interval between metadata requests. The client requests metadata,
	// for example, while a partition has no leader, or after a failed write to a topic. After five answers
	// that the topic does not exist, the write fails.
	metadataWait = 500 * time.Millisecond
	// The interval of a member's heartbeats.
	heartbeat = 3 * time.Second
	// fetchWait is the time for which a broker waits with the answer to a fetch if it has no records. A resumed lane
	// must wait for the current fetch to end.
	fetchWait = 500 * time.Millisecond
)

// memberOptions returns the options of the member's client; nil if there is no topic to read.
func (s *Source) memberOptions() []kgo.Opt {
	reading, brokers := s.topics.topicsToRead()
	if len(reading) == 0 {
		return nil
	}
	c := s.config
	options := append(s.brokers.commonOptions(),
		kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(reading...), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(c.SessionTimeout), kgo.HeartbeatInterval(min(heartbeat, c.SessionTimeout/3)), kgo.RebalanceTimeout(rebalanceTimeout),
		c.isolation(), kgo.KeepControlRecords(), kgo.FetchMaxWait(fetchWait),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.OnPartitionsAssigned(s.group.onAssigned), kgo.OnPartitionsRevoked(s.group.onRevoked), kgo.OnPartitionsLost(s.group.onLost),
		kgo.AdjustFetchOffsetsFn(s.group.begin), kgo.WithHooks(&s.brokers.lastAnswer, sessionEnded{&s.config}, hook.NewThrottle(s.open, fetchWait/10)),
	)
	options = append(options, s.fetchOptions(brokers)...)
	if c.Rack != "" {
		options = append(options, kgo.Rack(c.Rack))
	}
	if c.NextGen {
		options = append(options, kgo.ServerSideBalancer())
	}
	if c.Instance != "" {
		options = append(options, kgo.InstanceID(c.Instance))
	}
	return options
}

// Default sizes of fetches.
const (
	leastOfBroker    = 1 << 20
	mostOfBroker     = 16 << 20
	mostOfPartition  = 1 << 20
	shareOfBuffering = 4
)

// fetchOptions returns the options for the size of fetches and for decompression.
func (s *Source) fetchOptions(brokers int) []kgo.Opt {
	broker, partition := s.config.MaxFetch, s.config.MaxPartitionFetch
	setDefault(&broker, min(max(leastOfBroker, int(s.budget.Most())/shareOfBuffering/max(1, brokers)), mostOfBroker))
	setDefault(&partition, min(mostOfPartition, broker))
	// The client for requests was created with MaxBatch, so the decompressor of this client enforces the limit
	// MaxBatch.
	s.budget.Use(s.brokers.client().OptValue(kgo.WithDecompressor).(kgo.Decompressor))
	return []kgo.Opt{
		kgo.FetchMaxBytes(int32(broker)), kgo.FetchMaxPartitionBytes(int32(partition)),
		kgo.WithDecompressor(s.budget), kgo.WithHooks(s.budget),
	}
}

// join connects to the brokers and joins the group, unless this source has a member already.
func (s *Source) join(ctx context.Context) error {
	if !s.member.needsJoin() || s.topics.hasNoTopics() {
		return nil
	}
	if open, err := s.brokers.openClient(s.startBackground); !open {
		return err
	}
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := s.ask(ask)
	if err == nil {
		s.beginnings.forgetOthers()
		err = s.beginnings.decide(ask)
	}
	if err == nil {
		err = s.positions.check(ask, s.topics.topicsRead(), s.topics.allIDs())
	}
	if err != nil {
		return err
	}
	options := s.memberOptions()
	if options == nil {
		return nil
	}
	if err := s.member.join(options); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	return nil
}

// startBackground starts the goroutines that run until the source is closed.
func (s *Source) startBackground() {
	s.background.Go(func() { s.commits.run(s.life) })
	s.background.Go(s.watch)
	s.background.Go(s.search)
}

// ask checks before the join that the brokers answer, that the topics exist and that the user may use the group. Errors
// of these checks are clearer than errors of the join.
func (s *Source) ask(ctx context.Context) error {
	err := s.topics.ask(ctx)
	if errors.As(err, &connectionError{}) {
		return err // the same error would come again from the join
	}
	err = untilKnown(ctx, err, s.topics.ask)
	s.deadLetters.askSize(ctx)
	return errors.Join(err, s.askGroup(ctx))
}

func (s *Source) askGroup(ctx context.Context) error {
	request := kmsg.NewPtrFindCoordinatorRequest()
	request.CoordinatorKey, request.CoordinatorKeys = s.config.Group, []string{s.config.Group}
	response, err := request.RequestWith(ctx, s.brokers.client())
	if err != nil {
		return s.brokers.unreachableError(err)
	}
	code := response.ErrorCode
	for _, c := range response.Coordinators {
		code = c.ErrorCode
	}
	if err := kerr.ErrorForCode(code); err != nil && !kerr.IsRetriable(err) {
		return explain(err, "", s.config.Group)
	}
	return nil
}

// Close commits the offsets of acked messages, for at most the time of ctx, and leaves the group unless the member is
// static. The group's next member gets the messages again that are not acked. An error means that possibly not all acks
// were committed, so acked messages may be delivered again. If the request to leave fails, the group waits for this
// member until the member's session ends; Close logs this failure and does not return an error.
func (s *Source) Close(ctx context.Context) error {
	if !s.member.close() {
		return nil
	}
	letters, _ := s.deadLetters.current.Shut()
	joined := s.brokers.markClosed()
	s.shut()
	s.gate.wakeUp()
	var err error
	if joined {
		err = s.group.leave(ctx)
	}
	s.end()
	s.background.Wait()
	letters.Close()
	s.brokers.close()
	return err
}

// LogValue implements slog.LogValuer. The value contains the topics and the group.
func (s *Source) LogValue() slog.Value {
	topics := slog.Any("topics", s.config.Topics)
	if s.config.TopicPattern != "" {
		topics = slog.String("topic_pattern", s.config.TopicPattern)
	}
	return slog.GroupValue(topics, slog.String("group", s.config.Group))
}

package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/strictjson"
	"github.com/semel-go/semel/internal/worker"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Source reads topics as a member of a consumer group. It implements
// [contract.Source], [contract.DeadLettering] and [contract.Positioned].
type Source struct {
	config     Config
	observer   contract.LaneObserver
	consumer   string // named by DeadLetters
	dialed     dialed
	said       said
	unanswered unanswered
	heard      heard
	dial       dialer // of tests: another network
	between    func() // of tests: after a poll, before its records find their lanes
	memory     memory
	// parser and names are of the goroutine that fetches.
	parser strictjson.Parser
	names  names

	gate gate
	// telling keeps the end of a lane from being told before its begin.
	telling sync.Mutex
	// handing is taken by who hands lanes over.
	handing chan struct{}
	commits committer
	room    *room
	// open ends when Close begins, life when it ends; group is what runs until
	// then.
	open, life context.Context
	shut, end  context.CancelFunc
	group      worker.Group

	// side asks and commits; it is no member of the group.
	side *kgo.Client

	mu     sync.Mutex  // guards the rest; not held while anything is waited for
	member *kgo.Client // the member of the group; nil before joining
	writer *writer     // of dead letters; nil before the first
	// letterBatch is how large a batch of dead letters may be.
	letterBatch int
	closed      bool
	// brokers is how many there were when this member joined.
	brokers int
	// reading are the topics that are read: Config.Topics, or those that match
	// the pattern. It is replaced, never changed.
	reading []string
	wanted  wanted
	// topicIDs are what the topics had when this member joined.
	topicIDs map[string][16]byte
	lanes    map[place]*lane
	// order are the lanes in the order in which Fetch takes turns.
	order []*lane
	turn  int
	epoch uint64
	// back counts what is handed back; full says that nothing more may be
	// delivered until something is settled.
	back   int
	full   bool
	faults faultList
	// rejoin is why the member is to be replaced by a new one; replacing while
	// the old one leaves.
	rejoin    string
	replacing bool
	// unplaced: the member has joined, or joins again, and has not been told yet
	// what it reads.
	unplaced bool
	// beginnings are where topics began, as the store remembers; undecided is
	// why it could not be found.
	beginnings map[string]beginning
	undecided  map[string]error
	decideNext time.Time
	// spoilt are batches that could not be read.
	spoilt map[place]spoilt
	// lastStates are of lanes lost since the last report.
	lastStates []LaneState
	changed    chan struct{}
}

var (
	_ contract.Source        = (*Source)(nil)
	_ contract.DeadLettering = (*Source)(nil)
	_ contract.Positioned    = (*Source)(nil)
	_ contract.Idler         = (*Source)(nil)
	_ contract.LaneFaulting  = (*Source)(nil)
)

// New checks the configuration and reports every fault of it. It does not
// connect: the first Fetch does, and says what it finds wrong.
func New(c Config) (*Source, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Source{
		config: c, lanes: map[place]*lane{}, topicIDs: map[string][16]byte{}, names: names{}, letterBatch: usualBatch,
		beginnings: map[string]beginning{}, undecided: map[string]error{}, spoilt: map[place]spoilt{},
		commits: newCommitter(c.CommitInterval), room: newRoom(), changed: make(chan struct{}, 1), handing: make(chan struct{}, 1),
	}
	s.reading = c.Topics
	if c.TopicPattern != "" {
		s.wanted.pattern, _ = compilePattern(c.TopicPattern) // which validate has done
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.open, s.shut = context.WithCancel(s.life)
	return s, nil
}

// Lanes sets who is told of partitions that come and go.
func (s *Source) Lanes(o contract.LaneObserver) { s.observer = o }

// Fetch implements contract.Source. The first one connects, checks topics and
// group, and joins; it fails with what is wrong and can be called again. After
// Close its error wraps semel.ErrClosed. An error may come with deliveries:
// other lanes go on.
func (s *Source) Fetch(ctx context.Context, most contract.Bound) ([]contract.Delivery, error) {
	s.room.raise(most.Bytes)
	for {
		if err := s.join(ctx); err != nil {
			if ended := ctx.Err(); ended != nil {
				return nil, ended
			}
			return nil, err
		}
		if s.foundNone() {
			return nil, nil
		}
		found := s.take(most)
		if len(found.records) > 0 || found.err != nil {
			return s.deliveries(found.records), found.err
		}
		if ctx.Err() != nil {
			return nil, s.heard.cancelled(ctx)
		}
		s.poll(ctx, most, found)
	}
}

// tooMuchHidden reports whether nothing may be delivered until something is
// settled: of a record that is too large the consumer counts what it sees, and
// its dead letter needs all of it. Called with Source.mu held.
func (s *Source) tooMuchHidden() bool {
	var hidden int64
	for _, l := range s.order {
		hidden += l.hidden
	}
	return hidden >= s.room.most.Load() && hidden > 0
}

// found is what there is to deliver, or when there may be something.
type found struct {
	records []*record
	bytes   int64
	due     time.Time
	// enough says that nothing may be polled.
	enough bool
	err    error
}

// mostBack is how many deliveries may be handed back before polling waits.
const mostBack = 10_000

// take takes what is ready: lanes take turns, and in a lane what was handed
// back and is due comes first.
func (s *Source) take(most contract.Bound) found {
	s.mu.Lock()
	defer s.mu.Unlock()
	var f found
	if s.closed {
		f.err = fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)
		return f
	}
	now := time.Now()
	s.full = s.tooMuchHidden()
	for range s.order {
		if s.full {
			break
		}
		s.turn = (s.turn + 1) % len(s.order)
		if l := s.order[s.turn]; !l.blocked() {
			s.back -= l.takeBack(&f, most, now)
			l.takeReady(&f, most, now)
		}
	}
	s.relieve(len(f.records) == 0)
	f.enough = s.back >= mostBack || s.full
	f.err = s.faults.take()
	return f
}

// add reports whether a record fits, the first one always, and takes it.
func (f *found) add(r *record, most contract.Bound, now time.Time) bool {
	if len(f.records) > 0 && (len(f.records) >= most.Messages || f.bytes+r.size > most.Bytes) {
		return false
	}
	f.bytes += r.size
	f.records = append(f.records, r)
	r.state, r.at = delivered, now
	r.lane.unsettled++
	r.lane.hidden += r.hidden
	r.lane.delivered = max(r.lane.delivered, r.after.offset)
	return true
}

func (l *lane) takeBack(f *found, most contract.Bound, now time.Time) int {
	kept := l.back[:0]
	for _, r := range l.back {
		switch {
		case r.state != handedBack:
		case r.at.After(now):
			if f.due.IsZero() || r.at.Before(f.due) {
				f.due = r.at
			}
			kept = append(kept, r)
		case !f.add(r, most, now):
			kept = append(kept, r)
		}
	}
	taken := len(l.back) - len(kept)
	clear(l.back[len(kept):])
	l.back = kept
	return taken
}

func (l *lane) takeReady(f *found, most contract.Bound, now time.Time) {
	n := 0
	for n < len(l.ready) && f.add(l.ready[n], most, now) {
		l.ready[n] = nil
		n++
	}
	l.ready = l.ready[n:]
}

// poll takes records out of the client and gives them to their lanes. It ends
// with ctx, when the gate is roused, and when something handed back is due.
func (s *Source) poll(ctx context.Context, most contract.Bound, f found) {
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
	s.mu.Lock()
	member := s.member
	s.mu.Unlock()
	if member == nil || f.enough {
		<-ctx.Done()
		return
	}
	polled := member.PollRecords(ctx, s.room.polls(most))
	if s.between != nil {
		s.between()
	}
	s.accept(member, polled)
}

// accept gives polled records to their lanes.
func (s *Source) accept(member *kgo.Client, fetches kgo.Fetches) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.member != member {
		return
	}
	for i := range fetches {
		for j := range fetches[i].Topics {
			topic := &fetches[i].Topics[j]
			for k := range topic.Partitions {
				s.acceptPartition(topic, &topic.Partitions[k])
			}
		}
	}
}

func (s *Source) acceptPartition(topic *kgo.FetchTopic, p *kgo.FetchPartition) {
	l := s.lanes[place{topic.Topic, p.Partition}]
	if l != nil && !l.gone {
		s.acceptRecords(l, topic.TopicID, p)
	}
	if p.Err != nil { // of what is behind these records
		s.failed(l, topic.Topic, p)
	}
}

func (s *Source) acceptRecords(l *lane, topicID [16]byte, p *kgo.FetchPartition) {
	if p.HighWatermark > 0 {
		l.end, l.stable = max(l.end, p.HighWatermark), max(l.stable, p.LastStableOffset)
	}
	if len(p.Records) == 0 || l.broken != nil { // who comes after a broken lane reads them
		return
	}
	if reason := l.unfit(topicID, p.Records); reason != "" {
		l.broken = fmt.Errorf("kafka: topic %s, partition %d: %s", l.topic, l.partition, reason)
		s.faults.add(l.broken)
		s.replace(reason)
		return
	}
	before := l.held
	l.add(p.Records, s.config.MaxRecord)
	s.room.held.Add(l.held - before)
	if !l.full && len(l.window) > mostWindow {
		l.full = true
		s.member.PauseFetchPartitions(l.asMap())
	}
}

func (p place) asMap() map[string][]int32 { return map[string][]int32{p.topic: {p.partition}} }

var noTopicID [16]byte

// unfit says why records cannot follow what the lane has; empty if they can.
func (l *lane) unfit(id [16]byte, records []*kgo.Record) string {
	switch {
	case l.topicID != noTopicID && id != noTopicID && id != l.topicID:
		return "the topic was deleted and created anew; its offsets begin again, and what the former one held and was not read is lost. It is read from its beginning"
	case records[0].Offset < l.next:
		return fmt.Sprintf("the log went back from offset %d to %d: the brokers lost records (an unclean election of a leader?). It is read again from the group's offset", l.next, records[0].Offset)
	}
	return ""
}

// Flow pauses or resumes a lane. Records that were polled stay here and are
// delivered after it is resumed.
func (s *Source) Flow(which contract.Lane, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.order {
		if l.id == which && !l.gone {
			l.paused = !on
			s.reflow(l)
		}
	}
	s.gate.rouse()
}

// reflow tells the client what it should fetch of a lane.
func (s *Source) reflow(l *lane) {
	switch {
	case s.member == nil:
	case l.paused || l.full || l.crowded || l.broken != nil:
		s.member.PauseFetchPartitions(l.asMap())
	default:
		s.member.ResumeFetchPartitions(l.asMap())
	}
}

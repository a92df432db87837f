package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/strictjson"
	"github.com/semel-go/semel/internal/worker"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Source reads topics as a member of a consumer group. It implements
// [semel.Source] and [semel.DeadLettering].
type Source struct {
	config     Config
	observer   semel.LaneObserver
	consumer   string // named by DeadLetters
	dialed     dialed
	unanswered unanswered
	dial       dialer // of tests: another network
	// parser and names are of the goroutine that fetches.
	parser strictjson.Parser
	names  names

	gate    gate
	commits committer
	// open ends when Close begins, life when it ends; group is what runs until
	// then.
	open, life context.Context
	shut, end  context.CancelFunc
	group      worker.Group

	// side asks and commits; it is no member of the group.
	side *kgo.Client

	mu     sync.Mutex  // guards the rest; not held while anything is waited for
	member *kgo.Client // the member of the group; nil before joining
	writer *kgo.Client // for dead letters; nil before the first
	closed bool
	// topicIDs are what the topics had when this member joined.
	topicIDs map[string][16]byte
	lanes    map[place]*lane
	// order are the lanes in the order in which Fetch takes turns.
	order []*lane
	turn  int
	epoch uint64
	// back counts what is handed back.
	back   int
	faults faults
	// rejoin is why the member is to be replaced by a new one; replacing while
	// the old one leaves.
	rejoin    string
	replacing bool
	starts    starts
	// lastStates are of lanes lost since the last report.
	lastStates []LaneState
	changed    chan struct{}
}

var (
	_ semel.Source        = (*Source)(nil)
	_ semel.DeadLettering = (*Source)(nil)
)

// New checks the configuration and reports every fault of it. It does not
// connect: the first Fetch does, and says what it finds wrong.
func New(c Config) (*Source, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Source{config: c, lanes: map[place]*lane{}, starts: starts{}, names: names{}, topicIDs: map[string][16]byte{}, commits: newCommitter(), changed: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	s.open, s.shut = context.WithCancel(s.life)
	return s, nil
}

// Lanes sets who is told of partitions that come and go.
func (s *Source) Lanes(o semel.LaneObserver) { s.observer = o }

// Fetch implements semel.Source. The first one connects, checks topics and
// group, and joins; it fails with what is wrong and can be called again. After
// Close its error wraps semel.ErrClosed. An error may come with deliveries:
// other lanes go on.
func (s *Source) Fetch(ctx context.Context, most semel.Bound) ([]semel.Delivery, error) {
	for {
		if err := s.join(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, nil
			}
			return nil, err
		}
		found := s.take(most)
		if len(found.records) > 0 || found.err != nil {
			return s.deliveries(found.records), found.err
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		s.poll(ctx, most.Messages, found)
	}
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
func (s *Source) take(most semel.Bound) found {
	s.mu.Lock()
	defer s.mu.Unlock()
	var f found
	if s.closed {
		f.err = fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)
		return f
	}
	now := time.Now()
	for range s.order {
		s.turn = (s.turn + 1) % len(s.order)
		if l := s.order[s.turn]; !l.blocked() {
			s.back -= l.takeBack(&f, most, now)
			l.takeReady(&f, most, now)
		}
	}
	f.enough = s.back >= mostBack
	f.err = s.faults.take(now)
	return f
}

// add reports whether a record fits, the first one always, and takes it.
func (f *found) add(r *record, most semel.Bound, now time.Time) bool {
	size := int64(len(r.raw.Value))
	if len(f.records) > 0 && (len(f.records) >= most.Messages || f.bytes+size > most.Bytes) {
		return false
	}
	f.bytes += size
	f.records = append(f.records, r)
	r.state, r.at = delivered, now
	r.lane.unsettled++
	r.lane.delivered = max(r.lane.delivered, r.after.offset)
	return true
}

func (l *lane) takeBack(f *found, most semel.Bound, now time.Time) int {
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

func (l *lane) takeReady(f *found, most semel.Bound, now time.Time) {
	n := 0
	for n < len(l.ready) && f.add(l.ready[n], most, now) {
		l.ready[n] = nil
		n++
	}
	l.ready = l.ready[n:]
}

// poll takes records out of the client and gives them to their lanes. It ends
// with ctx, when the gate is roused, and when something handed back is due.
func (s *Source) poll(ctx context.Context, most int, f found) {
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
	s.accept(member, member.PollRecords(ctx, max(1, most)))
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
	if p.Err != nil {
		s.failed(l, topic.Topic, p)
	}
	if l == nil || l.gone {
		return
	}
	if p.HighWatermark > 0 {
		l.end, l.stable = max(l.end, p.HighWatermark), max(l.stable, p.LastStableOffset)
	}
	if len(p.Records) == 0 {
		return
	}
	if reason := l.unfit(topic.TopicID, p.Records); reason != "" {
		l.broken = fmt.Errorf("kafka: topic %s, partition %d: %s", l.topic, l.partition, reason)
		s.faults.add(l.broken)
		s.replace(reason)
		return
	}
	l.add(p.Records)
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
	case l.broken != nil:
		return l.broken.Error()
	case l.topicID != noTopicID && id != noTopicID && id != l.topicID:
		return "the topic was deleted and created anew; its offsets begin again, and what the former one held and was not read is lost. It is read from its beginning"
	case records[0].Offset < l.next:
		return fmt.Sprintf("the log went back from offset %d to %d: the brokers lost records (an unclean election of a leader?). It is read again from the group's offset", l.next, records[0].Offset)
	}
	return ""
}

// Flow pauses or resumes a lane. Records that were polled stay here and are
// delivered after it is resumed.
func (s *Source) Flow(which semel.Lane, on bool) {
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
	case l.paused || l.full || l.broken != nil:
		s.member.PauseFetchPartitions(l.asMap())
	default:
		s.member.ResumeFetchPartitions(l.asMap())
	}
}

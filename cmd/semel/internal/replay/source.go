package replay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
)

// Source is the source for a replay's consumer. Source reads the messages of another source, inner. Messages
// that are too old, and messages that an earlier run of the replay has completed, are left out. Source
// records the progress of each lane.
type Source struct {
	inner   source.Source
	options Options
	pace    pace // used only by the fetching goroutine

	mutex  sync.Mutex
	lanes  map[string]*lane
	order  []string
	counts admin.ReplayCounts
	ended  bool
	fault  error
}

var _ source.Source = (*Source)(nil)

// Options describe which messages are replayed.
type Options struct {
	// Progress is the progress of earlier runs of the replay. Only the lanes of Progress are replayed.
	Progress admin.ReplayProgress
	// Oldest is the earliest time at which a replayed message was sent; zero for no limit. SentAt returns
	// the time at which a message was sent, or zero if unknown.
	Oldest time.Time
	SentAt func(*source.Delivery) time.Time
	// PerSecond is the maximum number of messages per second; 0 means no limit.
	PerSecond int
}

// NewSource returns a source with those messages of inner that are not completed yet.
func NewSource(inner source.Source, o Options) *Source {
	s := &Source{inner: inner, options: o, pace: pace{perSecond: o.PerSecond}, lanes: map[string]*lane{}, counts: o.Progress.Counts}
	for _, l := range o.Progress.Lanes {
		s.order = append(s.order, l.Lane)
		s.lanes[l.Lane] = &lane{ReplayLane: l}
	}
	return s
}

// Lanes implements source.Source.
func (s *Source) Lanes(o source.LaneObserver) { s.inner.Lanes(o) }

// Info implements source.Source.
func (*Source) Info() source.Info { return source.Info{} }

// Flow implements source.Source.
func (s *Source) Flow(l source.Lane, on bool) { s.inner.Flow(l, on) }

// Close implements source.Source.
func (s *Source) Close(ctx context.Context) error { return s.inner.Close(ctx) }

// Fetch implements source.Source. If inner has changed, the source ends, the progress stays recorded, and
// Fault returns the reason. Other errors are returned.
func (s *Source) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	for {
		if most.Messages = s.pace.waitForTokens(ctx, most.Messages); most.Messages == 0 {
			return nil, nil
		}
		all, err := s.inner.Fetch(ctx, most)
		s.pace.spend(len(all))
		wanted, dropped := s.choose(all)
		if len(dropped) > 0 {
			if _, e := s.inner.Settle(ctx, dropped); e != nil && err == nil {
				err = e
			}
		}
		switch {
		case errors.Is(err, source.ErrEnd):
			s.end(nil)
		case isSourceChanged(err):
			s.end(err)
			err = source.ErrEnd
		}
		if err != nil || len(wanted) > 0 || len(all) == 0 {
			return wanted, err
		}
	}
}

func isSourceChanged(err error) bool {
	return errors.Is(err, ErrOther) || errors.Is(err, kafka.ErrRange) || errors.Is(err, semel.ErrClosed)
}

// end ends the source with a reason.
func (s *Source) end(fault error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.ended, s.fault = true, fault
}

// choose splits deliveries into two groups: deliveries for the consumer, and deliveries that are acked
// without processing.
func (s *Source) choose(all []source.Delivery) (wanted []source.Delivery, dropped []source.Settlement) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range all {
		d := &all[i]
		l := s.lane(d.Lane.ID)
		offset := d.Message.Origin.Offset
		ending := open
		if fresh := l.begin(offset); fresh {
			ending = s.refusedOutcome(d)
		} else if offset <= l.After {
			ending = skipped // an earlier run has completed and counted the message
		}
		if ending == open {
			wanted = append(wanted, *d)
			continue
		}
		l.end(offset, ending, &s.counts)
		dropped = append(dropped, source.Settlement{Delivery: d, Kind: semel.Ack, Ending: source.EndSkipped})
	}
	return wanted, dropped
}

// lane returns the lane with this id, and adds the lane if it is unknown.
func (s *Source) lane(id string) *lane {
	l := s.lanes[id]
	if l == nil {
		l = &lane{ReplayLane: admin.ReplayLane{Lane: id, After: -1}}
		s.order = append(s.order, id)
		s.lanes[id] = l
	}
	return l
}

// refusedOutcome returns the outcome of a message that the replay leaves out. For a message that is replayed,
// refusedOutcome returns open.
func (s *Source) refusedOutcome(d *source.Delivery) outcome {
	p, oldest := s.options.Progress, s.options.Oldest
	if oldest.IsZero() && p.Since.IsZero() && p.Until.IsZero() {
		return open
	}
	switch at := s.options.SentAt(d); {
	case at.IsZero():
		return timeless
	case at.Before(p.Since), !p.Until.IsZero() && !at.Before(p.Until):
		return outside
	case at.Before(oldest):
		return tooOld
	}
	return open
}

// Settle implements source.Source.
func (s *Source) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	left, err := s.inner.Settle(ctx, all)
	if err != nil && len(left) == 0 {
		return left, err
	}
	s.recordOutcomes(all, left)
	return left, err
}

// recordOutcomes records the outcomes of acked messages. The slice left has the indexes of messages whose
// ack or nack failed.
func (s *Source) recordOutcomes(all []source.Settlement, left []int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range all {
		if len(left) > 0 && left[0] == i {
			left = left[1:]
			continue
		}
		if e := outcomeOf(all[i].Ending); all[i].Kind == semel.Ack && e != open {
			d := all[i].Delivery
			s.lane(d.Lane.ID).end(d.Message.Origin.Offset, e, &s.counts)
		}
	}
}

// predict acks deliveries and records their predicted outcomes.
func (s *Source) predict(ctx context.Context, all []source.Delivery, endings []outcome) error {
	settled := make([]source.Settlement, len(all))
	s.mutex.Lock()
	for i := range all {
		settled[i] = source.Settlement{Delivery: &all[i], Kind: semel.Ack, Ending: source.EndSkipped}
		s.lane(all[i].Lane.ID).end(all[i].Message.Origin.Offset, endings[i], &s.counts)
	}
	s.mutex.Unlock()
	_, err := s.inner.Settle(ctx, settled)
	return err
}

// Part returns the completed part of the range, from 0 to 1.
func (s *Source) Part() float64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var done, all float64
	for _, l := range s.lanes {
		done += float64(l.After + 1 - l.From)
		all += float64(l.To - l.From)
	}
	if all == 0 {
		return 1
	}
	return done / all
}

// Progress returns the present progress of the replay.
func (s *Source) Progress() (lanes []admin.ReplayLane, counts admin.ReplayCounts) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, id := range s.order {
		lanes = append(lanes, s.lanes[id].ReplayLane)
	}
	return lanes, s.counts
}

// Done reports whether all messages of the range have ended.
func (s *Source) Done() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, l := range s.lanes {
		if len(l.underWay) > 0 {
			return false
		}
	}
	return s.ended && s.fault == nil
}

// Fault returns why the source ended early, or nil.
func (s *Source) Fault() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.fault
}

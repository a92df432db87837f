package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// TopicPlan is the plan for replaying the dead letters of a topic.
type TopicPlan struct {
	// Letters are the dead letters with predicted fates. Dead letters without a row come first, then dead
	// letters with a row. Within each part of Letters, the order is by age, oldest first.
	Letters []Letter
	// undelivered has the dead letters that Receive delivers to the consumer, by index in Letters.
	undelivered map[int]TopicLetter
}

// Receives returns the number of dead letters that have no row and that Receive would deliver.
func (p *TopicPlan) Receives() int { return len(p.undelivered) }

// PlanTopic predicts the fates of a topic's dead letters. The function doubt returns why a dead letter
// without a row must not be delivered to the consumer, or "" if the dead letter may be delivered.
func (b Box) PlanTopic(ctx context.Context, all []TopicLetter, worked func(store.StoredRow) error, doubt func(TopicLetter) string) (*TopicPlan, error) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y TopicLetter) int { return x.at.Compare(y.at) })
	p := &TopicPlan{undelivered: map[int]TopicLetter{}}
	firsts := map[int64]int{} // indexes in Letters, by row
	var numbers []int64
	taken := map[semel.Key]TopicLetter{}
	for i, l := range all {
		if l.Row == 0 {
			p.addWithoutRow(l, taken, doubt)
		} else if _, twice := firsts[l.Row]; !twice {
			firsts[l.Row] = i
			numbers = append(numbers, l.Row)
		}
	}
	rows, err := b.Preview(ctx, admin.Retry, numbers, worked)
	if err != nil {
		return nil, err
	}
	for _, l := range rows {
		first := all[firsts[l.Number]]
		l.Place = first.Place
		p.Letters = append(p.Letters, l)
		for i, again := range all {
			if again.Row == l.Number && i != firsts[l.Number] {
				p.Letters = append(p.Letters, copyOf(l, again))
			}
		}
	}
	return p, nil
}

// copyOf describes a second dead letter of the same row. If a row has two dead letters, only the first dead
// letter is replayed.
func copyOf(of Letter, again TopicLetter) Letter {
	c := of
	c.Number, c.Place, c.lanes, c.originalRow = 0, again.Place, nil, of.Number
	c.Why = fmt.Sprintf("a copy of the message at %s, row %d", of.Place, of.Number)
	if of.Prediction == FateApplied {
		c.Prediction = FateSkipped
	}
	return c
}

func (p *TopicPlan) addWithoutRow(l TopicLetter, taken map[semel.Key]TopicLetter, doubt func(TopicLetter) string) {
	plan := Letter{Place: l.Place, Consumer: l.Consumer, ID: l.ID, IDBase64: l.IDBase64, Reason: l.Reason, Prediction: FateRefused, key: l.key}
	first, again := taken[l.key]
	switch l.Stands {
	case StandsDone:
		plan.Prediction = FateSkipped
	case StandsOther:
		plan.Prediction, plan.Why = FateConflict, l.Why
	case StandsClosed:
		plan.Why = "it was discarded"
	case StandsDue:
		plan.Prediction, plan.Why = FateSkipped, "it waits in the store"
	case StandsAside:
		plan.Why = "its marker says that it was parked, and its row is gone"
	case StandsUnknown:
		why := doubt(l)
		switch {
		case why != "":
			plan.Why = why
		case again && l.print.Conflicts(first.print):
			plan.Prediction, plan.Why = FateConflict, "another content of its identity is in the dead letter at "+first.Place
		case again:
			plan.Prediction, plan.Why = FateSkipped, "a copy of the dead letter at "+first.Place
		default:
			plan.Prediction = FateApplied
			taken[l.key] = l
		}
		if why == "" {
			p.undelivered[len(p.Letters)] = l
		}
	default:
		plan.Why = string(l.Stands) + ": " + cmp.Or(l.Why, "it cannot be replayed")
	}
	p.Letters = append(p.Letters, plan)
}

// Receive delivers the dead letters that have no row to the consumer, in a separate run. The delivered
// messages keep their identities. Receive sets the fates in Letters.
func (b Box) Receive(ctx context.Context, p *TopicPlan, rate float64, run func(context.Context, source.Source) error) error {
	if len(p.undelivered) == 0 {
		return nil
	}
	var order []int
	for i := range p.Letters {
		if _, is := p.undelivered[i]; is {
			order = append(order, i)
		}
	}
	src := &letterSource{rate: rate}
	for _, i := range order {
		d := p.undelivered[i].delivery
		d.Handle = i
		src.all = append(src.all, d)
	}
	src.onSettled = func(i int, s source.Settlement) { b.setReceivedResult(&p.Letters[i], s) }
	err := run(ctx, src)
	for _, i := range order {
		if e := b.settleReceived(context.WithoutCancel(ctx), &p.Letters[i]); e != nil {
			return errors.Join(err, e)
		}
	}
	return err
}

// setReceivedResult sets the fate of a dead letter from the ack or nack of its delivery.
func (b Box) setReceivedResult(l *Letter, s source.Settlement) {
	switch s.Ending {
	case source.EndApplied:
		l.Happened = FateApplied
	case source.EndDuplicate:
		l.Happened = FateSkipped
		if l.Prediction == FateApplied {
			l.Why = "a copy of it took effect meanwhile"
		}
	case source.EndConflict:
		l.Happened = FateConflict
	case source.EndParked, source.EndDeadLettered:
		l.Happened, l.Why = FateFailed, string(s.Reason)+"; semel messages ls shows its row"
	case source.EndDiscarded, source.EndSkipped:
		l.Happened, l.Why = FateDiscarded, string(s.Reason)
	case source.EndReceived, source.EndWaiting, source.EndStepped:
		l.Happened = FateWaits // the message waits in the inbox
	}
}

// settleReceived sets the fate of a dead letter that the inbox processed, or whose delivery was neither acked
// nor nacked.
func (b Box) settleReceived(ctx context.Context, l *Letter) error {
	if l.Happened != "" && l.Happened != FateWaits {
		return nil
	}
	m, found, err := b.Markers.Marker(ctx, l.key)
	switch {
	case err != nil:
		return fmt.Errorf("store %s: dead letter %s: %w", b.Store, l.Place, err)
	case !found:
		l.Happened, l.Why = FateLeft, "the command ended before its turn; start the command again"
	case m.Outcome == store.Applied:
		l.Happened = FateApplied
	case m.Outcome == store.Waiting:
		l.Happened, l.Why = FateWaits, "it is in the inbox"
	case m.Outcome == store.Discarded:
		l.Happened = FateDiscarded
	default:
		l.Happened, l.Why = FateFailed, "semel messages ls shows its row"
	}
	return nil
}

// Copies sets the fates of copies. Call Copies after all other dead letters have ended.
func (p *TopicPlan) Copies() {
	firsts := map[int64]Fate{}
	for _, l := range p.Letters {
		if l.Number > 0 {
			firsts[l.Number] = l.Happened
		}
	}
	for i := range p.Letters {
		l := &p.Letters[i]
		switch first := firsts[l.originalRow]; {
		case l.Happened != "":
		case l.originalRow > 0 && first == FateApplied:
			l.Happened = FateSkipped
		case l.originalRow > 0 && first != "":
			l.Happened = first
		default:
			l.Happened = l.Prediction
		}
	}
}

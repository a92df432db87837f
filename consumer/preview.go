package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Preview predicts how deliveries would end if the consumer received them now. The predictions for deliveries are
// independent: if two deliveries of one new message are passed, Preview predicts for each of the two that it would be
// applied. The caller must find pairs of deliveries of one message by comparing keys and fingerprints. Preview reads
// the store and changes nothing. The predictions are valid until the store changes, and only if the handler does not
// fail. semel.ErrUnsupported means that the store cannot predict (admin.Previewer).
func (c *Consumer[Tx]) Preview(ctx context.Context, all []source.Delivery) ([]admin.Prediction, error) {
	read := make([]*delivery.Delivery, len(all))
	out := make([]admin.Prediction, len(all))
	for i := range all {
		p := delivery.Read(&c.config.rules, &all[i])
		read[i] = p
		out[i] = admin.Prediction{Key: p.Key(c.config.Name), Fingerprint: p.Item.Print, End: c.endWithoutMarker(p)}
		if r := p.Item.Refused; r != nil {
			out[i].Reason = string(r.Reason)
		}
	}
	if !c.config.Strategy.marks() {
		return out, nil
	}
	now, former, err := c.names.Generations(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.previewMarks(ctx, now, read, out, false); err != nil || c.config.PreviousIdentity == nil {
		return out, err
	}
	return out, c.previewMarks(ctx, former, read, out, true)
}

// endWithoutMarker returns how a message without a marker would end.
func (c *Consumer[Tx]) endWithoutMarker(p *delivery.Delivery) source.End {
	then := ActionPark
	switch r := p.Item.Refused; {
	case r == nil && p.Item.Version != nil, r == nil && !c.config.Strategy.marks():
		return source.EndUnknown
	case r == nil && c.config.AckOnReceipt:
		return source.EndReceived
	case r == nil:
		return source.EndApplied
	case r.Foreign && c.config.OnFiltered == OnFilteredSkip:
		return source.EndSkipped
	case r.Foreign && c.config.OnFiltered == OnFilteredDeadLetter:
		then = ActionDeadLetter
	case r.Foreign:
	case r.Unversioned:
		then = c.config.onUnversioned()
	default:
		then = c.config.OnBadIdentity
	}
	return endOf(then)
}

// endOf returns how an action ends a message.
func endOf(then Action) source.End {
	switch then {
	case ActionPark:
		return source.EndParked
	case ActionDeadLetter:
		return source.EndDeadLettered
	case ActionDiscard:
		return source.EndDiscarded
	}
	return source.EndUnknown
}

// previewMarks predicts what the store would answer for the marker of each delivery (new, duplicate, conflict), and
// writes the predictions into the slice out. If the parameter former is set, previewMarks also asks the store about
// the previous identities of deliveries that would be applied or received.
func (c *Consumer[Tx]) previewMarks(ctx context.Context, generation int64, read []*delivery.Delivery, out []admin.Prediction, former bool) error {
	teller, able := c.store.(admin.Previewer)
	if !able {
		return fmt.Errorf("semel: consumer %q: its store cannot predict results: %w", c.config.Name, semel.ErrUnsupported)
	}
	var asked []admin.PreviewQuery
	var of []int
	for i := range read {
		it := &read[i].Item
		q := admin.PreviewQuery{Source: it.Source, Mark: store.Mark{ID: []byte(it.Identity), Fingerprint: it.Print, As: store.Applied}}
		if former {
			if it.Former == nil || out[i].End != source.EndApplied && out[i].End != source.EndReceived {
				continue
			}
			q.Source, q.Mark.ID, q.Mark.Strict = it.Former.Source, []byte(it.Former.Identity), !c.config.PreviousIdentity.TrustUnfingerprinted
		}
		if out[i].End == source.EndSkipped {
			continue
		}
		asked, of = append(asked, q), append(of, i)
	}
	if len(asked) == 0 {
		return nil
	}
	verdicts, err := teller.Preview(ctx, c.config.Name, generation, asked)
	if errors.Is(err, semel.ErrUnsupported) {
		for _, i := range of {
			out[i].End, out[i].Reason = source.EndUnknown, "the store tells only by marking"
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("semel: consumer %q: %w", c.config.Name, err)
	}
	for n, v := range verdicts {
		c.predictEnd(v, &out[of[n]])
	}
	return nil
}

// predictEnd converts the store's answer for a marker to a prediction.
func (c *Consumer[Tx]) predictEnd(v store.Verdict, f *admin.Prediction) {
	switch v.Kind {
	case store.Fresh:
	case store.Seen:
		f.End, f.Was = source.EndDuplicate, v.Was
	case store.Conflict:
		f.End = source.EndConflict
		if v.Known && c.config.OnConflict != ActionKeepFirst {
			f.End, f.Was = source.EndDuplicate, store.Parked
		}
	case store.Newer:
		f.End, f.Reason = source.EndUnknown, "a newer release wrote its marker"
	default:
		f.End, f.Reason = source.EndUnknown, v.String()
	}
}

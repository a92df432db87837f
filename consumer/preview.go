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

// Preview says what would become of deliveries if the consumer got them now, each by itself:
// of two copies that are both new it says of both that they would be applied, and the second
// is a duplicate of the first, or a conflict with it, as their keys and fingerprints tell. It
// asks the store, and changes nothing, so that what is said holds as long as nothing else
// changes there, and as handlers do not fail. semel.ErrUnsupported: the store cannot tell
// (admin.Previewer).
func (c *Consumer[Tx]) Preview(ctx context.Context, all []source.Delivery) ([]admin.Prediction, error) {
	read := make([]*delivery.Delivery, len(all))
	out := make([]admin.Prediction, len(all))
	for i := range all {
		p := delivery.Read(&c.config.rules, &all[i])
		read[i] = p
		out[i] = admin.Prediction{Key: p.Key(c.config.Name), Fingerprint: p.Item.Print, End: c.unmarked(p)}
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
	if err := c.foretellMarks(ctx, now, read, out, false); err != nil || c.config.PreviousIdentity == nil {
		return out, err
	}
	return out, c.foretellMarks(ctx, former, read, out, true)
}

// unmarked is how a message ends of which the store knows nothing.
func (c *Consumer[Tx]) unmarked(p *delivery.Delivery) source.End {
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

// endOf is how a message ends that a policy ends so.
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

// foretellMarks asks for the marks of deliveries, or with former, of what is not marked, for
// those under their former identities.
func (c *Consumer[Tx]) foretellMarks(ctx context.Context, generation int64, read []*delivery.Delivery, out []admin.Prediction, former bool) error {
	teller, able := c.store.(admin.Previewer)
	if !able {
		return fmt.Errorf("semel: consumer %q: its store foretells nothing: %w", c.config.Name, semel.ErrUnsupported)
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
		c.foretold(v, &out[of[n]])
	}
	return nil
}

// foretold puts the answer to a mark into what is told.
func (c *Consumer[Tx]) foretold(v store.Verdict, f *admin.Prediction) {
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

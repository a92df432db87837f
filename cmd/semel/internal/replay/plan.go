package replay

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
)

// Teller predicts the outcomes of deliveries.
type Teller interface {
	Preview(ctx context.Context, all []source.Delivery) ([]admin.Prediction, error)
}

// fetchMost and fetchBytes limit the messages of one call of Preview.
const (
	fetchMost  = 1024
	fetchBytes = 8 << 20
)

// Preview reads a source to the end and predicts the outcomes of its messages. Preview changes nothing.
// Preview calls the function told with the counts of the messages that were read until then; told may be nil.
//
// If the source has two copies of a new message, the first copy counts as applied. The second copy counts as
// a duplicate, or as a conflict if its content differs. Each new message needs some dozens of bytes of
// memory.
func Preview(ctx context.Context, s *Source, t Teller, c consumer.Config, told func(admin.ReplayCounts)) (admin.ReplayCounts, error) {
	s.Lanes(ignoringObserver{})
	copies := copies{seen: map[[16]byte]semel.Fingerprint{}, conflicts: map[[16]byte]bool{}, accept: c.OnConflict == consumer.ActionKeepFirst}
	for {
		all, err := s.Fetch(ctx, source.Bound{Messages: fetchMost, Bytes: fetchBytes})
		if err != nil && !errors.Is(err, source.ErrEnd) {
			return admin.ReplayCounts{}, err
		}
		found, e := t.Preview(ctx, all)
		if e != nil {
			return admin.ReplayCounts{}, e
		}
		endings := make([]outcome, len(all))
		for i := range found {
			endings[i] = copies.outcome(&found[i])
		}
		if e := s.predict(ctx, all, endings); e != nil {
			return admin.ReplayCounts{}, e
		}
		_, counts := s.Progress()
		if told != nil {
			told(counts)
		}
		if err != nil || ctx.Err() != nil {
			return counts, errors.Join(s.Fault(), ctx.Err())
		}
	}
}

// copies remembers the messages of the source that are new to the store.
type copies struct {
	seen      map[[16]byte]semel.Fingerprint
	conflicts map[[16]byte]bool // the conflicts that were found, by identity and content
	accept    bool              // if accept is true, only the first content counts, and a conflict leaves no row
}

func (c *copies) outcome(f *admin.Prediction) outcome {
	switch f.End {
	case source.EndUnknown:
		return unknown
	case source.EndDuplicate, source.EndSkipped:
		return outcomeOf(f.End)
	case source.EndConflict:
		return c.conflict(f)
	}
	key := sumOf(f.Key, semel.Fingerprint{})
	first, known := c.seen[key]
	switch {
	case !known:
		c.seen[key] = f.Fingerprint
		return outcomeOf(f.End)
	case first.Conflicts(f.Fingerprint):
		return c.conflict(f)
	}
	return skipped
}

// conflict returns the outcome of a conflict. A second conflict with the same content is a duplicate of the
// first conflict.
func (c *copies) conflict(f *admin.Prediction) outcome {
	key := sumOf(f.Key, f.Fingerprint)
	if c.conflicts[key] && !c.accept {
		return skipped
	}
	c.conflicts[key] = true
	return conflict
}

func sumOf(k semel.Key, f semel.Fingerprint) (short [16]byte) {
	h := sha256.New()
	for _, part := range []string{k.Source, k.ID} {
		h.Write([]byte{byte(len(part) >> 16), byte(len(part) >> 8), byte(len(part))})
		h.Write([]byte(part))
	}
	h.Write(append([]byte{f.Version}, f.Sum[:]...))
	copy(short[:], h.Sum(nil))
	return short
}

// ignoringObserver is a LaneObserver that ignores all events.
type ignoringObserver struct{}

func (ignoringObserver) Given(source.Lane)                     {}
func (ignoringObserver) Revoking(context.Context, source.Lane) {}
func (ignoringObserver) Lost(source.Lane)                      {}

package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/report"
	"github.com/semel-go/semel/internal/keyclaim"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// leasedKeys runs a flight under the claim of a key.
type leasedKeys struct {
	config   *Options
	keys     keystore.Store
	detour   *FailOpenPath
	reporter *report.Reporter

	mutex sync.Mutex
	// open are the keys of which the store did not answer: whether they are claimed, or
	// ended. Guarded by mutex.
	open map[semel.Key]*openKey
}

// NewLeasedKeys returns the runner of a consumer over keys.
func NewLeasedKeys(o *Options, keys keystore.Store, d *FailOpenPath, n *report.Reporter) *leasedKeys {
	return &leasedKeys{config: o, keys: keys, detour: d, reporter: n, open: map[semel.Key]*openKey{}}
}

// openKey is what is asked again of a key under the same token.
type openKey struct {
	token store.Token
	// ending is of a claim that is to end; nil: it is to be claimed.
	ending *keystore.Ending
}

// Begin claims the key. What the store did not answer of it before is asked again first, under
// the token of then.
func (s *leasedKeys) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (Begun[Call], error) {
	if len(marks) != 1 {
		return Begun[Call]{}, fmt.Errorf("semel: a flight of keys has one message, and this one has %d", len(marks))
	}
	m := &marks[0]
	c := &leasedKey{store: s, key: semel.Key{Consumer: m.Consumer, Source: m.Source, ID: string(m.ID)}, as: m.As}
	c.claim = keyclaim.Claim{Store: s.keys, Key: c.key, Token: store.NewToken(), Lease: o.Lease, Unheeded: s.detour.open()}
	verdict, err := store.Verdict{Kind: store.Fresh}, error(nil)
	if c.unrecorded = s.detour.leads(); c.unrecorded == nil {
		verdict, err = s.claim(ctx, c, m.Fingerprint)
	}
	if err != nil {
		return Begun[Call]{}, err
	}
	return Begun[Call]{Attempt: c, Verdicts: []store.Verdict{verdict}}, nil
}

// claim claims the key of a call.
func (s *leasedKeys) claim(ctx context.Context, c *leasedKey, print semel.Fingerprint) (store.Verdict, error) {
	if before := s.opened(c.key); before != nil && before.ending != nil {
		err := s.keys.EndKey(ctx, c.key, before.token, *before.ending)
		// Where something else took the key's place, nothing can be recorded; what became of
		// the call is known here all the same, and its neighbours are not kept back by it.
		replaced := err != nil && !errors.Is(err, store.ErrClaimLost) && s.keys.Classify(err) == store.ClassPermanent
		switch {
		case replaced:
			s.config.Logger.Warn("a call has ended, and its key cannot say so; a copy of its message is refused", "consumer", c.key.Consumer, "id", c.key.ID, "error", report.Cause(err))
			fallthrough
		case err == nil:
			s.settleOpen(c.key)
			return store.Verdict{Kind: store.Seen, Was: outcomeOf(before.ending)}, nil
		case !errors.Is(err, store.ErrClaimLost):
			return store.Verdict{}, err
		}
	} else if before != nil {
		c.claim.Token = before.token
	}
	s.keepOpen(c.key, &openKey{token: c.claim.Token})
	asked := time.Now()
	answering, cancel := s.detour.within(ctx)
	defer cancel()
	answer, err := s.keys.ClaimKey(answering, keystore.Claim{Key: c.key, Fingerprint: print, Token: c.claim.Token, Lease: c.claim.Lease, Keep: s.config.Keep})
	permanent := err != nil && s.keys.Classify(err) == store.ClassPermanent
	switch {
	case permanent: // of this key alone: its neighbours go on
		s.settleOpen(c.key)
		c.refused = fmt.Errorf("its key cannot be claimed: %w", err)
		return store.Verdict{Kind: store.Fresh}, nil
	case err != nil && s.detour.after(ctx, err):
		c.unrecorded = err
		return store.Verdict{Kind: store.Fresh}, nil
	case err != nil:
		return store.Verdict{}, err
	}
	s.detour.works()
	s.settleOpen(c.key)
	c.answer, c.asked = answer, asked
	if answer.State == keystore.Claimed {
		c.claim.Hold(asked, answer.Left)
	}
	return verdictOf(answer), nil
}

// verdictOf is what an answer means for a mark.
func verdictOf(a keystore.Answer) store.Verdict {
	switch a.State {
	case keystore.Claimed:
		return store.Verdict{Kind: store.Fresh}
	case keystore.Completed:
		return store.Verdict{Kind: store.Seen, Was: store.Applied}
	case keystore.Failed:
		return store.Verdict{Kind: store.Seen, Was: outcomeOf(&keystore.Ending{Event: keystore.Fail, Result: a.Result})}
	case keystore.Conflict:
		return store.Verdict{Kind: store.Conflict}
	}
	return store.Verdict{Kind: store.Busy} // nobody knows how it ends
}

// failedWith is the result of a key that failed for good: how its message ended, and why.
func failedWith(o store.Outcome, why semel.Reason) []byte {
	return append([]byte(o.String()), "\n"+string(why)...)
}

// outcomeOf is the outcome that an ending stands for. What failed by other means than a
// consumer's counts as discarded: its effect is not there, and will not be.
func outcomeOf(e *keystore.Ending) store.Outcome {
	if e.Event == keystore.Complete {
		return store.Applied
	}
	word, _, _ := strings.Cut(string(e.Result), "\n")
	if word == store.DeadLettered.String() {
		return store.DeadLettered
	}
	return store.Discarded
}

// opened is what is open of a key; nil if nothing is.
func (s *leasedKeys) opened(key semel.Key) *openKey {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.open[key]
}

// mostOpen bounds what is remembered of keys whose messages may come no more to this process.
// What is not remembered waits for the end of its lease.
const mostOpen = 100_000

func (s *leasedKeys) keepOpen(key semel.Key, o *openKey) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, there := s.open[key]; there || len(s.open) < mostOpen {
		s.open[key] = o
	}
}

func (s *leasedKeys) settleOpen(key semel.Key) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.open, key)
}

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

// leasedKeys processes each message under the claim of a key.
type leasedKeys struct {
	config   *Options
	keys     keystore.Store
	failOpen *FailOpenPath
	reporter *report.Reporter

	mutex sync.Mutex
	// openKeys contains the keys for which the store did not respond to a request to claim or end the key;
	// guarded by mutex.
	openKeys map[semel.Key]*openKey
}

// NewLeasedKeys returns the runner of NewKeyed.
func NewLeasedKeys(o *Options, keys keystore.Store, d *FailOpenPath, n *report.Reporter) *leasedKeys {
	return &leasedKeys{config: o, keys: keys, failOpen: d, reporter: n, openKeys: map[semel.Key]*openKey{}}
}

// openKey is a request to claim or end a key that is repeated with the same token.
type openKey struct {
	token store.Token
	// ending is how the key must end, or nil if the key must be claimed.
	ending *keystore.Ending
}

// Begin claims the key. If the store did not respond to an earlier request for the key, Begin first repeats that
// request with the same token.
func (s *leasedKeys) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (Begun[Call], error) {
	if len(marks) != 1 {
		return Begun[Call]{}, fmt.Errorf("semel: a flight of keys has one message, and this one has %d", len(marks))
	}
	m := &marks[0]
	c := &leasedKey{store: s, key: semel.Key{Consumer: m.Consumer, Source: m.Source, ID: string(m.ID)}, as: m.As}
	c.claim = keyclaim.Claim{Store: s.keys, Key: c.key, Token: store.NewToken(), Lease: o.Lease, Unheeded: s.failOpen.isAllowed()}
	verdict, err := store.Verdict{Kind: store.Fresh}, error(nil)
	if c.unrecorded = s.failOpen.downError(); c.unrecorded == nil {
		verdict, err = s.claim(ctx, c, m.Fingerprint)
	}
	if err != nil {
		return Begun[Call]{}, err
	}
	return Begun[Call]{Attempt: c, Verdicts: []store.Verdict{verdict}}, nil
}

// claim claims the key of c and returns whether the message is new, a duplicate or a conflict.
func (s *leasedKeys) claim(ctx context.Context, c *leasedKey, print semel.Fingerprint) (store.Verdict, error) {
	if before := s.findOpenKey(c.key); before != nil && before.ending != nil {
		err := s.keys.EndKey(ctx, c.key, before.token, *before.ending)
		// Another program has stored a value under the key, so the end cannot be recorded. The current process knows
		// the outcome of the call, and other keys must not wait for this key.
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
	s.addOpenKey(c.key, &openKey{token: c.claim.Token})
	asked := time.Now()
	answering, cancel := s.failOpen.requestContext(ctx)
	defer cancel()
	answer, err := s.keys.ClaimKey(answering, keystore.Claim{Key: c.key, Fingerprint: print, Token: c.claim.Token, Lease: c.claim.Lease, Keep: s.config.Keep})
	permanent := err != nil && s.keys.Classify(err) == store.ClassPermanent
	switch {
	case permanent: // an error of this key alone, so other keys continue
		s.settleOpen(c.key)
		c.refused = fmt.Errorf("its key cannot be claimed: %w", err)
		return store.Verdict{Kind: store.Fresh}, nil
	case err != nil && s.failOpen.canApplyWithoutKey(ctx, err):
		c.unrecorded = err
		return store.Verdict{Kind: store.Fresh}, nil
	case err != nil:
		return store.Verdict{}, err
	}
	s.failOpen.recordResponse()
	s.settleOpen(c.key)
	c.answer, c.requestedAt = answer, asked
	if answer.State == keystore.Claimed {
		c.claim.Hold(asked, answer.Left)
	}
	return verdictOf(answer), nil
}

// verdictOf converts a keystore.Answer to a store.Verdict.
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
	return store.Verdict{Kind: store.Busy} // the outcome is still open
}

// failureResult returns the result that is stored in a permanently failed key: the outcome of the key's message, and
// the reason.
func failureResult(o store.Outcome, why semel.Reason) []byte {
	return append([]byte(o.String()), "\n"+string(why)...)
}

// outcomeOf returns the outcome of a message whose key has ended with e. If the result of a failed key was not written
// by a consumer, the message counts as discarded, because its effect did not happen and will not happen.
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

// findOpenKey returns the request for a key to which the store did not respond, or nil if there is no such request.
func (s *leasedKeys) findOpenKey(key semel.Key) *openKey {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.openKeys[key]
}

// mostOpen is the maximum number of remembered keys for which the store did not respond. The messages of these keys may
// never be delivered to this process again. A key that is not remembered becomes free when its lease ends.
const mostOpen = 100_000

func (s *leasedKeys) addOpenKey(key semel.Key, o *openKey) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, there := s.openKeys[key]; there || len(s.openKeys) < mostOpen {
		s.openKeys[key] = o
	}
}

func (s *leasedKeys) settleOpen(key semel.Key) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.openKeys, key)
}

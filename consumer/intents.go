package consumer

import (
	"context"
	"fmt"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/scopes"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/intents"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// Intents writes intents into the inbox of their senders, in the caller's transaction. The intents are sent after the
// caller's transaction has committed. If the transaction rolls back, the intents do not exist. A sender is a consumer
// whose name is Intent.To, with StrategyInbox and without a Source, usually created with NewLeased. Intents is safe for
// concurrent use.
type Intents[Tx any] struct {
	store      store.TxStore[Tx]
	caller     store.CallerTx[Tx]
	queue      admin.QueueStore[Tx]
	suppressed bool
	senders    *senders[Tx]
}

// senders caches the numbers of sources in the store, for each sender.
type senders[Tx any] struct {
	mutex sync.Mutex
	known map[string]*scopes.Cache[Tx] // guarded by mutex
}

// NewIntents returns an Intents that writes in transactions of the store. Senders read Semel's own tables. Pass the
// store that has Semel's own tables, not a store that is derived from it, such as a store with an adopted table.
// NewIntents rejects a store that partitions markers by day (semel.ErrUnsupported). On a store with an adopted table
// (see sqlstore.Store.Adopt) each Write fails: such a store accepts only its one consumer, and the sender of an intent
// is another consumer.
func NewIntents[Tx any](st store.TxStore[Tx]) (*Intents[Tx], error) {
	w := &Intents[Tx]{store: st, senders: &senders[Tx]{known: map[string]*scopes.Cache[Tx]{}}}
	if st.Limits().PartitionedBy != "" {
		return nil, fmt.Errorf("semel: the store partitions markers by day, and senders cannot find intents there; pass the store from which it was derived: %w", semel.ErrUnsupported)
	}
	w.caller, _ = st.(store.CallerTx[Tx])
	w.queue, _ = st.(admin.QueueStore[Tx])
	if !claimsRows(st) || w.queue == nil && w.caller == nil {
		return nil, fmt.Errorf("semel: the store cannot write intents into an inbox in your transaction: %w", semel.ErrUnsupported)
	}
	return w, nil
}

// Suppressed returns an Intents that parks the intents with the reason "suppressed". Suppressed intents are
// counted and listed. A suppressed intent is sent only if an operator retries it.
func (w *Intents[Tx]) Suppressed() *Intents[Tx] {
	other := *w
	other.suppressed = true
	return &other
}

// Write writes intents in tx, which is a handler's transaction or a transaction that the caller has opened. The program
// that has opened tx commits tx. The parameter cause is the message that the handler got. Outside a handler, the
// parameter cause is nil and each intent needs an ID.
//
// An intent that already exists with the same content is left unchanged, because an earlier run of the handler or the
// handling of a duplicate has written it. After an error tx must be rolled back, as after an error of a handler.
// semel.ErrIntent is a permanent error and means that an intent with the same id but other content exists. If tx queues
// its statements, the conflict of content is found only during the commit, and the message then fails with
// semel.ErrIntent. If the message belongs to a replay without effects, Write parks the intents, as Suppressed does.
func (w *Intents[Tx]) Write(ctx context.Context, tx Tx, cause *semel.Message, all ...semel.Intent) error {
	if isReplayWithoutEffects(cause) {
		w = w.Suppressed()
	}
	marks := make([]store.Mark, len(all))
	messages := make([]*semel.Message, len(all))
	for i := range all {
		key, m, err := intents.Message(cause, &all[i])
		if err != nil {
			return semel.Permanent(fmt.Errorf("semel: intent %d: %w; nothing was written", i, err))
		}
		scope, err := w.senders.cacheOf(w.store, key.Consumer).NumberIn(ctx, tx, scopes.Of{Source: key.Source})
		if err != nil {
			return err
		}
		marks[i] = store.Mark{Scope: scope, Consumer: key.Consumer, Source: key.Source, ID: []byte(key.ID), Fingerprint: intents.Print(&all[i]), As: store.Waiting}
		if cause != nil {
			marks[i].Cause = intents.Cause(cause.Identity)
		}
		if w.suppressed {
			marks[i].As = store.Parked
		}
		messages[i] = m
	}
	if len(all) == 0 {
		return nil
	}
	return w.write(ctx, tx, marks, messages, func(verdicts []store.Verdict) error { return intents.Judge(all, verdicts) })
}

// write writes markers and rows of the intents, and passes the store's answers (new, duplicate, conflict) to judge.
func (w *Intents[Tx]) write(ctx context.Context, tx Tx, marks []store.Mark, messages []*semel.Message, judge func([]store.Verdict) error) error {
	reason := reasonname.None
	if w.suppressed {
		reason = reasonname.Suppressed
	}
	if w.caller == nil {
		return w.queue.ReceiveQueued(tx, marks, messages, reason, judge)
	}
	verdicts, err := w.caller.ReceiveIn(ctx, tx, marks, messages, reason)
	if err != nil {
		return err
	}
	return judge(verdicts)
}

// cacheOf returns the cache of a sender.
func (s *senders[Tx]) cacheOf(st store.TxStore[Tx], name string) *scopes.Cache[Tx] {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known[name] == nil {
		if len(s.known) >= scopes.Most {
			clear(s.known)
		}
		s.known[name] = scopes.New[Tx](name, st, st.Limits().SingleWriter)
	}
	return s.known[name]
}

// isReplayWithoutEffects reports whether a message belongs to a replay that must have no effects in other systems.
func isReplayWithoutEffects(m *semel.Message) bool {
	if m == nil {
		return false
	}
	r, is := m.Replay()
	return is && !r.Effects
}

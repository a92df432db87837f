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

// Intents writes intents into the inbox of their senders, in the transactions of others:
// when such a transaction commits they wait there, and when it rolls back there are none.
// A sender is a consumer of the name that Intent.To gives, with StrategyInbox and without a
// Source, mostly one that NewLeased made. Intents may be used by several
// goroutines.
type Intents[Tx any] struct {
	store      store.TxStore[Tx]
	caller     store.CallerTx[Tx]
	queue      admin.QueueStore[Tx]
	suppressed bool
	senders    *senders[Tx]
}

// senders remembers the scopes of the consumers that intents are addressed to.
type senders[Tx any] struct {
	mutex sync.Mutex
	known map[string]*scopes.Cache[Tx] // guarded by mutex
}

// NewIntents returns what writes intents in transactions of the store. Senders find them
// in Semel's own tables, so a store that keeps markers by day is refused with
// semel.ErrUnsupported, and one that marks in a table of the user's fails with each Write,
// as it serves one consumer alone: give the store that it was made of.
func NewIntents[Tx any](st store.TxStore[Tx]) (*Intents[Tx], error) {
	w := &Intents[Tx]{store: st, senders: &senders[Tx]{known: map[string]*scopes.Cache[Tx]{}}}
	if st.Limits().PartitionedBy != "" {
		return nil, fmt.Errorf("semel: the store keeps markers by day, where no sender finds intents; give the one that it was made of: %w", semel.ErrUnsupported)
	}
	w.caller, _ = st.(store.CallerTx[Tx])
	w.queue, _ = st.(admin.QueueStore[Tx])
	if !claimsRows(st) || w.queue == nil && w.caller == nil {
		return nil, fmt.Errorf("semel: the store has no inbox that intents could be written into in a transaction: %w", semel.ErrUnsupported)
	}
	return w, nil
}

// Suppressed returns what writes the same intents parked, with reason "suppressed":
// they are counted and shown, and not sent unless somebody says so.
func (w *Intents[Tx]) Suppressed() *Intents[Tx] {
	other := *w
	other.suppressed = true
	return &other
}

// Write writes intents in tx, which its caller commits: a handler's, or one that the user
// opened. cause is the message that the handler was given, or nil where there is none; then
// each intent has an ID. One that is there with the same content, since a copy of the
// message or an earlier run of the handler has written it, is left as it is. An error says
// that tx must be rolled back, as that of a handler is; semel.ErrIntent, for good, that one
// is there with another content. Where tx queues its statements that is found before the
// commit, and is the message's error then. Of a message in a replay without effects they are
// written as Suppressed does it.
func (w *Intents[Tx]) Write(ctx context.Context, tx Tx, cause *semel.Message, all ...semel.Intent) error {
	if quiet(cause) {
		w = w.Suppressed()
	}
	marks := make([]store.Mark, len(all))
	messages := make([]*semel.Message, len(all))
	for i := range all {
		key, m, err := intents.Message(cause, &all[i])
		if err != nil {
			return semel.Permanent(fmt.Errorf("semel: intent %d: %w; nothing was written", i, err))
		}
		scope, err := w.senders.of(w.store, key.Consumer).NumberIn(ctx, tx, scopes.Of{Source: key.Source})
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

// write marks the intents, writes their rows, and has the verdicts judged.
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

// of returns the scopes of a sender.
func (s *senders[Tx]) of(st store.TxStore[Tx], name string) *scopes.Cache[Tx] {
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

// quiet reports whether a message is part of a replay without effects.
func quiet(m *semel.Message) bool {
	if m == nil {
		return false
	}
	r, is := m.Replay()
	return is && !r.Effects
}

package consumer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/digest"
)

// Intents writes intents into the inbox of their senders, in the transactions of others:
// when such a transaction commits they wait there, and when it rolls back there are none.
// A sender is a consumer of the name that Intent.To gives, with StrategyInbox and without a
// Source, mostly one of a store that Leased made. Intents may be used by several
// goroutines.
type Intents[Tx any] struct {
	store      contract.TxStore[Tx]
	receiver   contract.TxReceiver[Tx]
	parker     contract.TxParker[Tx]
	queue      contract.QueueReceiver[Tx]
	suppressed bool
	senders    *senders[Tx]
}

// senders remembers the scopes of the consumers that intents are addressed to.
type senders[Tx any] struct {
	mutex sync.Mutex
	known map[string]*scopes[Tx] // guarded by mutex
}

// NewIntents returns what writes intents in transactions of the store. Senders find them
// in Semel's own tables, so a store that keeps markers by day is refused with
// semel.ErrUnsupported, and one that marks in a table of the user's fails with each Write,
// as it serves one consumer alone: give the store that it was made of.
func NewIntents[Tx any](store contract.TxStore[Tx]) (*Intents[Tx], error) {
	w := &Intents[Tx]{store: store, senders: &senders[Tx]{known: map[string]*scopes[Tx]{}}}
	if keeper, ok := store.(contract.DayKeeper); ok && keeper.KeepsDays() != "" {
		return nil, fmt.Errorf("semel: the store keeps markers by day, where no sender finds intents; give the one that it was made of: %w", semel.ErrUnsupported)
	}
	w.receiver, _ = store.(contract.TxReceiver[Tx])
	w.parker, _ = store.(contract.TxParker[Tx])
	w.queue, _ = store.(contract.QueueReceiver[Tx])
	if _, keeps := store.(contract.Leases); !keeps || w.queue == nil && (w.receiver == nil || w.parker == nil) {
		return nil, fmt.Errorf("semel: the store has no inbox that intents could be written into in a transaction: %w", semel.ErrUnsupported)
	}
	return w, nil
}

// Suppressed returns what writes the same intents parked, with semel.ReasonSuppressed:
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
// commit, and is the message's error then.
func (w *Intents[Tx]) Write(ctx context.Context, tx Tx, cause *semel.Message, intents ...semel.Intent) error {
	marks := make([]contract.Mark, len(intents))
	messages := make([]*semel.Message, len(intents))
	for i := range intents {
		key, m, err := message(cause, &intents[i])
		if err != nil {
			return semel.Permanent(fmt.Errorf("semel: intent %d: %w; nothing was written", i, err))
		}
		scope, err := w.senders.of(w.store, key.Consumer).numberIn(ctx, tx, scopeOf{source: key.Source})
		if err != nil {
			return err
		}
		marks[i] = contract.Mark{Scope: scope, ID: []byte(key.ID), Fingerprint: printOf(&intents[i]), As: contract.Waiting}
		if w.suppressed {
			marks[i].As = contract.Parked
		}
		messages[i] = m
	}
	if len(intents) == 0 {
		return nil
	}
	return w.write(ctx, tx, marks, messages, func(verdicts []contract.Verdict) error { return judgeIntents(intents, verdicts) })
}

// write marks the intents, writes their rows, and has the verdicts judged.
func (w *Intents[Tx]) write(ctx context.Context, tx Tx, marks []contract.Mark, messages []*semel.Message, judge func([]contract.Verdict) error) error {
	reason := semel.ReasonNone
	if w.suppressed {
		reason = semel.ReasonSuppressed
	}
	if w.queue != nil {
		return w.queue.ReceiveQueued(tx, marks, messages, reason, judge)
	}
	var verdicts []contract.Verdict
	var err error
	if w.suppressed {
		verdicts, err = w.parker.ParkIn(ctx, tx, marks, messages, reason)
	} else {
		verdicts, err = w.receiver.ReceiveIn(ctx, tx, marks, messages)
	}
	if err != nil {
		return err
	}
	return judge(verdicts)
}

// judgeIntents is an error unless each intent is there as it is meant.
func judgeIntents(intents []semel.Intent, verdicts []contract.Verdict) error {
	for i, v := range verdicts {
		switch {
		case v.Kind == contract.Fresh || v.Kind == contract.Seen:
		case v.Kind == contract.Conflict:
			return semel.Permanent(fmt.Errorf("intent %d, to %q for %q: %w; make it of the message alone, not of the time or of what changes", i, intents[i].To, intents[i].Purpose, semel.ErrIntent))
		case v.Kind == contract.Newer:
			return fmt.Errorf("semel: intent %d: a newer release wrote its marker (outcome %d); roll back: %w", i, int64(v.Was), semel.ErrSchema)
		default:
			return fmt.Errorf("semel: intent %d was not written: the store says %v; roll back and try again", i, v)
		}
	}
	return nil
}

// of returns the scopes of a sender.
func (s *senders[Tx]) of(store contract.TxStore[Tx], name string) *scopes[Tx] {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known[name] == nil {
		if len(s.known) >= maxScopes {
			clear(s.known)
		}
		s.known[name] = &scopes[Tx]{consumer: name, store: store}
	}
	return s.known[name]
}

// sourceOfIntents is the source of intents that no message caused.
const sourceOfIntents = "intents"

// message is an intent as its sender gets it, and its identity.
func message(cause *semel.Message, n *semel.Intent) (semel.Key, *semel.Message, error) {
	key := semel.Key{Consumer: n.To, Source: sourceOfIntents, ID: n.ID}
	switch {
	case n.To == "":
		return key, nil, errors.New("its To is empty; name the consumer that sends it")
	case cause == nil && n.ID == "":
		return key, nil, errors.New("no message causes it and its ID is empty; give it one that stays the same when it is written again")
	case cause != nil && cause.Identity.ID == "":
		return key, nil, errors.New("the message that causes it has no Identity; pass the one that the handler was given")
	case n.ID == "" && n.Purpose == "":
		return key, nil, errors.New("its Purpose is empty; say what it is for, so that each intent of a message has an id of its own")
	case len(n.ID) > semel.MaxID:
		return key, nil, fmt.Errorf("its ID has %d bytes; %d are the most", len(n.ID), semel.MaxID)
	}
	m := &semel.Message{Body: n.Body, Origin: semel.Origin{Partition: -1, Offset: -1}}
	if cause != nil {
		key.Source = url.PathEscape(cause.Identity.Consumer)
		m.Headers = cause.Causation()
		if n.ID == "" {
			key.ID = cause.OutputID(n.Purpose, n.Recipient)
		}
	}
	if n.Recipient != "" {
		m.Key = []byte(n.Recipient)
	}
	if n.Key != "" {
		m.Headers = append(m.Headers, semel.Header{Name: semel.HeaderIntentKey, Value: []byte(n.Key)})
	}
	m.Attributes = semel.Attributes{ID: key.ID, Source: key.Source, Type: n.Type, Subject: n.Purpose}
	m.Headers = append(m.Headers, without(n.Headers, m.Headers)...)
	return key, m, nil
}

// without are the headers that have none of the names of others.
func without(headers, others semel.Headers) (rest semel.Headers) {
	for _, h := range headers {
		if _, taken := others.Get(h.Name); !taken {
			rest = append(rest, h)
		}
	}
	return rest
}

// fingerprintIntent is the version of the fingerprints of intents; package identity keeps
// it free.
const fingerprintIntent = 15

// printOf recognises the content of an intent. What caused it is left out: trace context
// differs between copies of one message.
func printOf(n *semel.Intent) semel.Fingerprint {
	h := sha256.New()
	digest.Begin(h, "intent/1")
	for _, part := range [][]byte{[]byte(n.Key), []byte(n.Type), []byte(n.Recipient), n.Body} {
		digest.Part(h, part)
	}
	for _, header := range n.Headers {
		digest.Part(h, []byte(header.Name))
		digest.Part(h, header.Value)
	}
	f := semel.Fingerprint{Version: fingerprintIntent}
	copy(f.Sum[:], h.Sum(nil))
	return f
}

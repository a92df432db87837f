// Package intents makes of an intent the message that its sender gets, recognises it
// when it is written again, and judges what a store says of it. It does nothing itself, so
// that the simulator proves the rules that consumers follow.
package intents

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/digest"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/store"
)

// Judge is an error unless each intent is there as it is meant.
func Judge(intents []semel.Intent, verdicts []store.Verdict) error {
	for i, v := range verdicts {
		switch {
		case v.Kind == store.Fresh || v.Kind == store.Seen:
		case v.Kind == store.Conflict:
			return semel.Permanent(fmt.Errorf("intent %d, to %q for %q: %w; make it of the message alone, not of the time or of what changes", i, intents[i].To, intents[i].Purpose, semel.ErrIntent))
		case v.Kind == store.Newer:
			return fmt.Errorf("semel: intent %d: a newer release wrote its marker (outcome %d); roll back: %w", i, int64(v.Was), semel.ErrSchema)
		default:
			return fmt.Errorf("semel: intent %d was not written: the store says %v; roll back and try again", i, v)
		}
	}
	return nil
}

// sourceOfIntents is the source of intents that no message caused.
const sourceOfIntents = "intents"

// Message is an intent as its sender gets it, and its identity.
func Message(cause *semel.Message, n *semel.Intent) (semel.Key, *semel.Message, error) {
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
		m.Headers = append(m.Headers, semel.Header{Name: semelheader.IntentKey, Value: []byte(n.Key)})
	}
	m.Attributes = semel.Attributes{ID: key.ID, Source: key.Source, Type: n.Type, Subject: n.Purpose}
	m.Headers = append(m.Headers, without(n.Headers, m.Headers)...)
	return key, m, nil
}

// Cause stands for a message in the rows of what it caused.
func Cause(key semel.Key) []byte {
	h := sha256.New()
	digest.Begin(h, "cause/1")
	for _, part := range []string{key.Consumer, key.Source, key.ID} {
		digest.Part(h, []byte(part))
	}
	return h.Sum(nil)[:16]
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

// Print recognises the content of an intent. What caused it is left out: trace context
// differs between copies of one message.
func Print(n *semel.Intent) semel.Fingerprint {
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

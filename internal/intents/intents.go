// Package intents converts an intent to the message for its sender, recognises an intent that is written again, and
// checks the store's answer (new, duplicate, conflict). The package has no side effects, so that the simulator can test
// the same rules that consumers follow.
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

// Judge returns an error if an intent is stored with other content.
func Judge(intents []semel.Intent, verdicts []store.Verdict) error {
	for i, v := range verdicts {
		switch {
		case v.Kind == store.Fresh || v.Kind == store.Seen:
		case v.Kind == store.Conflict:
			return semel.Permanent(fmt.Errorf("intent %d, to %q for %q: %w; compute it from the message only, not from the time or other values that change", i, intents[i].To, intents[i].Purpose, semel.ErrIntent))
		case v.Kind == store.Newer:
			return fmt.Errorf("semel: intent %d: a newer release wrote its marker (outcome %d); roll back: %w", i, int64(v.Was), semel.ErrSchema)
		default:
			return fmt.Errorf("semel: intent %d was not written: the store's verdict is %v; roll back and try again", i, v)
		}
	}
	return nil
}

// sourceOfIntents is the source of intents that were not caused by a message.
const sourceOfIntents = "intents"

// Message returns the identity and the message of an intent. The sender of the intent gets the message.
func Message(cause *semel.Message, n *semel.Intent) (semel.Key, *semel.Message, error) {
	key := semel.Key{Consumer: n.To, Source: sourceOfIntents, ID: n.ID}
	switch {
	case n.To == "":
		return key, nil, errors.New("the field To is empty; set it to the consumer that sends the intent")
	case cause == nil && n.ID == "":
		return key, nil, errors.New("no message causes the intent and ID is empty; set an ID that is the same when the intent is written again")
	case cause != nil && cause.Identity.ID == "":
		return key, nil, errors.New("the message that causes the intent has no Identity; pass the message that the handler got")
	case n.ID == "" && n.Purpose == "":
		return key, nil, errors.New("the field Purpose is empty; set it, so that each intent of a message has its own id")
	case len(n.ID) > semel.MaxID:
		return key, nil, fmt.Errorf("ID has %d bytes; the maximum is %d", len(n.ID), semel.MaxID)
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
	m.Headers = append(m.Headers, excludeHeaders(n.Headers, m.Headers)...)
	return key, m, nil
}

// Cause returns the identifier of a message. The rows of the message's intents store the identifier of the message.
func Cause(key semel.Key) []byte {
	h := sha256.New()
	digest.Begin(h, "cause/1")
	for _, part := range []string{key.Consumer, key.Source, key.ID} {
		digest.Part(h, []byte(part))
	}
	return h.Sum(nil)[:16]
}

// excludeHeaders returns those headers whose names are not in others.
func excludeHeaders(headers, others semel.Headers) (rest semel.Headers) {
	for _, h := range headers {
		if _, taken := others.Get(h.Name); !taken {
			rest = append(rest, h)
		}
	}
	return rest
}

// fingerprintIntent is the version of the fingerprints of intents. Package identity does not use this
// version.
const fingerprintIntent = 15

// Print returns the fingerprint of an intent. Print does not use the message that caused the intent, because
// trace context differs between copies of one message.
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

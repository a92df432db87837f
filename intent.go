package semel

import (
	"errors"

	"github.com/semel-go/semel/internal/semelheader"
)

// Intent is a request to another system, such as a mail, a payment or a record for a topic. A handler writes the intent
// in its transaction, and the request is sent after the commit. The intent becomes a message for the consumer that To
// names. The consumer To sends the request; see consumer.Intents.
type Intent struct {
	// To is the name of the consumer that sends the intent. Required.
	To string
	// Purpose ("confirmation") and Recipient determine the intent's id, together with the message that causes the
	// intent (Message.OutputID). The id is the same for every attempt, copy and replay of the message that causes the
	// intent. Purpose is required if a message causes the intent. Recipient may be empty. Recipient becomes the Key of
	// the sender's message.
	Purpose, Recipient string
	// ID, if set, replaces the derived id. ID is required if no message causes the intent. Each intent of a sender must
	// have its own ID.
	ID string
	// Key, if set, is the idempotency key for the other system, for example an order number that is unique
	// there. If Key is empty, a key is derived from the intent's identity; see Message.IntentKey.
	Key string
	// Type is the type of the sender's message.
	Type string
	Body []byte
	// Headers are additional headers of the sender's message. The additional headers follow the headers of
	// Message.Causation. A header with the same name as a header of Message.Causation is dropped.
	Headers Headers
}

// ErrIntent means that an intent with this id but other content exists. The existing intent was not changed, and the
// caller must roll back the transaction. A handler gets ErrIntent when it runs again and computes an intent from other
// data than the message, such as the current time.
var ErrIntent = errors.New("semel: an intent of this id was written before with another content")

// IntentKey returns the idempotency key of an intent for the other system: Intent.Key or, if Intent.Key was not set,
// IdempotencyKey of the step. Call IntentKey only in senders, whose messages are all intents. IntentKey reads the key
// from a header, and in any other message the producer could have set that header.
func (m *Message) IntentKey(step string) string {
	if key, ok := m.Headers.Get(semelheader.IntentKey); ok && len(key) > 0 {
		return string(key)
	}
	return m.IdempotencyKey(step)
}

package semel

import (
	"errors"

	"github.com/semel-go/semel/internal/semelheader"
)

// Intent is an effect outside of the database that a handler writes down, to be carried
// out after its commit: a mail, a payment, a record of a topic. It becomes a message for
// the consumer that it is addressed to, its sender; see consumer.Intents.
type Intent struct {
	// To is the name of the consumer that sends it. Required.
	To string
	// Purpose ("confirmation") and Recipient make the intent's id together with the
	// message that causes it: the same for every attempt, copy and replay of that message
	// (Message.OutputID). Purpose is required where there is such a message. Recipient may
	// be empty; it is also the Key of the message that the sender gets.
	Purpose, Recipient string
	// ID, if set, takes the place of that id. It is required where no message is the cause,
	// and must be one intent's of its sender.
	ID string
	// Key, if set, is the idempotency key that the other side gets: a number of the user's
	// that it keeps unique. Without it there is one made of the intent's identity; see
	// Message.IntentKey.
	Key string
	// Type is that of the message that the sender gets.
	Type string
	Body []byte
	// Headers are further ones. The sender gets them behind those that tell what caused the
	// intent (Message.Causation), unless they have the name of one of these.
	Headers Headers
}

// ErrIntent: an intent of this id is there with another content; it is as it was, and the
// transaction must be rolled back. A handler that computes an intent from anything but
// its message, such as the time, meets it when it runs again.
var ErrIntent = errors.New("semel: an intent of this id was written before with another content")

// IntentKey is the idempotency key that a sender gives to the other side for an intent:
// Intent.Key, if it has one, otherwise IdempotencyKey of the step. It is for senders,
// whose messages are all intents: any other message can bring the header that it is read
// from.
func (m *Message) IntentKey(step string) string {
	if key, ok := m.Headers.Get(semelheader.IntentKey); ok && len(key) > 0 {
		return string(key)
	}
	return m.IdempotencyKey(step)
}

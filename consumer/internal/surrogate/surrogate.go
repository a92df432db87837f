// Package surrogate computes ids for messages that have no usable identity.
package surrogate

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/brokerheader"
	"github.com/semel-go/semel/internal/digest"
	"github.com/semel-go/semel/internal/selectors"
)

// Source is the source of messages without a usable identity.
const Source = selectors.ReservedSource + "surrogate"

// Of returns an id for a message that has no usable identity, so that the message can be parked and its copies can be
// counted. The id consists of the message's position or id in the broker and a hash of the body. So another message at
// the same position (of a recreated topic or a replaced file) has another id. If the message has neither a position nor
// an id in the broker, the result is a hash of headers and body. The result is never the id of an applied message.
func Of(m *semel.Message) string {
	sum := contentSum(m)
	where := ""
	switch {
	case m.Origin.BrokerID != "":
		where = "broker id " + strconv.Quote(m.Origin.BrokerID)
	case m.Origin.Offset >= 0:
		where = "offset " + strconv.FormatInt(m.Origin.Offset, 10)
		if m.Origin.Partition >= 0 {
			where = "partition " + strconv.Itoa(int(m.Origin.Partition)) + " " + where
		}
	}
	if name := where + " of " + strconv.Quote(m.Topic) + " content " + sum; where != "" && len(name) <= semel.MaxID {
		return name
	}
	return "content " + sum
}

// contentSum returns a hash of the body. If the message has neither a position nor an id in the broker, the hash also
// covers those headers that all copies have.
func contentSum(m *semel.Message) string {
	h := sha256.New()
	digest.Begin(h, "surrogate/1")
	digest.Part(h, m.Body)
	if m.Origin.BrokerID == "" && m.Origin.Offset < 0 {
		digest.Part(h, m.Key)
		for i := range m.Headers {
			if brokerheader.Set(m.Headers[i].Name) {
				continue
			}
			digest.Part(h, []byte(strings.ToLower(m.Headers[i].Name)))
			digest.Part(h, m.Headers[i].Value)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

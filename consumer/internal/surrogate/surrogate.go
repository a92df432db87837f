// Package surrogate names deliveries that have no usable identity.
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

// Of returns a name for a delivery that has no usable identity, so that it can be parked and its
// copies can be counted. The name consists of the broker's coordinates or id of the message, and of
// a hash of the body, so that another message with the same coordinates (of a recreated topic or a
// replaced file) has another name. Without coordinates and id it is a hash of headers and body. It
// is never the id of an effect.
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

// contentSum returns a hash of the body and, without coordinates and id, of the headers that copies
// share.
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

package consumer

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/brokerheader"
	"github.com/semel-go/semel/internal/digest"
)

// surrogateSource is the source of messages without a usable identity.
const surrogateSource = identity.ReservedSource + "surrogate"

// surrogate names a delivery that has no usable identity, so that it can be
// set aside and its copies be counted. It is made of the broker's coordinates
// or its id of the message, and of the body, so that another message that got
// the same coordinates (a recreated topic, a replaced file) is not taken for
// it; without either it is a hash of headers and body. It is never the id of
// an effect.
func surrogate(m *semel.Message) string {
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

// contentSum is a hash of the body and, where nothing else tells the delivery,
// of the headers that copies share.
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

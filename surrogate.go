package semel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
)

// surrogate names a delivery that has no usable identity, so that it can be
// set aside and its copies be counted. It is made of the broker's coordinates
// or its id of the message, and of the body, so that another message that got
// the same coordinates (a recreated topic, a replaced file) is not taken for
// it; without either it is a hash of headers and body. It is never the id of
// an effect.
func surrogate(m *Message) string {
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
	if name := where + " of " + strconv.Quote(m.Topic) + " content " + sum; where != "" && len(name) <= MaxID {
		return name
	}
	return "content " + sum
}

// contentSum is a hash of the body and, where nothing else tells the delivery,
// of the headers that copies share.
func contentSum(m *Message) string {
	h := sha256.New()
	writeDomain(h, "surrogate/1")
	writePart(h, m.Body)
	if m.Origin.BrokerID == "" && m.Origin.Offset < 0 {
		writePart(h, m.Key)
		for i := range m.Headers {
			if brokersHeader(m.Headers[i].Name) {
				continue
			}
			writePart(h, []byte(strings.ToLower(m.Headers[i].Name)))
			writePart(h, m.Headers[i].Value)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// writeDomain begins a hash of a kind of its own: hashes of different kinds
// are never equal.
func writeDomain(h hash.Hash, name string) { _, _ = h.Write(domain(name)) }

func domain(name string) []byte {
	name = "semel/" + name
	return append(binary.AppendUvarint(nil, uint64(len(name))), name...)
}

// writePart writes b with its length before it, so that parts cannot run
// together. A hash never returns an error.
func writePart(h hash.Hash, b []byte) {
	var length [binary.MaxVarintLen64]byte
	_, _ = h.Write(length[:binary.PutUvarint(length[:], uint64(len(b)))])
	_, _ = h.Write(b)
}

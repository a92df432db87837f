package bench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/semel-go/semel"
)

// deliveries is the input of a run. The messages of the field before are applied first, without measuring. The
// deliveries of the field timed are measured; some of these deliveries are duplicates of the messages of the field
// before.
type deliveries struct{ before, timed []*semel.Message }

// makeDeliveries returns n deliveries to be measured. Every implementation gets the same duplicates and the same
// changes.
func (c Conditions) makeDeliveries(n int) deliveries {
	g := c.generator()
	var d deliveries
	for range n {
		m := g.next()
		d.timed = append(d.timed, m)
		if g.random.IntN(100) < c.Duplicates {
			again := *m
			d.before = append(d.before, &again)
		}
	}
	return d
}

func (c Conditions) generator() generator {
	return generator{c: c, random: rand.New(rand.NewPCG(1, 2))}
}

type generator struct {
	c      Conditions
	random *rand.Rand
	n      uint64
}

func (g *generator) next() *semel.Message {
	g.n++
	id, account := g.id(), g.random.Int64N(g.c.Effect.countRows())
	return &semel.Message{
		Headers: semel.Headers{{Name: "id", Value: []byte(id)}},
		Key:     strconv.AppendInt(nil, account, 10),
		Body:    g.c.Body.build(g.n, account, 1+g.random.Int64N(1000)),
		Origin:  semel.Origin{Partition: -1, Offset: -1},
	}
}

func (g *generator) id() string {
	switch g.c.IDs {
	case UUIDv4:
		return uuid(4, g.random.Uint64(), g.random.Uint64())
	case UUIDv7:
		const start = 1_790_000_000_000 // first time in milliseconds; about 16 messages have the same millisecond
		return uuid(7, (start+g.n/16)<<16|g.random.Uint64()&0xffff, g.random.Uint64())
	}
	return fmt.Sprintf("payment-%012d", g.n)
}

// uuid returns a UUID of a given version, in the format of RFC 9562.
func uuid(version, high, low uint64) string {
	high = high&^0xf000 | version<<12
	low = low&(1<<62-1) | 1<<63
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, high), low)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

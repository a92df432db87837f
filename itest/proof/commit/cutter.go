package commit

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/semel-go/semel/itest/services/pgproxy"
)

// cutter chooses the commits at which the connection is cut: a random share of the transactions that wrote effects,
// until the number in the field quota is reached.
type cutter struct {
	quota int
	share float64

	mu      sync.Mutex
	random  *rand.Rand   // mu guards random and the fields below
	writes  map[int]bool // by connection: whether the connection's current transaction wrote an effect
	slow    bool         // whether the standby is frozen
	cuts    int
	waiting int // number of cuts while the standby was frozen
}

func newCutter(quota int, share float64, seed uint64) *cutter {
	return &cutter{quota: quota, share: share, random: rand.New(rand.NewPCG(seed, 3)), writes: map[int]bool{}}
}

// install adds the rules to a proxy. Normally a reply is cut when it arrives. While the standby is frozen, no reply
// arrives, so the rule cuts the connection while COMMIT waits.
func (c *cutter) install(p *pgproxy.Proxy, d Direction) {
	p.Watch(c.see)
	if d == Request {
		p.CutRequest(func(m pgproxy.Message) bool { return c.choose(m, false) || c.choose(m, true) })
		return
	}
	p.CutInFlight(func(m pgproxy.Message) bool { return c.choose(m, true) })
	p.CutReply(c.reply)
}

// see records which transactions write effects.
func (c *cutter) see(m pgproxy.Message) {
	if m.Direction == pgproxy.Request && strings.HasPrefix(m.SQL, "insert into effects") {
		c.mu.Lock()
		c.writes[m.Connection] = true
		c.mu.Unlock()
	}
}

// choose reports whether to cut the connection at this COMMIT request.
func (c *cutter) choose(m pgproxy.Message, slow bool) bool {
	if !pgproxy.Commit(m) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slow == slow && c.pick(m.Connection)
}

// reply reports whether to cut the connection at this reply to a COMMIT, while the standby runs or is frozen.
func (c *cutter) reply(m pgproxy.Message) bool {
	if !pgproxy.Commit(m) || m.Failed() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pick(m.Connection)
}

func (c *cutter) pick(connection int) bool {
	if !c.writes[connection] {
		return false
	}
	delete(c.writes, connection)
	if c.cuts >= c.quota || c.random.Float64() >= c.share {
		return false
	}
	c.cuts++
	if c.slow {
		c.waiting++
	}
	return true
}

func (c *cutter) freeze(slow bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = slow
}

func (c *cutter) made() (cuts, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts, c.waiting
}

func (c *cutter) enough() bool {
	cuts, _ := c.made()
	return cuts >= c.quota
}

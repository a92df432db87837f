package hook

import (
	"context"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/timing"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker that refuses a partition answers at once, and the client asks again
// at once unless everything that it asked for was refused. One partition that
// is refused, beside others on which nothing comes, would so be asked for
// thousands of times a second. So an answer that came at once is held back for
// a moment where those before it came at once, too, and brought nothing.

const (
	// quickAnswers are let through without a pause: who has just moved a
	// partition answers so, and the next broker is asked.
	quickAnswers = 2
	// pauseStep is by how much each pause is longer than the one before it, and
	// longestHold where that ends. Records on the broker's other partitions
	// wait for so long, too.
	pauseStep   = 10 * time.Millisecond
	longestHold = 100 * time.Millisecond
)

// Throttle is a hook of the member: it sees each answer to a fetch.
type Throttle struct {
	atOnce time.Duration
	open   context.Context // no pause goes on when it has ended

	mu      sync.Mutex // guards brokers
	brokers map[int32]answers
}

// answers are a broker's last ones to fetches.
type answers struct {
	// quick says that the last one came at once, empty that nothing of it was a
	// batch.
	quick, empty bool
	// inVain counts the answers in a row that were both.
	inVain int
}

// NewThrottle returns one that holds nothing back when open has ended. atOnce is
// how fast an answer is that did not wait for records.
func NewThrottle(open context.Context, atOnce time.Duration) *Throttle {
	return &Throttle{open: open, atOnce: atOnce, brokers: map[int32]answers{}}
}

// OnBrokerRead implements kgo.HookBrokerRead. The client takes the answer up
// when it returns; others, of other requests, do not come on this connection.
func (p *Throttle) OnBrokerRead(broker kgo.BrokerMetadata, key int16, _ int, waited, _ time.Duration, err error) {
	if kmsg.Key(key) != kmsg.Fetch {
		return
	}
	if d := p.answered(broker.NodeID, err == nil && waited < p.atOnce); d > 0 {
		timing.Wait(p.open, d)
	}
}

// answered notes an answer, and returns for how long to hold it back.
func (p *Throttle) answered(broker int32, quick bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.brokers[broker]
	if a.quick && a.empty {
		a.inVain++
	} else {
		a.inVain = 0
	}
	a.quick, a.empty = quick, true
	p.brokers[broker] = a
	if !quick || a.inVain < quickAnswers {
		return 0
	}
	return min(time.Duration(a.inVain-quickAnswers+1)*pauseStep, longestHold)
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead: the last answer has
// brought something.
func (p *Throttle) OnFetchBatchRead(broker kgo.BrokerMetadata, _ string, _ int32, _ kgo.FetchBatchMetrics) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.brokers[broker.NodeID]
	a.empty = false
	p.brokers[broker.NodeID] = a
}

var (
	_ kgo.HookBrokerRead     = (*Throttle)(nil)
	_ kgo.HookFetchBatchRead = (*Throttle)(nil)
)

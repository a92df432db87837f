package hook

import (
	"context"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/timing"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// If a broker refuses a partition, it answers immediately, and the client asks again immediately unless all requested
// partitions were refused. So one refused partition beside idle ones would cause thousands of requests per second.
// Throttle therefore delays an immediate answer if the previous answers were also immediate and contained no records.

const (
	// quickAnswers is the number of immediate answers without a delay: a broker that has just handed over a partition
	// answers so, and the client asks the next broker.
	quickAnswers = 2
	// pauseStep is the difference between two consecutive delays, and longestHold the longest delay. Records of the
	// broker's other partitions are delayed too.
	pauseStep   = 10 * time.Millisecond
	longestHold = 100 * time.Millisecond
)

// Throttle is a hook of the member. Throttle sees each answer to a fetch.
type Throttle struct {
	atOnce time.Duration
	open   context.Context // no delay continues after it has ended

	mu      sync.Mutex // guards brokers
	brokers map[int32]answers
}

// answers describes a broker's last answers to fetches.
type answers struct {
	// quick: the last answer was immediate. empty: it contained no batch.
	quick, empty bool
	// inVain counts the consecutive answers that were both.
	inVain int
}

// NewThrottle returns a Throttle that delays nothing after open has ended. An answer within atOnce counts as immediate.
func NewThrottle(open context.Context, atOnce time.Duration) *Throttle {
	return &Throttle{open: open, atOnce: atOnce, brokers: map[int32]answers{}}
}

// OnBrokerRead implements kgo.HookBrokerRead. The client continues with the answer when this method returns; no other
// answers arrive on this connection.
func (p *Throttle) OnBrokerRead(broker kgo.BrokerMetadata, key int16, _ int, waited, _ time.Duration, err error) {
	if kmsg.Key(key) != kmsg.Fetch {
		return
	}
	if d := p.answered(broker.NodeID, err == nil && waited < p.atOnce); d > 0 {
		timing.Wait(p.open, d)
	}
}

// answered stores an answer, and returns how long to delay it.
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

// OnFetchBatchRead implements kgo.HookFetchBatchRead. The last answer contained a batch.
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

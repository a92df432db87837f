package hook

import (
	"context"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/timing"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker that refuses a partition answers immediately. After an answer that refuses a partition, the client asks
// again immediately, unless the broker refused all requested partitions. So one refused partition beside idle
// partitions would cause thousands of requests per second. Throttle therefore delays an immediate answer if the
// previous answers were also immediate and without records.

const (
	// The number of immediate answers that are not delayed. A broker that has just handed a partition over answers
	// immediately, and the client must soon ask the next broker.
	quickAnswers = 2
	// The constant pauseStep is the difference between two consecutive delays, and longestHold is the longest delay.
	// The delays also apply to records of the broker's other partitions.
	pauseStep   = 10 * time.Millisecond
	longestHold = 100 * time.Millisecond
)

// Throttle is a hook of the member that sees each answer to a fetch.
type Throttle struct {
	atOnce time.Duration
	open   context.Context // when this context ends, all delays end

	mu      sync.Mutex // guards brokers
	brokers map[int32]answers
}

// answers describes a broker's last answers to fetches.
type answers struct {
	// The field quick is true if the last answer was immediate. The field empty is true if the last answer contained no
	// batch.
	quick, empty bool
	// The number of consecutive answers that were immediate and empty.
	inVain int
}

// NewThrottle returns a Throttle. The Throttle counts an answer within the time atOnce as immediate, and delays nothing
// after the context open has ended.
func NewThrottle(open context.Context, atOnce time.Duration) *Throttle {
	return &Throttle{open: open, atOnce: atOnce, brokers: map[int32]answers{}}
}

// OnBrokerRead implements kgo.HookBrokerRead. The client processes the answer when this method returns. While the
// method waits, the connection delivers no other answer.
func (p *Throttle) OnBrokerRead(broker kgo.BrokerMetadata, key int16, _ int, waited, _ time.Duration, err error) {
	if kmsg.Key(key) != kmsg.Fetch {
		return
	}
	if d := p.recordAnswer(broker.NodeID, err == nil && waited < p.atOnce); d > 0 {
		timing.Wait(p.open, d)
	}
}

// recordAnswer stores the properties of an answer, and returns how long to delay the answer.
func (p *Throttle) recordAnswer(broker int32, quick bool) time.Duration {
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

// OnFetchBatchRead implements kgo.HookFetchBatchRead. A call means that the broker's last answer contained a
// batch.
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

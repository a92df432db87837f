package kafka

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/contract"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// budget bounds what records need between the brokers and their settlement. A
// broker is asked for bytes as they are compressed, and nobody knows what they
// become; so the place where they are decompressed refuses while there is no
// budget left. What is refused is dropped by the client and fetched again, when there
// is. One batch is always let in, or nothing would go on; so what is held may
// exceed the bound by the largest batch.
type budget struct {
	// most is the bound, in bytes: the consumer's own for what is unsettled.
	most atomic.Int64
	// held is of records taken out of the client and not settled.
	held atomic.Int64
	// client is the member; nil before it has been made.
	client atomic.Pointer[kgo.Client]
	// decompressor refuses batches of more than Config.MaxBatch bytes.
	decompressor kgo.Decompressor

	// mu lets one batch be decompressed at a time, so that they do not all
	// find budget left at once. It guards the rest.
	mu sync.Mutex
	// responses are being read, by broker: decompressed, and not yet among
	// what the client counts as buffered.
	responses map[int32]decompressed
	// unattributed is decompressed, and its broker is not known yet.
	unattributed decompressed
	// from is which broker a partition's records came from last.
	from map[topicPartition]int32
}

// decompressed is what has become of a response so far.
type decompressed struct {
	bytes int64
	at    time.Time
}

// readingTime is how long a response can take to be read. What is older was
// dropped without a word.
const readingTime = 10 * time.Second

// errOverBudget refuses a batch for now.
var errOverBudget = errors.New("no room for a batch until others are settled")

// shareReady is which share of the bound is decompressed ahead of what the
// consumer asks for.
const shareReady = 8

// perRecord is what a record needs besides its bytes, roughly.
const perRecord = 512

func newBudget() *budget {
	return &budget{responses: map[int32]decompressed{}, from: map[topicPartition]int32{}}
}

// buffered is what the client holds ready to be polled.
func (o *budget) buffered() int64 {
	c := o.client.Load()
	if c == nil {
		return 0
	}
	return c.BufferedFetchBytes() + perRecord*c.BufferedFetchRecords()
}

// Decompress implements kgo.Decompressor.
func (o *budget) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	underway := o.unattributed.since(now)
	for _, r := range o.responses {
		underway += r.since(now)
	}
	ready, most := o.buffered()+underway, o.most.Load()
	if ready > 0 && (ready >= most/shareReady || o.held.Load()+ready >= most) {
		return nil, errOverBudget
	}
	out, err := o.decompressor.Decompress(src, codec)
	if err == nil {
		o.unattributed = decompressed{o.unattributed.since(now) + int64(len(out)), now}
	}
	return out, err
}

func (r decompressed) since(now time.Time) int64 {
	if now.Sub(r.at) > readingTime {
		return 0
	}
	return r.bytes
}

// OnBrokerRead implements kgo.HookBrokerRead: a response begins, so that the
// one before it was polled or dropped.
func (o *budget) OnBrokerRead(broker kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if kmsg.Key(key) != kmsg.Fetch {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.responses, broker.NodeID)
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead: a batch was read.
func (o *budget) OnFetchBatchRead(broker kgo.BrokerMetadata, topic string, partition int32, batch kgo.FetchBatchMetrics) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.from[topicPartition{topic, partition}] = broker.NodeID
	o.responses[broker.NodeID] = decompressed{o.responses[broker.NodeID].since(now) + o.unattributed.since(now) + perRecord*int64(batch.NumRecords), now}
	o.unattributed = decompressed{}
}

// OnFetchRecordBuffered implements kgo.HookFetchRecordBuffered: a response is
// read to its end, and the client counts what it holds.
func (o *budget) OnFetchRecordBuffered(r *kgo.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.responses) > 0 {
		delete(o.responses, o.from[topicPartition{r.Topic, r.Partition}])
	}
}

// raise notes how much the consumer takes: the most it has ever asked for.
func (o *budget) raise(bytes int64) {
	if bytes > o.most.Load() {
		o.most.Store(bytes)
	}
}

// polls is how many records to take out of the client, so that they fit.
func (o *budget) polls(most contract.Bound) int {
	c := o.client.Load()
	if c == nil || c.BufferedFetchRecords() == 0 {
		return max(1, most.Messages)
	}
	each := o.buffered() / max(1, c.BufferedFetchRecords())
	return int(max(1, min(int64(most.Messages), most.Bytes/max(1, each))))
}

// pauseOverBudget stops reading a lane until there is room for its next batch. Called
// with lanes.mu held.
func (ls *lanes) pauseOverBudget(l *lane) {
	if l != nil && !l.gone && !l.overBudget {
		l.overBudget = true
		ls.reflow(l)
	}
}

// resumeInBudget goes on with lanes for whose batches there was no room: with all when
// little is ready and a quarter of the bound is free, and with one when nothing
// else is there to be delivered. Called with lanes.mu held.
func (ls *lanes) resumeInBudget(nothing bool) {
	ready, most := ls.budget.buffered(), ls.budget.most.Load()
	all := ready <= most/shareReady/2 && ls.budget.held.Load()+ready <= most/4*3
	one := nothing && ready == 0
	for _, l := range ls.order {
		if l.overBudget && (all || one) {
			l.overBudget, one = false, false
			ls.reflow(l)
		}
	}
}

// OnNewClient implements kgo.HookNewClient: this is the member now.
func (o *budget) OnNewClient(client *kgo.Client) { o.client.Store(client) }

var (
	_ kgo.Decompressor            = (*budget)(nil)
	_ kgo.HookNewClient           = (*budget)(nil)
	_ kgo.HookBrokerRead          = (*budget)(nil)
	_ kgo.HookFetchBatchRead      = (*budget)(nil)
	_ kgo.HookFetchRecordBuffered = (*budget)(nil)
)

package hook

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Budget bounds what records need between the brokers and their settlement. A
// broker is asked for bytes as they are compressed, and nobody knows what they
// become; so the place where they are decompressed refuses while there is no
// budget left. What is refused is dropped by the client and fetched again later.
// One batch is always let in, or nothing would go on; so what is held may exceed
// the bound by the largest batch.
type Budget struct {
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
	from map[partition]int32
}

// partition is a topic's.
type partition struct {
	topic  string
	number int32
}

// decompressed is what has become of a response so far.
type decompressed struct {
	bytes int64
	at    time.Time
}

// readingTime is how long a response can take to be read. What is older was
// dropped without a word.
const readingTime = 10 * time.Second

// ErrOverBudget refuses a batch for now.
var ErrOverBudget = errors.New("no room for a batch until others are settled")

// shareReady is which share of the bound is decompressed ahead of what the
// consumer asks for.
const shareReady = 8

// PerRecord is what a record needs besides its bytes, roughly.
const PerRecord = 512

// NewBudget returns one that refuses what does not fit; Use and Raise come before
// the first batch.
func NewBudget() *Budget {
	return &Budget{responses: map[int32]decompressed{}, from: map[partition]int32{}}
}

// buffered is what the client holds ready to be polled.
func (o *Budget) buffered() int64 {
	c := o.client.Load()
	if c == nil {
		return 0
	}
	return c.BufferedFetchBytes() + PerRecord*c.BufferedFetchRecords()
}

// Decompress implements kgo.Decompressor.
func (o *Budget) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	underway := o.unattributed.since(now)
	for _, r := range o.responses {
		underway += r.since(now)
	}
	ready, most := o.buffered()+underway, o.most.Load()
	if ready > 0 && (ready >= most/shareReady || o.held.Load()+ready >= most) {
		return nil, ErrOverBudget
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
func (o *Budget) OnBrokerRead(broker kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if kmsg.Key(key) != kmsg.Fetch {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.responses, broker.NodeID)
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead: a batch was read.
func (o *Budget) OnFetchBatchRead(broker kgo.BrokerMetadata, topic string, number int32, batch kgo.FetchBatchMetrics) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.from[partition{topic, number}] = broker.NodeID
	o.responses[broker.NodeID] = decompressed{o.responses[broker.NodeID].since(now) + o.unattributed.since(now) + PerRecord*int64(batch.NumRecords), now}
	o.unattributed = decompressed{}
}

// OnFetchRecordBuffered implements kgo.HookFetchRecordBuffered: a response is
// read to its end, and the client counts what it holds.
func (o *Budget) OnFetchRecordBuffered(r *kgo.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.responses) > 0 {
		delete(o.responses, o.from[partition{r.Topic, r.Partition}])
	}
}

// Use sets who decompresses what fits. It refuses batches that are too large.
func (o *Budget) Use(d kgo.Decompressor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.decompressor = d
}

// Hold notes bytes that were taken out of the client; fewer than none were settled.
func (o *Budget) Hold(bytes int64) { o.held.Add(bytes) }

// Most is the bound, in bytes.
func (o *Budget) Most() int64 { return o.most.Load() }

// Fits reports what there is room for: with little ready and a quarter of the
// bound free for all that waits, and for one batch when the client holds nothing.
func (o *Budget) Fits() (all, one bool) {
	ready, most := o.buffered(), o.most.Load()
	return ready <= most/shareReady/2 && o.held.Load()+ready <= most/4*3, ready == 0
}

// Raise notes how much the consumer takes: the most it has ever asked for.
func (o *Budget) Raise(bytes int64) {
	if bytes > o.most.Load() {
		o.most.Store(bytes)
	}
}

// Polls is how many records to take out of the client, so that no more of them are
// taken than fit into these bounds.
func (o *Budget) Polls(messages int, bytes int64) int {
	c := o.client.Load()
	if c == nil || c.BufferedFetchRecords() == 0 {
		return max(1, messages)
	}
	each := o.buffered() / max(1, c.BufferedFetchRecords())
	return int(max(1, min(int64(messages), bytes/max(1, each))))
}

// OnNewClient implements kgo.HookNewClient: this is the member now.
func (o *Budget) OnNewClient(client *kgo.Client) { o.client.Store(client) }

var (
	_ kgo.Decompressor            = (*Budget)(nil)
	_ kgo.HookNewClient           = (*Budget)(nil)
	_ kgo.HookBrokerRead          = (*Budget)(nil)
	_ kgo.HookFetchBatchRead      = (*Budget)(nil)
	_ kgo.HookFetchRecordBuffered = (*Budget)(nil)
)

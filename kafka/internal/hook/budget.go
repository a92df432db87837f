package hook

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Budget limits the memory of records between the brokers and their settlement. A broker is asked for compressed bytes,
// and the decompressed size is unknown in advance; so decompression is refused while there is no budget left. The client
// drops a refused batch and fetches it again later. One batch is always allowed, so that reading continues; the memory
// in use may therefore exceed the limit by the largest batch.
type Budget struct {
	// most is the limit in bytes: the consumer's own limit for unsettled messages.
	most atomic.Int64
	// held is the size of records that were taken out of the client and are not settled.
	held atomic.Int64
	// client is the member; nil before it has been made.
	client atomic.Pointer[kgo.Client]
	// decompressor refuses batches of more than Config.MaxBatch bytes.
	decompressor kgo.Decompressor

	// mu allows one decompression at a time, so that concurrent ones do not all find the same budget. mu guards the
	// fields below.
	mu sync.Mutex
	// responses contains, by broker, the responses that are being read: decompressed, but not yet counted as buffered by
	// the client.
	responses map[int32]decompressed
	// unattributed is the decompressed data whose broker is not known yet.
	unattributed decompressed
	// from is the broker that last sent records of a partition.
	from map[partition]int32
}

// partition identifies a partition of a topic.
type partition struct {
	topic  string
	number int32
}

// decompressed is the decompressed part of a response so far.
type decompressed struct {
	bytes int64
	at    time.Time
}

// readingTime is the longest time that reading a response takes. The client has dropped older data without a
// notification.
const readingTime = 10 * time.Second

// ErrOverBudget refuses a batch for now.
var ErrOverBudget = errors.New("no memory for this batch until earlier records are settled")

// shareReady is the share of the limit, as a divisor, that is decompressed ahead of the consumer's requests.
const shareReady = 8

// PerRecord is the approximate size of a record in addition to its bytes.
const PerRecord = 512

// NewBudget returns a Budget. Call Use and Raise before the first batch.
func NewBudget() *Budget {
	return &Budget{responses: map[int32]decompressed{}, from: map[partition]int32{}}
}

// buffered returns the size of the records that the client holds ready to be polled.
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

// OnBrokerRead implements kgo.HookBrokerRead. A new response begins, so the previous one of that broker was polled or
// dropped.
func (o *Budget) OnBrokerRead(broker kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if kmsg.Key(key) != kmsg.Fetch {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.responses, broker.NodeID)
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead.
func (o *Budget) OnFetchBatchRead(broker kgo.BrokerMetadata, topic string, number int32, batch kgo.FetchBatchMetrics) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.from[partition{topic, number}] = broker.NodeID
	o.responses[broker.NodeID] = decompressed{o.responses[broker.NodeID].since(now) + o.unattributed.since(now) + PerRecord*int64(batch.NumRecords), now}
	o.unattributed = decompressed{}
}

// OnFetchRecordBuffered implements kgo.HookFetchRecordBuffered. A response was read completely, and the client now
// counts its records as buffered.
func (o *Budget) OnFetchRecordBuffered(r *kgo.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.responses) > 0 {
		delete(o.responses, o.from[partition{r.Topic, r.Partition}])
	}
}

// Use sets the decompressor for batches within the budget. Use refuses batches that are too large by
// themselves.
func (o *Budget) Use(d kgo.Decompressor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.decompressor = d
}

// Hold adds bytes that were taken out of the client. A negative number means settled bytes.
func (o *Budget) Hold(bytes int64) { o.held.Add(bytes) }

// Most returns the limit in bytes.
func (o *Budget) Most() int64 { return o.most.Load() }

// Fits reports what the budget allows. all: all waiting lanes, because little is ready and a quarter of the limit is
// free. one: one batch, because the client holds nothing.
func (o *Budget) Fits() (all, one bool) {
	ready, most := o.buffered(), o.most.Load()
	return ready <= most/shareReady/2 && o.held.Load()+ready <= most/4*3, ready == 0
}

// Raise raises the limit to the largest number of bytes that the consumer has ever asked for.
func (o *Budget) Raise(bytes int64) {
	if bytes > o.most.Load() {
		o.most.Store(bytes)
	}
}

// Polls returns how many records to take out of the client so that they stay within these limits.
func (o *Budget) Polls(messages int, bytes int64) int {
	c := o.client.Load()
	if c == nil || c.BufferedFetchRecords() == 0 {
		return max(1, messages)
	}
	each := o.buffered() / max(1, c.BufferedFetchRecords())
	return int(max(1, min(int64(messages), bytes/max(1, each))))
}

// OnNewClient implements kgo.HookNewClient. The client is the current member's.
func (o *Budget) OnNewClient(client *kgo.Client) { o.client.Store(client) }

var (
	_ kgo.Decompressor            = (*Budget)(nil)
	_ kgo.HookNewClient           = (*Budget)(nil)
	_ kgo.HookBrokerRead          = (*Budget)(nil)
	_ kgo.HookFetchBatchRead      = (*Budget)(nil)
	_ kgo.HookFetchRecordBuffered = (*Budget)(nil)
)

package hook

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Budget limits the memory of fetched records that are not acked, nacked or dead-lettered yet. A fetch can limit only
// the compressed bytes, and the decompressed size is unknown in advance. So Budget refuses to decompress a batch while
// no memory is left within the limit. The client drops a refused batch and fetches it again later. One batch is always
// allowed, so that reading continues. The used memory may therefore exceed the limit by the largest batch.
type Budget struct {
	// The maximum size of the records in memory, in bytes. The consumer sets it to its limit for unacked messages.
	most atomic.Int64
	// The size of the records that were polled from the client and are not acked yet.
	heldBytes atomic.Int64
	// The client of the current member; nil before the first member.
	client atomic.Pointer[kgo.Client]
	// The decompressor refuses batches of more than Config.MaxBatch bytes.
	decompressor kgo.Decompressor

	// mu allows one decompression at a time. Two concurrent decompressions would use the same free memory. mu guards
	// the fields below.
	mu sync.Mutex
	// The responses that the client is reading, by broker. The batches of a response in this map are decompressed, but
	// the client does not yet count the records as buffered.
	responses map[int32]decompressedRecords
	// The size of decompressed data whose broker is not known yet.
	unattributed decompressedRecords
	// For each partition, the broker that last sent records of this partition.
	from map[partition]int32
}

// partition identifies a partition of a topic.
type partition struct {
	topic  string
	number int32
}

// decompressedRecords is the size of a response as far as it is decompressed, and the time of its last batch.
type decompressedRecords struct {
	bytes int64
	at    time.Time
}

// readingTime is the longest time in which the client reads a response. If a response is older, the client has dropped
// it; the client calls no hook for a dropped response.
const readingTime = 10 * time.Second

// ErrOverBudget is the error for a batch that would exceed the memory limit now, but may fit later.
var ErrOverBudget = errors.New("no memory for this batch until earlier records are settled")

// At most the part 1/shareReady of the limit may be decompressed before the consumer asks for these records.
const shareReady = 8

// PerRecord is the approximate memory of a record in addition to its key, value and headers.
const PerRecord = 512

// NewBudget returns a Budget. Call Use and Raise before the first batch.
func NewBudget() *Budget {
	return &Budget{responses: map[int32]decompressedRecords{}, from: map[partition]int32{}}
}

// bufferedBytes returns the size of the records that the client has decompressed and the source has not polled.
func (o *Budget) bufferedBytes() int64 {
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
	ready, most := o.bufferedBytes()+underway, o.most.Load()
	if ready > 0 && (ready >= most/shareReady || o.heldBytes.Load()+ready >= most) {
		return nil, ErrOverBudget
	}
	out, err := o.decompressor.Decompress(src, codec)
	if err == nil {
		o.unattributed = decompressedRecords{o.unattributed.since(now) + int64(len(out)), now}
	}
	return out, err
}

func (r decompressedRecords) since(now time.Time) int64 {
	if now.Sub(r.at) > readingTime {
		return 0
	}
	return r.bytes
}

// OnBrokerRead implements kgo.HookBrokerRead. The next response of a broker begins after the client has polled
// or dropped the previous response of that broker.
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
	o.responses[broker.NodeID] = decompressedRecords{o.responses[broker.NodeID].since(now) + o.unattributed.since(now) + PerRecord*int64(batch.NumRecords), now}
	o.unattributed = decompressedRecords{}
}

// OnFetchRecordBuffered implements kgo.HookFetchRecordBuffered. The client calls the method when it has read a whole
// response and counts the records of this response as buffered.
func (o *Budget) OnFetchRecordBuffered(r *kgo.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.responses) > 0 {
		delete(o.responses, o.from[partition{r.Topic, r.Partition}])
	}
}

// Use sets the decompressor for batches within the budget. The decompressor itself refuses a batch that is larger than
// Config.MaxBatch.
func (o *Budget) Use(d kgo.Decompressor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.decompressor = d
}

// Hold counts bytes that were polled from the client. A negative number means bytes of acked records.
func (o *Budget) Hold(bytes int64) { o.heldBytes.Add(bytes) }

// Most returns the limit in bytes.
func (o *Budget) Most() int64 { return o.most.Load() }

// Fits reports how many waiting lanes may read again. The first result is true if all waiting lanes may read, because
// few bytes are ready and a quarter of the limit is free. The second result is true if a single lane may read one
// batch, because the client has no records ready.
func (o *Budget) Fits() (all, one bool) {
	ready, most := o.bufferedBytes(), o.most.Load()
	return ready <= most/shareReady/2 && o.heldBytes.Load()+ready <= most/4*3, ready == 0
}

// Raise sets the limit to the parameter bytes, if the limit is lower.
func (o *Budget) Raise(bytes int64) {
	if bytes > o.most.Load() {
		o.most.Store(bytes)
	}
}

// Polls returns how many records to poll from the client so that the number and the size of the records stay within the
// given limits.
func (o *Budget) Polls(messages int, bytes int64) int {
	c := o.client.Load()
	if c == nil || c.BufferedFetchRecords() == 0 {
		return max(1, messages)
	}
	each := o.bufferedBytes() / max(1, c.BufferedFetchRecords())
	return int(max(1, min(int64(messages), bytes/max(1, each))))
}

// OnNewClient implements kgo.HookNewClient. The new client belongs to the current member.
func (o *Budget) OnNewClient(client *kgo.Client) { o.client.Store(client) }

var (
	_ kgo.Decompressor            = (*Budget)(nil)
	_ kgo.HookNewClient           = (*Budget)(nil)
	_ kgo.HookBrokerRead          = (*Budget)(nil)
	_ kgo.HookFetchBatchRead      = (*Budget)(nil)
	_ kgo.HookFetchRecordBuffered = (*Budget)(nil)
)

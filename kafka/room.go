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

// room bounds what records need between the brokers and their settlement. A
// broker is asked for bytes as they are compressed, and nobody knows what they
// become; so the place where they are decompressed refuses while there is no
// room. What is refused is dropped by the client and fetched again, when there
// is. One batch is always let in, or nothing would go on; so what is held may
// exceed the bound by the largest batch.
type room struct {
	// most is the bound, in bytes: the consumer's own for what is unsettled.
	most atomic.Int64
	// held is of records taken out of the client and not settled.
	held atomic.Int64
	// client is the member; nil before it has been made.
	client atomic.Pointer[kgo.Client]
	// decompressor refuses batches of more than Config.MaxBatch bytes.
	decompressor kgo.Decompressor

	// mu lets one batch be decompressed at a time, so that they do not all
	// find room at once. It guards the rest.
	mu sync.Mutex
	// responses are being read, by broker: decompressed, and not yet among
	// what the client counts as buffered.
	responses map[int32]progress
	// loose is decompressed, and its broker is not known yet.
	loose progress
	// from is which broker a partition's records came from last.
	from map[place]int32
}

// progress is what has become of a response so far.
type progress struct {
	bytes int64
	at    time.Time
}

// readingTime is how long a response can take to be read. What is older was
// dropped without a word.
const readingTime = 10 * time.Second

// errNoRoom refuses a batch for now.
var errNoRoom = errors.New("no room for a batch until others are settled")

// shareReady is which share of the bound is decompressed ahead of what the
// consumer asks for.
const shareReady = 8

// perRecord is what a record needs besides its bytes, roughly.
const perRecord = 512

func newRoom() *room {
	return &room{responses: map[int32]progress{}, from: map[place]int32{}}
}

// buffered is what the client holds ready to be polled.
func (o *room) buffered() int64 {
	c := o.client.Load()
	if c == nil {
		return 0
	}
	return c.BufferedFetchBytes() + perRecord*c.BufferedFetchRecords()
}

// Decompress implements kgo.Decompressor.
func (o *room) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	underway := o.loose.since(now)
	for _, r := range o.responses {
		underway += r.since(now)
	}
	ready, most := o.buffered()+underway, o.most.Load()
	if ready > 0 && (ready >= most/shareReady || o.held.Load()+ready >= most) {
		return nil, errNoRoom
	}
	out, err := o.decompressor.Decompress(src, codec)
	if err == nil {
		o.loose = progress{o.loose.since(now) + int64(len(out)), now}
	}
	return out, err
}

func (r progress) since(now time.Time) int64 {
	if now.Sub(r.at) > readingTime {
		return 0
	}
	return r.bytes
}

// OnBrokerRead implements kgo.HookBrokerRead: a response begins, so that the
// one before it was polled or dropped.
func (o *room) OnBrokerRead(broker kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if kmsg.Key(key) != kmsg.Fetch {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.responses, broker.NodeID)
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead: a batch was read.
func (o *room) OnFetchBatchRead(broker kgo.BrokerMetadata, topic string, partition int32, batch kgo.FetchBatchMetrics) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.from[place{topic, partition}] = broker.NodeID
	o.responses[broker.NodeID] = progress{o.responses[broker.NodeID].since(now) + o.loose.since(now) + perRecord*int64(batch.NumRecords), now}
	o.loose = progress{}
}

// OnFetchRecordBuffered implements kgo.HookFetchRecordBuffered: a response is
// read to its end, and the client counts what it holds.
func (o *room) OnFetchRecordBuffered(r *kgo.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.responses) > 0 {
		delete(o.responses, o.from[place{r.Topic, r.Partition}])
	}
}

// raise notes how much the consumer takes: the most it has ever asked for.
func (o *room) raise(bytes int64) {
	if bytes > o.most.Load() {
		o.most.Store(bytes)
	}
}

// polls is how many records to take out of the client, so that they fit.
func (o *room) polls(most contract.Bound) int {
	c := o.client.Load()
	if c == nil || c.BufferedFetchRecords() == 0 {
		return max(1, most.Messages)
	}
	each := o.buffered() / max(1, c.BufferedFetchRecords())
	return int(max(1, min(int64(most.Messages), most.Bytes/max(1, each))))
}

// crowd stops reading a lane until there is room for its next batch. Called
// with lanes.mu held.
func (ls *lanes) crowd(l *lane) {
	if l != nil && !l.gone && !l.crowded {
		l.crowded = true
		ls.reflow(l)
	}
}

// relieve goes on with lanes for whose batches there was no room: with all when
// little is ready and a quarter of the bound is free, and with one when nothing
// else is there to be delivered. Called with lanes.mu held.
func (ls *lanes) relieve(nothing bool) {
	ready, most := ls.room.buffered(), ls.room.most.Load()
	all := ready <= most/shareReady/2 && ls.room.held.Load()+ready <= most/4*3
	one := nothing && ready == 0
	for _, l := range ls.order {
		if l.crowded && (all || one) {
			l.crowded, one = false, false
			ls.reflow(l)
		}
	}
}

// OnNewClient implements kgo.HookNewClient: this is the member now.
func (o *room) OnNewClient(client *kgo.Client) { o.client.Store(client) }

var (
	_ kgo.Decompressor            = (*room)(nil)
	_ kgo.HookNewClient           = (*room)(nil)
	_ kgo.HookBrokerRead          = (*room)(nil)
	_ kgo.HookFetchBatchRead      = (*room)(nil)
	_ kgo.HookFetchRecordBuffered = (*room)(nil)
)

package kafka

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The number of seeds that `make test` tries. The environment variable SEED selects one seed. A seed repeats the same
// events; the order of goroutines may differ.
const histories = 100

func TestOrderUnderRebalances(t *testing.T) {
	t.Run("law_8_whatever_owners_do_a_lane_keeps_its_order_and_each_message_takes_effect_once", func(t *testing.T) {
		if one, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
			synctest.Test(t, func(t *testing.T) { tell(t, one) })
			return
		}
		t.Run("trap_11_trap_T37_also_through_retries_with_copies_among_them", func(t *testing.T) {
			for seed := range uint64(histories) {
				t.Run(fmt.Sprint("seed_", seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { tell(t, seed) })
				})
			}
		})
	})
}

// history runs the events of a seed: processes join, leave, die and freeze, brokers return errors, partitions
// are added, and messages arrive, some of which fail.
type history struct {
	*world
	seed         uint64
	random       *rand.Rand
	nextGen      bool
	living       []*process
	frozen       []*process
	events       journal
	next         map[int32]int // the number of the next message of each partition
	past         map[int32][]string
	corruptBatch map[string]bool // messages that are never applied

	mu       sync.Mutex // guards failures
	failures map[string]int
}

func tell(t *testing.T, seed uint64) {
	h := &history{
		seed: seed, random: rand.New(rand.NewPCG(seed, 8)), nextGen: seed%2 == 1,
		next: map[int32]int{}, past: map[int32][]string{}, corruptBatch: map[string]bool{}, failures: map[string]int{},
	}
	h.world = newWorld(t, 1+h.random.Int32N(4), kfake.NumBrokers(3), kfake.Ports(19092, 19093, 19094), kfake.BrokerConfigs(map[string]string{
		"group.consumer.session.timeout.ms": "10000", "group.consumer.heartbeat.interval.ms": "3000",
	}))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("SEED=%d go test ./kafka -run TestOrderUnderRebalances gives these events again:\n%s\n%s", seed, strings.Join(h.events.all(), "\n"), h.state())
		}
	})
	h.watchOffsets()
	h.write()
	h.join()
	for range 6 + h.random.IntN(14) {
		h.event()
		h.elapse()
	}
	for len(h.frozen) > 0 {
		h.thaw()
	}
	h.join()
	h.note("the events have ended")
	h.waitCommitted(10 * time.Minute)
	h.check()
}

func (h *history) note(format string, values ...any) {
	h.events.add(fmt.Sprintf("%s %s", time.Now().Format("04:05.000"), fmt.Sprintf(format, values...)))
}

// elapse lets time pass: usually a short time, sometimes more than a session timeout.
func (h *history) elapse() {
	most := []time.Duration{5 * time.Millisecond, 200 * time.Millisecond, 3 * time.Second, 15 * time.Second}[h.random.IntN(4)]
	pass(time.Duration(h.random.Int64N(int64(most))))
}

func (h *history) event() {
	switch h.random.IntN(14) {
	case 0, 1:
		h.join()
	case 2:
		h.leave()
	case 3:
		h.die()
	case 4, 5:
		h.freeze()
	case 6, 7:
		h.thaw()
	case 8:
		h.fault()
	case 9:
		h.grow()
	case 10:
		h.note("leaders move")
		h.cluster.ShufflePartitionLeaders()
	case 11:
		h.note("coordinators move")
		h.cluster.RehashCoordinators()
	default:
		h.write()
	}
}

func (h *history) join() {
	if len(h.living) > 3 {
		return
	}
	h.latency = time.Duration(h.random.IntN(4)) * time.Millisecond
	p := h.start(h.handle, func(c *Config) {
		c.NextGen = h.nextGen
		c.RevokeTimeout = 3 * time.Second
	}, func(c *settings) {
		c.Workers, c.Batch.MaxSize, c.plan.Seed = 1+h.random.IntN(4), 1+h.random.IntN(20), 1+h.seed
		c.MaxUnacked.Messages = 1 + h.random.IntN(200)
		c.Drain = 3 * time.Second
	})
	h.living = append(h.living, p)
	h.note("process %p joins", p)
}

// removeRandom removes a random process from a list and returns the process.
func (h *history) removeRandom(of *[]*process) *process {
	if len(*of) == 0 {
		return nil
	}
	i := h.random.IntN(len(*of))
	p := (*of)[i]
	*of = slices.Delete(*of, i, i+1)
	return p
}

func (h *history) leave() {
	if p := h.removeRandom(&h.living); p != nil {
		h.note("process %p leaves", p)
		p.stop()
	}
}

func (h *history) die() {
	if p := h.removeRandom(&h.living); p != nil {
		h.note("process %p dies", p)
		p.kill()
	}
}

func (h *history) freeze() {
	if p := h.removeRandom(&h.living); p != nil {
		h.note("the network of process %p freezes", p)
		p.wire.freeze()
		h.frozen = append(h.frozen, p)
	}
}

func (h *history) thaw() {
	if p := h.removeRandom(&h.frozen); p != nil {
		h.note("the network of process %p thaws", p)
		p.wire.thaw()
		h.living = append(h.living, p)
	}
}

// fault makes the brokers refuse some requests. The brokers may have carried out a request that they answered
// with a timeout.
func (h *history) fault() {
	keys := []kmsg.Key{kmsg.OffsetCommit, kmsg.Heartbeat, kmsg.JoinGroup, kmsg.Fetch, kmsg.ConsumerGroupHeartbeat, kmsg.OffsetFetch}
	errs := map[kmsg.Key][]*kerr.Error{
		kmsg.OffsetCommit:           {kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.RequestTimedOut, kerr.RebalanceInProgress, kerr.IllegalGeneration},
		kmsg.Heartbeat:              {kerr.UnknownMemberID, kerr.RebalanceInProgress, kerr.CoordinatorNotAvailable},
		kmsg.JoinGroup:              {kerr.CoordinatorLoadInProgress, kerr.UnknownMemberID},
		kmsg.Fetch:                  {kerr.NotLeaderForPartition, kerr.OffsetNotAvailable},
		kmsg.ConsumerGroupHeartbeat: {kerr.UnknownMemberID, kerr.FencedMemberEpoch, kerr.CoordinatorNotAvailable},
		kmsg.OffsetFetch:            {kerr.CoordinatorLoadInProgress, kerr.NotCoordinator},
	}
	key := keys[h.random.IntN(len(keys))]
	err := errs[key][h.random.IntN(len(errs[key]))]
	n := 1 + h.random.IntN(3)
	h.note("%d × %s fails with %v", n, key.Name(), err)
	top := key == kmsg.Heartbeat || key == kmsg.JoinGroup || key == kmsg.ConsumerGroupHeartbeat
	h.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: err, Count: n, TopLevel: top})
}

func (h *history) grow() {
	n := len(h.cluster.PartitionInfos(theTopic))
	if n > 5 {
		return
	}
	h.note("partition %d is added", n)
	if _, err := kadm.NewClient(h.producer).CreatePartitions(context.Background(), 1, theTopic); err != nil {
		h.t.Fatal(err)
	}
	h.producer = h.client() // the previous producer does not know the new partition
	h.write()
}

// write publishes messages to partitions, and copies of some messages.
func (h *history) write() {
	partitions := int32(len(h.cluster.PartitionInfos(theTopic)))
	n := h.random.IntN(40)
	for range n {
		p := h.random.Int32N(partitions)
		if past := h.past[p]; len(past) > 0 && h.random.IntN(5) == 0 {
			h.publish(p, past[h.random.IntN(len(past))])
			continue
		}
		id := fmt.Sprintf("p%d-%04d", p, h.next[p])
		h.next[p]++
		h.past[p] = append(h.past[p], id)
		switch h.random.IntN(25) {
		case 0:
			h.corruptBatch[id] = true
			h.failAttempts(id, -1)
		case 1, 2:
			h.failAttempts(id, 1+h.random.IntN(2))
		}
		h.publish(p, id)
	}
	h.note("%d messages are written", n)
}

func (h *history) failAttempts(id string, times int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures[id] = times
}

var errSpoilt = errors.New("spoilt")

func (h *history) failure(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch n := h.failures[id]; {
	case n < 0:
		return semel.Permanent(errSpoilt)
	case n > 0:
		h.failures[id]--
		return semel.RetryAfter(errSpoilt, time.Duration(n)*time.Second)
	}
	return nil
}

var mixing = maphash.MakeSeed()

// handle applies a message. In the same transaction, handle records an error if a later message of the lane took effect
// before this message.
func (h *history) handle(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	id := m.Identity.ID
	if wait := maphash.String(mixing, id) % 64; wait < 24 {
		select {
		case <-time.After(time.Duration(wait) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if err := h.failure(id); err != nil {
		return err
	}
	lane := fmt.Sprint("last ", m.Origin.Partition)
	last, err := tx.Get(lane)
	if err != nil {
		return err
	}
	if string(last) >= id {
		if err := tx.Set("disorder", fmt.Appendf(nil, "%s after %s", id, last)); err != nil {
			return err
		}
	}
	if err := tx.Set(lane, []byte(id)); err != nil {
		return err
	}
	return count(ctx, tx, m)
}

// watchOffsets checks the group's offsets after every commit.
func (h *history) watchOffsets() {
	look, ended := make(chan bool, 1), make(chan bool)
	h.control(kmsg.OffsetCommit, func(kmsg.Request) kmsg.Response {
		select {
		case look <- true:
		default:
		}
		return nil
	})
	var watching sync.WaitGroup
	watching.Go(func() {
		highest := map[int32]int64{}
		for {
			select {
			case <-look:
			case <-ended:
				return
			}
			for partition, c := range h.cluster.GroupInfo(theGroup).Commits[theTopic] {
				if c.Offset < highest[partition] {
					h.t.Errorf("the group's offset of partition %d went back from %d to %d", partition, highest[partition], c.Offset)
				}
				highest[partition] = max(highest[partition], c.Offset)
			}
		}
	})
	h.t.Cleanup(func() { close(ended); watching.Wait() })
}

func (h *history) check() {
	rows, err := h.store.Rows(context.Background(), store.RowFilter{})
	must(h.t, err)
	parked := map[string]bool{}
	for _, r := range rows {
		parked[r.Message.Identity.ID] = true
	}
	for _, ids := range h.past {
		for _, id := range ids {
			want := 1
			if h.corruptBatch[id] {
				want = 0
			}
			if n := h.effect(id); n != want || parked[id] != h.corruptBatch[id] {
				h.t.Errorf("%s took effect %d times and is parked: %v; want %d and %v", id, n, parked[id], want, h.corruptBatch[id])
			}
		}
	}
	if what := h.store.Get("disorder"); what != nil {
		h.t.Errorf("out of order: %s", what)
	}
}

// journal is a list to which several goroutines append.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string{}, j.lines...)
}

package kafka_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lanes is a lane observer that counts its notifications.
type lanes struct {
	mu          sync.Mutex // mu guards the fields below
	given, lost int
}

func (l *lanes) Given(source.Lane)                     { l.mu.Lock(); defer l.mu.Unlock(); l.given++ }
func (l *lanes) Lost(source.Lane)                      { l.mu.Lock(); defer l.mu.Unlock(); l.lost++ }
func (l *lanes) Revoking(context.Context, source.Lane) {}

// crew is a set of members of one group, which ack all deliveries.
type crew struct {
	t        testing.TB
	settings kafka.Config

	mu      sync.Mutex // mu guards the fields below
	settled map[string]int
	redone  int
}

// member starts a member of the group. The member runs until stop is called.
func (c *crew) member() (stop func()) {
	s := must.Get(kafka.New(c.settings))(c.t)
	s.Lanes(&lanes{})
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	g.Go(func() {
		for ctx.Err() == nil {
			got, err := s.Fetch(ctx, source.Bound{Messages: 50, Bytes: 1 << 20})
			if err != nil && ctx.Err() == nil {
				c.t.Errorf("fetch: %v", err)
			}
			c.settle(s, got)
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		g.Wait()
		shut(c.t, s)
	})
}

func (c *crew) settle(s *kafka.Source, got []source.Delivery) {
	all := make([]source.Settlement, len(got))
	for i := range got {
		all[i] = source.Settlement{Delivery: &got[i], Kind: semel.Ack}
	}
	for tries := 0; len(all) > 0 && tries < 50; tries++ {
		left, _ := s.Settle(context.Background(), all)
		var again []source.Settlement
		for _, i := range left {
			again = append(again, all[i])
		}
		all = again
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range got {
		if c.settled[string(d.Message.Body)]++; c.settled[string(d.Message.Body)] > 1 {
			c.redone++
		}
	}
}

func (c *crew) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.settled)
}

// watchOffsets checks that no committed offset of the group decreases, until stop is called.
func watchOffsets(t testing.TB, c *kgo.Client, group string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	g.Go(func() {
		highest := map[int32]int64{}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			all, err := kadm.NewClient(c).FetchOffsets(ctx, group)
			if err == nil {
				all.Each(func(o kadm.OffsetResponse) {
					if o.At < highest[o.Partition] {
						t.Errorf("the offset of partition %d went back from %d to %d", o.Partition, highest[o.Partition], o.At)
					}
					highest[o.Partition] = o.At
				})
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); g.Wait() }
}

func TestMembersThatComeAndGoUnderLoad(t *testing.T) {
	t.Parallel()
	for name, nextGen := range map[string]bool{
		"trap_27_no_offset_goes_back_in_a_cooperative_group":            false,
		"trap_39_no_offset_goes_back_in_a_group_balanced_by_the_broker": true,
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t)
			topic := services.Topic(t, services.Kafka(t), 6)
			settings := config(t, topic)
			settings.NextGen = nextGen
			all := &crew{t: t, settings: settings, settled: map[string]int{}}
			defer watchOffsets(t, c, settings.Group)()
			total := 0
			publish := func() {
				for range 200 {
					r := &kgo.Record{Topic: topic, Partition: int32(total % 6), Value: []byte(time.Now().Format(time.RFC3339Nano) + string(rune('a'+total%26)))}
					total++
					c.Produce(t.Context(), r, func(_ *kgo.Record, err error) {
						if err != nil {
							t.Error(err)
						}
					})
				}
				must.OK(t, c.Flush(t.Context()))
			}
			var here []func()
			for round := range 6 {
				here = append(here, all.member())
				if round > 2 {
					here[0]()
					here = here[1:]
				}
				publish()
				deadline := time.Now().Add(patience)
				for all.count() < total-100 && time.Now().Before(deadline) {
					publish()
					<-time.After(50 * time.Millisecond)
				}
			}
			for ends := time.Now().Add(patience); all.count() < total && time.Now().Before(ends); {
				<-time.After(50 * time.Millisecond)
			}
			for _, stop := range here {
				stop()
			}
			if all.count() != total {
				t.Errorf("%d of %d messages were settled", all.count(), total)
			}
			lag := must.Get(kadm.NewClient(c).Lag(t.Context(), settings.Group))(t)
			if left := lag[settings.Group].Lag.Total(); left != 0 {
				t.Errorf("the group ends %d records before the log's end", left)
			}
			t.Logf("%d messages, %d delivered again", total, all.redone)
		})
	}
}

func TestAMemberWhoseEpochRisesKeepsItsLanes(t *testing.T) {
	t.Parallel()
	t.Run("case_11_also_where_the_brokers_balance_and_nobody_is_told", func(t *testing.T) {
		c := client(t)
		topic := services.Topic(t, services.Kafka(t), 1)
		settings := config(t, topic)
		settings.NextGen = true
		put(t, c, topic, 0, 4)
		owner := newSource(t, settings)
		told := &lanes{}
		owner.Lanes(told)
		got := take(t, owner, 4)
		ack(t, owner, got[0])
		for i := 1; i < 4; i++ { // each of the three members raises the group's epoch and gets no partition
			idle := newSource(t, settings)
			for err := error(context.DeadlineExceeded); err != nil; { // retried, because a busy broker may reject the member at first
				ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second) // longer than the heartbeat interval
				var some []source.Delivery
				some, err = idle.Fetch(ctx, source.Bound{Messages: 1, Bytes: 1})
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) || len(some) > 0 {
					t.Fatal(some, err)
				}
			}
			for left := []int{0}; len(left) > 0; {
				left, _ = owner.Settle(t.Context(), []source.Settlement{{Delivery: &got[i], Kind: semel.Ack}})
			}
			awaitOffset(t, c, settings.Group, topic, 0, int64(i+1))
		}
		if told.given != 1 || told.lost != 0 {
			t.Errorf("the owner was given %d lanes and lost %d", told.given, told.lost)
		}
	})
}

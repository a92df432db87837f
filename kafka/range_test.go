package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// newRange returns a Range for the brokers of a configuration.
func newRange(t testing.TB, c Config) *Range {
	t.Helper()
	r, err := NewRange(c)
	must(t, err)
	t.Cleanup(r.Close)
	return r
}

// openLanes returns the source that reads the given lanes of a Range.
func openLanes(t testing.TB, r *Range, lanes []admin.ReplayLane) source.Source {
	t.Helper()
	s, err := r.Source(lanes)
	must(t, err)
	return s
}

// openAll returns a source that reads all existing records.
func openAll(t testing.TB, config Config) source.Source {
	t.Helper()
	r := newRange(t, config)
	lanes, err := r.Lanes(t.Context(), Bound{}, Bound{})
	must(t, err)
	return openLanes(t, r, lanes)
}

// write writes records to a partition. The value of each record is its number.
func write(t testing.TB, client *kgo.Client, partition int32, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		r := &kgo.Record{Topic: "orders", Partition: partition, Value: fmt.Append(nil, i), Timestamp: time.UnixMilli(int64(1_700_000_000_000 + 1000*i))}
		must(t, client.ProduceSync(t.Context(), r).FirstErr())
	}
}

// readRange reads a source to its end, acks all deliveries, and returns the values by lane.
func readRange(t testing.TB, s source.Source) (map[string][]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	all := map[string][]string{}
	for {
		got, err := s.Fetch(ctx, wide)
		settled := make([]source.Settlement, len(got))
		for i := range got {
			all[got[i].Lane.ID] = append(all[got[i].Lane.ID], string(got[i].Message.Body))
			settled[i] = source.Settlement{Delivery: &got[i], Kind: semel.Ack, Ending: source.EndApplied}
		}
		if _, e := s.Settle(ctx, settled); e != nil {
			t.Fatal(e)
		}
		if errors.Is(err, source.ErrEnd) {
			return all, nil
		}
		if err != nil || ctx.Err() != nil {
			return all, errors.Join(err, ctx.Err())
		}
	}
}

func numbers(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestARangeIsReadAgainBesideTheGroup(t *testing.T) {
	t.Run("G1_a_range_ends_where_the_logs_stood", func(t *testing.T) {
		config, client := setUp(t, kfake.SeedTopics(2, "orders"))
		write(t, client, 0, 0, 20)
		write(t, client, 1, 20, 23)
		r := newRange(t, config)
		lanes, err := r.Lanes(t.Context(), Bound{}, Bound{})
		if err != nil || len(lanes) != 2 || lanes[0].To != 20 || lanes[1].To != 3 || lanes[0].After != -1 {
			t.Fatalf("%+v, %v", lanes, err)
		}
		write(t, client, 0, 90, 95)
		got, err := readRange(t, openLanes(t, r, lanes))
		if err != nil || !slices.Equal(got["orders/0"], numbers(0, 20)) || !slices.Equal(got["orders/1"], numbers(20, 23)) {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("G1_a_range_is_between_offsets_and_times", func(t *testing.T) {
		config, client := setUp(t, kfake.SeedTopics(2, "orders"))
		write(t, client, 0, 0, 20)
		write(t, client, 1, 20, 23)
		r := newRange(t, config)
		for _, c := range []struct {
			from, to Bound
			want     map[string][]string
		}{
			{Bound{Offsets: map[string]int64{"orders/0": 5}}, Bound{}, map[string][]string{"orders/0": numbers(5, 20)}},
			{Bound{Offsets: map[string]int64{"orders/0": 5}}, Bound{Offsets: map[string]int64{"orders/0": 7}}, map[string][]string{"orders/0": numbers(5, 7)}},
			{Bound{Time: time.UnixMilli(1_700_000_018_000)}, Bound{Time: time.UnixMilli(1_700_000_021_000)}, map[string][]string{"orders/0": numbers(18, 20), "orders/1": numbers(20, 21)}},
			{Bound{Time: time.UnixMilli(1_800_000_000_000)}, Bound{}, map[string][]string{}},
		} {
			lanes, err := r.Lanes(t.Context(), c.from, c.to)
			must(t, err)
			got, err := readRange(t, openLanes(t, r, lanes))
			if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("from %+v to %+v: %v, %v; want %v", c.from, c.to, got, err, c.want)
			}
		}
		if _, err := r.Lanes(t.Context(), Bound{Offsets: map[string]int64{"orders/7": 1}}, Bound{}); err == nil || !strings.Contains(err.Error(), "there is no partition orders/7") {
			t.Errorf("a partition that does not exist: %v", err)
		}
	})
	t.Run("trap_T45_a_range_leaves_the_group_alone", func(t *testing.T) {
		config, client := setUp(t, kfake.SeedTopics(1, "orders"))
		write(t, client, 0, 0, 3)
		_, err := readRange(t, openAll(t, config))
		must(t, err)
		groups, err := kadm.NewClient(client).ListGroups(t.Context())
		if err != nil || len(groups) != 0 {
			t.Errorf("groups: %v, %v", groups, err)
		}
	})
	t.Run("law_14_a_range_goes_on_behind_what_was_done", func(t *testing.T) {
		config, client := setUp(t, kfake.SeedTopics(1, "orders"))
		write(t, client, 0, 0, 9)
		r := newRange(t, config)
		lanes, err := r.Lanes(t.Context(), Bound{}, Bound{})
		must(t, err)
		lanes[0].After = 5
		if got, err := readRange(t, openLanes(t, r, lanes)); err != nil || !slices.Equal(got["orders/0"], numbers(6, 9)) {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("trap_T95_a_range_ends_behind_what_a_transaction_left", func(t *testing.T) {
		config, client := setUp(t, kfake.SeedTopics(1, "orders"))
		write(t, client, 0, 0, 2)
		transaction(t, config, "kept", kgo.TryCommit)
		transaction(t, config, "lost", kgo.TryAbort)
		if got, err := readRange(t, openAll(t, config)); err != nil || !slices.Equal(got["orders/0"], []string{"0", "1", "kept"}) {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("law_8_what_is_handed_back_comes_again_before_the_end", handedBackInRange)
}

func handedBackInRange(t *testing.T) {
	config, client := setUp(t, kfake.SeedTopics(1, "orders"))
	write(t, client, 0, 0, 3)
	s := openAll(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var first []source.Delivery
	for len(first) < 3 && ctx.Err() == nil {
		got, err := s.Fetch(ctx, wide)
		must(t, err)
		first = append(first, got...)
	}
	all := []source.Settlement{{Delivery: &first[0], Kind: semel.Ack}, {Delivery: &first[1], Kind: semel.Nack, After: time.Millisecond}, {Delivery: &first[2], Kind: semel.Ack}}
	if _, err := s.Settle(ctx, all); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Settle(ctx, []source.Settlement{{Delivery: &first[1], Kind: semel.DeadLetter}}); !errors.Is(err, semel.ErrUnsupported) || len(left) != 1 {
		t.Errorf("a dead letter: %v, %v", left, err)
	}
	if got, err := readRange(t, s); err != nil || !slices.Equal(got["orders/0"], numbers(1, 2)) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestARangeThatIsNotThereAnyMoreIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(t *testing.T, admin *kadm.Client, client *kgo.Client)
	}{
		{"G1_records_that_are_gone", "now begins at offset 2: records from 0 on are gone", func(t *testing.T, admin *kadm.Client, _ *kgo.Client) {
			var to kadm.Offsets
			to.AddOffset("orders", 0, 2, -1)
			if _, err := admin.DeleteRecords(t.Context(), to); err != nil {
				t.Fatal(err)
			}
		}},
		{"G1_the_first_record_that_is_gone", "now begins at offset 1: records from 0 on are gone", func(t *testing.T, admin *kadm.Client, _ *kgo.Client) {
			var to kadm.Offsets
			to.AddOffset("orders", 0, 1, -1)
			if _, err := admin.DeleteRecords(t.Context(), to); err != nil {
				t.Fatal(err)
			}
		}},
		{"G1_a_topic_that_was_made_anew", "belongs to a topic that was deleted and created again", func(t *testing.T, admin *kadm.Client, client *kgo.Client) {
			if _, err := admin.DeleteTopics(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
			if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "orders"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, client := setUp(t, kfake.SeedTopics(1, "orders"))
			write(t, client, 0, 0, 5)
			r := newRange(t, config)
			lanes, err := r.Lanes(t.Context(), Bound{}, Bound{})
			must(t, err)
			if err := r.Check(t.Context(), lanes); err != nil {
				t.Errorf("existing records: %v", err)
			}
			c.do(t, kadm.NewClient(client), client)
			if err := r.Check(t.Context(), lanes); !errors.Is(err, ErrRange) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v", err)
			}
			s, err := r.Source(lanes) // without a call of Check, the error comes while reading
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for err == nil && ctx.Err() == nil {
				_, err = s.Fetch(ctx, wide)
			}
			if err == nil || errors.Is(err, source.ErrEnd) {
				t.Errorf("the range was read: %v", err)
			}
			_ = s.Close(ctx)
		})
	}
}

package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The longest wait for an expected event.
const patience = 2 * time.Minute

var wide = source.Bound{Messages: 1000, Bytes: 1 << 30}

// reader is a source under test. The reader also is the observer of the source, and keeps the notifications.
type reader struct {
	*Source
	t testing.TB

	mu       sync.Mutex // guards the fields below
	told     []string   // for example "given orders/0", "revoking orders/0", "lost orders/0"
	here     map[source.Lane]bool
	changed  chan struct{}
	revoking func(context.Context, source.Lane)
}

func read(t testing.TB, c Config) *reader {
	t.Helper()
	s, err := New(quiet(c))
	must(t, err)
	r := &reader{Source: s, t: t, here: map[source.Lane]bool{}, changed: make(chan struct{})}
	s.Info().Positions("billing", anotherStore())
	s.commits.interval = 0 // every ack is committed at once, so that tests see the commit
	s.Lanes(r)
	t.Cleanup(r.close)
	return r
}

// anotherStore returns a new store that keeps no offsets of lanes. Each source of a group may have a store of
// its own.
func anotherStore() source.PositionStore { return onlyPositions{memstore.New()} }

type onlyPositions struct{ source.PositionStore }

func (r *reader) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		r.t.Error(err)
	}
}

func (r *reader) note(what string, l source.Lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, what+" "+l.ID)
	r.here[l] = what != "lost"
	close(r.changed)
	r.changed = make(chan struct{})
}

// notifications returns the notifications of the observer so far.
func (r *reader) notifications() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

func (r *reader) Given(l source.Lane) { r.note("given", l) }

func (r *reader) Lost(l source.Lane) { r.note("lost", l) }

func (r *reader) Revoking(ctx context.Context, l source.Lane) {
	r.note("revoking", l)
	r.mu.Lock()
	f := r.revoking
	r.mu.Unlock()
	if f != nil {
		f(ctx, l)
	}
}

// await waits until the function met returns true for the notifications of the observer.
func (r *reader) await(what string, met func(told []string) bool) {
	r.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		r.mu.Lock()
		ok, changed := met(r.told), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			r.t.Fatalf("waited for %s; the observer was told %v", what, r.notifications())
		}
	}
}

func timesTold(told []string, what string) int {
	n := 0
	for _, s := range told {
		if s == what {
			n++
		}
	}
	return n
}

// wantTold fails unless the number of times that the observer got a notification is the expected number.
func (r *reader) wantTold(what string, times int) {
	r.t.Helper()
	if n := timesTold(r.notifications(), what); n != times {
		r.t.Errorf("%d times, not %d, the observer was told that %s: %v", n, times, what, r.notifications())
	}
}

// wantNotes fails unless the observer got exactly the given notifications.
func (r *reader) wantNotes(want ...string) {
	r.t.Helper()
	if told := r.notifications(); !slices.Equal(told, want) {
		r.t.Errorf("the observer was told %v, not %v", told, want)
	}
}

// take fetches until it has got n deliveries.
func (r *reader) take(n int) []source.Delivery {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	var all []source.Delivery
	for len(all) < n && ctx.Err() == nil {
		got, err := r.Fetch(ctx, source.Bound{Messages: n - len(all), Bytes: 1 << 30})
		if err != nil {
			r.t.Fatalf("fetch: %v", err)
		}
		for i := range got {
			got[i].Decode(nil)
		}
		all = append(all, got...)
	}
	if len(all) != n {
		r.t.Fatalf("%d of %d deliveries came", len(all), n)
	}
	return all
}

// fetchError fetches until Fetch returns an error, and returns the error.
func (r *reader) fetchError() error {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		if _, err := r.Fetch(ctx, wide); err != nil {
			return err
		}
	}
	r.t.Fatal("Fetch did not fail")
	return nil
}

// expectNone fails the test if a delivery arrives within the given time.
func (r *reader) expectNone(d time.Duration) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	defer cancel()
	for ctx.Err() == nil {
		got, err := r.Fetch(ctx, wide)
		if err != nil || len(got) > 0 {
			r.t.Fatalf("came: %s, %v", formatBodies(got), err)
		}
	}
}

// keepFetching fetches in a goroutine until the returned function is called.
func (r *reader) keepFetching(f func([]source.Delivery)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	g.Go(func() {
		for ctx.Err() == nil {
			got, err := r.Fetch(ctx, wide)
			if err != nil && ctx.Err() == nil {
				r.t.Errorf("fetch: %v", err)
				return
			}
			if f != nil {
				f(got)
			}
		}
	})
	return func() { cancel(); g.Wait() }
}

func settlements(kind semel.SettleKind, all []source.Delivery) []source.Settlement {
	out := make([]source.Settlement, len(all))
	for i := range all {
		out[i] = source.Settlement{Delivery: &all[i], Kind: kind}
	}
	return out
}

func (r *reader) settle(kind semel.SettleKind, all ...source.Delivery) {
	r.t.Helper()
	left, err := r.Settle(r.t.Context(), settlements(kind, all))
	if err != nil || len(left) > 0 {
		r.t.Fatalf("settle: left %v: %v", left, err)
	}
}

func (r *reader) ack(all ...source.Delivery) {
	r.t.Helper()
	r.settle(semel.Ack, all...)
}

// ackPatiently repeats acks that the group refuses, as a consumer does.
func (r *reader) ackPatiently(all ...source.Delivery) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		left, err := r.Settle(ctx, settlements(semel.Ack, all))
		if err == nil && len(left) == 0 {
			return
		}
		if timing.Wait(ctx, 20*time.Millisecond); ctx.Err() != nil {
			r.t.Fatalf("settle: left %v: %v", left, err)
		}
	}
}

// The function bodies returns the bodies of deliveries.
func bodies(all []source.Delivery) []string {
	var out []string
	for _, d := range all {
		out = append(out, string(d.Message.Body))
	}
	return out
}

func formatBodies(all []source.Delivery) string { return fmt.Sprintf("%.200q", bodies(all)) }

func expectBodies(t testing.TB, all []source.Delivery, want ...string) {
	t.Helper()
	if got := bodies(all); !slices.Equal(got, want) {
		t.Fatalf("came %q, not %q", got, want)
	}
}

// offset returns the group's offset of a partition; -1 if the group has no offset.
func offset(t testing.TB, c *kgo.Client, group, topic string, partition int32) int64 {
	t.Helper()
	all, err := kadm.NewClient(c).FetchOffsets(t.Context(), group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		t.Fatal(err)
	}
	if o, known := all.Lookup(topic, partition); known {
		return o.At
	}
	return -1
}

// wantOffset fails unless the group has the expected offset for a partition of the topic "orders".
func wantOffset(t testing.TB, c *kgo.Client, partition int32, expected int64) {
	t.Helper()
	if at := offset(t, c, "billing", "orders", partition); at != expected {
		t.Fatalf("the group's offset of partition %d is %d, not %d", partition, at, expected)
	}
}

// awaitOffset waits until the group has the expected offset.
func awaitOffset(t testing.TB, c *kgo.Client, group, topic string, partition int32, expected int64) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		at := offset(t, c, group, topic, partition)
		if at == expected {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("the group's offset of %s/%d is %d, not %d", topic, partition, at, expected)
		}
	}
}

// put writes values to a partition, in order.
func put(t testing.TB, c *kgo.Client, topic string, partition int32, values ...string) {
	t.Helper()
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)}
	}
	must(t, c.ProduceSync(t.Context(), records...).FirstErr())
}

func contextFor(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

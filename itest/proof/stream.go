//go:build unix

package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Stream has the brokers and the publisher of a fault test, and the Watch of the group's offsets.
type Stream struct {
	Cluster *services.Cluster
	Kafka   *topics.Cluster
	Feed    *Publisher
	Watch   *Watch
}

// OnKafka starts brokers that only the fleet uses.
func (f *Fleet) OnKafka(o services.KafkaOptions) {
	f.Cluster = services.StartKafka(f.T, o)
	f.Kafka = topics.Open(f.T, f.Cluster.Brokers())
}

// close stops the watch and the publisher, if they were started.
func (s *Stream) close() {
	if s.Watch != nil {
		s.Watch.Stop()
	}
	if s.Feed != nil {
		s.Feed.Stop()
	}
}

// ProducerOptions returns the options of producers that write to a topic.
func (s *Stream) ProducerOptions(topic string) []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(s.Cluster.Brokers()...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerLinger(5 * time.Millisecond)}
}

// CloudEvent returns a record that is a CloudEvent in binary mode.
func CloudEvent(partition int32, key, body []byte, id, source, kind string) *kgo.Record {
	header := func(name, value string) kgo.RecordHeader {
		return kgo.RecordHeader{Key: name, Value: []byte(value)}
	}
	return &kgo.Record{Partition: partition, Key: key, Value: body, Headers: []kgo.RecordHeader{
		header("ce_specversion", "1.0"), header("ce_id", id), header("ce_source", source), header("ce_type", kind), header("content-type", "application/json"),
	}}
}

// Plan returns the numbers of n messages in the order in which they are published. Each message occurs once. The result
// also contains copies of random messages; the distance between a copy and its original is at most the parameter
// behind. If set, the function place returns the position of a message in units of half a message, or false if the
// message is not published.
func Plan(seed uint64, n, copies, behind int, place func(message int, random *rand.Rand) (at int, is bool)) []int {
	random := rand.New(rand.NewPCG(seed, 7))
	type entry struct{ message, at int }
	var all []entry
	for i := range n {
		at, is := 2*i, true
		if place != nil {
			at, is = place(i, random)
		}
		if is {
			all = append(all, entry{i, at})
		}
	}
	for range copies {
		i := random.IntN(n)
		if place != nil {
			if _, is := place(i, random); !is {
				continue
			}
		}
		all = append(all, entry{i, 2*(i+random.IntN(behind)) + 1})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	messages := make([]int, len(all))
	for i, e := range all {
		messages[i] = e.message
	}
	return messages
}

// UntilTime calls Tend repeatedly until the given time.
func (f *Fleet) UntilTime(ctx context.Context, until time.Time) {
	f.Until(ctx, func() bool { return !time.Now().Before(until) })
}

// Spread runs the schedule over the given time. Between the events, Spread calls Tend repeatedly.
func (f *Fleet) Spread(ctx context.Context, all Schedule, within time.Duration) {
	began := time.Now()
	all.Run(ctx, func(ctx context.Context, at float64) { f.UntilTime(ctx, began.Add(time.Duration(at*float64(within)))) })
}

// Patiently calls Tend repeatedly until condition returns true, but at most for the time limit. Patiently calls
// condition once per interval, and reports whether condition returned true.
func (f *Fleet) Patiently(ctx context.Context, limit, interval time.Duration, condition func(context.Context) bool) bool {
	looked := time.Time{}
	return Within(ctx, limit, often, func(ctx context.Context) bool {
		f.Tend()
		if time.Since(looked) < interval {
			return false
		}
		looked = time.Now()
		return condition(ctx)
	})
}

// Published calls Publisher.Rest, because no more faults follow, and waits until all records are published.
func (f *Fleet) Published(ctx context.Context) {
	f.Feed.Rest()
	f.Until(ctx, f.Feed.Over)
	f.Say("all %d records are published", f.Feed.Acknowledged())
}

// Settled waits until the group has committed the offsets of all records, but at most for the time limit.
func (f *Fleet) Settled(ctx context.Context, limit time.Duration) {
	if !f.Patiently(ctx, limit, 200*time.Millisecond, f.Watch.AtEnd) {
		f.Say("after %v the group has not settled everything", limit)
	}
}

// Hunt configures how Catch looks for a member with an open transaction.
type Hunt struct {
	// Opening is the statement that begins the transactions to catch.
	Opening processes.Opening
	// Most is the time for which Catch searches. After the time Corner, Catch also locks the table that the statement
	// Opening uses, so that members wait in this statement. If Corner is 0, Catch never locks the table.
	Most, Corner time.Duration
	Random       *rand.Rand
}

// The maximum time for which Catch holds a table lock. The limit matters if the chosen member has no work.
const maxCorner = 5 * time.Second

// Catch freezes one member after the other at random moments until a member has an open transaction. The result is the
// member with the open transaction, still frozen. After the time h.Most, Catch freezes any member and returns it with
// false.
func (f *Fleet) Catch(ctx context.Context, h Hunt) (m *Member, open bool) {
	for began := time.Now(); ; {
		Check(ctx.Err())
		f.Tend()
		m = f.Next()
		for range 10 {
			processes.Pause(ctx, time.Duration(h.Random.Int64N(int64(5*time.Millisecond))))
			err := m.Freeze()
			if errors.Is(err, processes.ErrEnded) {
				break // the member has ended; Tend restarts it
			}
			Check(err)
			open, err := f.Activity.Settled(ctx, m.Name, h.Opening)
			if open = open && err == nil; open || time.Since(began) > h.Most {
				return m, open
			}
			Check(m.Thaw())
		}
		if h.Corner > 0 && time.Since(began) > h.Corner && f.freezeInTransaction(ctx, m, h.Opening) {
			return m, true
		}
	}
}

// freezeInTransaction tries to freeze a member directly after the member has opened its transaction. If the freeze
// fails, the member keeps running, or has ended and Tend restarts it.
func (f *Fleet) freezeInTransaction(ctx context.Context, m *Member, opening processes.Opening) bool {
	ctx, cancel := context.WithTimeout(ctx, maxCorner)
	defer cancel()
	return f.Activity.Corner(ctx, m.Process, m.Name, opening) == nil
}

// Next returns the next member in turn.
func (f *Fleet) Next() *Member {
	f.turn++
	return f.Members[f.turn%len(f.Members)]
}

// Drain ends a member with SIGTERM. A member may drain and then fail to leave the group in time, because other members
// were killed just before. A member that cannot leave in time exits with the code 1, and Drain counts the member in
// Tally.Unleft.
func (f *Fleet) Drain(m *Member, consumer string) {
	err := m.End()
	if err == nil {
		return
	}
	if _, drained := m.Counts(consumer); drained != nil || m.Status.ExitStatus() != 1 {
		Check(fmt.Errorf("%s: %w", m.Name, err))
	}
	f.Say("%s drained and ended with 1: %s", m.Name, m.LastWords())
	f.Tally.Unleft++
}

// Call returns a `semel` command with the member's policy and environment. Call does not run the command.
func (m *Member) Call(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, m.Binary, append(args, "--config", m.Policy)...)
	cmd.Dir, cmd.Env = m.Folder, append(cmd.Environ(), m.Env...)
	return cmd
}

// Semel runs a `semel` command with the member's policy and returns its output.
func (m *Member) Semel(ctx context.Context, args ...string) (string, error) {
	said, err := m.Call(ctx, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("semel %v: %w\n%.2000s", args, err, said)
	}
	return string(said), nil
}

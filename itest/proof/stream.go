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

// Stream is the side of Kafka in a proof: who publishes, and what the group settles.
type Stream struct {
	Cluster *services.Cluster
	Kafka   *topics.Cluster
	Feed    *Publisher
	Watch   *Watch
}

// OnKafka gives the fleet brokers of its own.
func (f *Fleet) OnKafka(o services.KafkaOptions) {
	f.Cluster = services.StartKafka(f.T, o)
	f.Kafka = topics.Open(f.T, f.Cluster.Brokers())
}

// close ends what still goes on.
func (s *Stream) close() {
	if s.Watch != nil {
		s.Watch.Stop()
	}
	if s.Feed != nil {
		s.Feed.Stop()
	}
}

// CloudEvent is a record in the binary mode of CloudEvents.
func CloudEvent(partition int32, key, body []byte, id, source, kind string) *kgo.Record {
	header := func(name, value string) kgo.RecordHeader {
		return kgo.RecordHeader{Key: name, Value: []byte(value)}
	}
	return &kgo.Record{Partition: partition, Key: key, Value: body, Headers: []kgo.RecordHeader{
		header("ce_specversion", "1.0"), header("ce_id", id), header("ce_source", source), header("ce_type", kind), header("content-type", "application/json"),
	}}
}

// Plan lists n messages in the order in which they are published: each once, and copies of some
// of them up to so many messages behind. If place is set, it says where a message is published,
// in halves of a message, or that it is not.
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

// UntilTime looks after the members until so late.
func (f *Fleet) UntilTime(ctx context.Context, until time.Time) error {
	return f.Until(ctx, func() (bool, error) { return !time.Now().Before(until), nil })
}

// Spread lets what is in the schedule happen, spread over a time, while it looks after the members.
func (f *Fleet) Spread(ctx context.Context, all Schedule, within time.Duration) error {
	began := time.Now()
	return all.Run(ctx, func(ctx context.Context, at float64) error {
		return f.UntilTime(ctx, began.Add(time.Duration(at*float64(within))))
	})
}

// Patiently looks after the members until it is so, or for so long, and reports whether it is. It
// asks every so often.
func (f *Fleet) Patiently(ctx context.Context, most, every time.Duration, so func(context.Context) (bool, error)) (is bool, err error) {
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	looked := time.Time{}
	err = f.Until(within, func() (bool, error) {
		if time.Since(looked) < every {
			return false, nil
		}
		looked = time.Now()
		return so(within)
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil // what has not come, the ledger says
	}
	return err == nil, err
}

// Published has nothing more happen, and waits until all is published.
func (f *Fleet) Published(ctx context.Context) error {
	f.Feed.Rest()
	if err := f.Until(ctx, func() (bool, error) { return f.Feed.Over(), nil }); err != nil {
		return err
	}
	f.Say("all %d records are published", f.Feed.Acknowledged())
	return nil
}

// Settled waits until the group is at the ends of the partitions, or for so long.
func (f *Fleet) Settled(ctx context.Context, most time.Duration) error {
	is, err := f.Patiently(ctx, most, 200*time.Millisecond, func(ctx context.Context) (bool, error) { return f.Watch.AtEnd(ctx), nil })
	if err == nil && !is {
		f.Say("after %v the group has not settled everything", most)
	}
	return err
}

// Hunt is how Catch looks for a member with an open transaction.
type Hunt struct {
	// Opening is the statement that begins the transaction.
	Opening processes.Opening
	// Most is how long it looks. After Corner it also has members wait for the table of the
	// opening; 0 never does.
	Most, Corner time.Duration
	Random       *rand.Rand
}

// maxCorner is how long the fleet stands still for a member that may have nothing to do.
const maxCorner = 5 * time.Second

// Catch freezes one member after the other at random moments until one has begun a transaction
// that is open, and returns it frozen; or, when it has looked for long, any of them.
func (f *Fleet) Catch(ctx context.Context, h Hunt) (m *Member, open bool, err error) {
	began := time.Now()
	for ctx.Err() == nil {
		if err := f.Tend(); err != nil {
			return nil, false, err
		}
		m = f.Next()
		for range 10 {
			processes.Pause(ctx, time.Duration(h.Random.Int64N(int64(5*time.Millisecond))))
			err := m.Freeze()
			if errors.Is(err, processes.ErrEnded) {
				break // Tend starts it again
			}
			if err != nil {
				return nil, false, err
			}
			open, err := f.Activity.Settled(ctx, m.Name, h.Opening)
			if open = open && err == nil; open || time.Since(began) > h.Most {
				return m, open, nil
			}
			if err := m.Thaw(); err != nil {
				return nil, false, err
			}
		}
		if h.Corner > 0 && time.Since(began) > h.Corner && f.cornered(ctx, m, h.Opening) {
			return m, true, nil
		}
	}
	return nil, false, ctx.Err()
}

// cornered tries to freeze a member where its transaction opens; after a failure it runs, or has
// ended and is started again.
func (f *Fleet) cornered(ctx context.Context, m *Member, opening processes.Opening) bool {
	ctx, cancel := context.WithTimeout(ctx, maxCorner)
	defer cancel()
	return f.Activity.Corner(ctx, m.Process, m.Name, opening) == nil
}

// Next is the member whose turn it is to suffer.
func (f *Fleet) Next() *Member {
	f.turn++
	return f.Members[f.turn%len(f.Members)]
}

// Drain has a member drain and end. One that cannot leave the group in time, because others were
// killed just now, drains too, says so and fails.
func (f *Fleet) Drain(m *Member, consumer string) error {
	err := m.End()
	if err == nil {
		return nil
	}
	if _, drained := m.Counts(consumer); drained != nil || m.Status.ExitStatus() != 1 {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	f.Say("%s drained and ended with 1: %s", m.Name, m.LastWords())
	f.Tally.Unleft++
	return nil
}

// Call is a command of the binary with a member's policy and environment.
func (m *Member) Call(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, m.Binary, append(args, "--config", m.Policy)...)
	cmd.Dir, cmd.Env = m.Folder, append(cmd.Environ(), m.Env...)
	return cmd
}

// Semel runs a command of the binary as Call has it, and returns what it said.
func (m *Member) Semel(ctx context.Context, args ...string) (string, error) {
	said, err := m.Call(ctx, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("semel %v: %w\n%.2000s", args, err, said)
	}
	return string(said), nil
}

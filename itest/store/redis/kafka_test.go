//go:build unix

package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/redisstore"
)

// member is a member of a topic's consumer group whose idempotency keys are in a Redis server.
type member struct {
	Brokers             []string
	Topic, Group, Redis string
	Lease               time.Duration
}

const (
	// The number of partitions of the topic. Records go to the partitions in turn.
	partitions = 3
	// The id of the message whose call is running when a fault happens.
	held = "m20"
)

// topicOf creates a topic with the given number of messages, each message twice, and returns a member of a group that
// reads the topic.
func topicOf(t *testing.T, messages int) (member, *topics.Cluster, *services.Redis) {
	t.Helper()
	brokers := services.Kafka(t)
	m := member{Brokers: brokers, Topic: services.Topic(t, brokers, partitions, "retention.ms=86400000"), Group: topics.Name(), Lease: 10 * time.Second}
	cluster := topics.Open(t, brokers)
	var records []*kgo.Record
	for n := range 2 * messages {
		records = append(records, topics.Record(m.Topic, int32(n%partitions), fmt.Sprint("m", n%messages), "{}"))
	}
	cluster.Produce(records...)
	server := services.StartRedis(t, "appendonly yes", "appendfsync always")
	m.Redis = server.Address()
	return m, cluster, server
}

func (m member) source() (*kafka.Source, error) {
	return kafka.New(kafka.Config{
		Brokers: m.Brokers, Topics: []string{m.Topic}, Group: m.Group, Logger: slog.New(slog.DiscardHandler),
		SessionTimeout: 3 * time.Second, RevokeTimeout: time.Second,
	})
}

// newConsumer returns the consumer of the member. The consumer ends when the group has read all records.
func (m member) newConsumer(t *testing.T, s *fixture) *consumer.Consumer[consumer.Call] {
	t.Helper()
	source, err := m.source()
	if err != nil {
		t.Fatal(err)
	}
	keys := newStore(t, client(t, rueidis.ClientOption{InitAddress: []string{m.Redis}}), redisstore.Options{})
	return s.newConsumer(t, keys, source, m.setTimeouts)
}

func (m member) setTimeouts(c *consumer.Config) {
	c.Inbox.Lease, c.Timeout, c.IdleExit = m.Lease, time.Minute, 2*time.Second
}

// wantAllRead fails unless the group has committed the offsets of all records.
func (m member) wantAllRead(t *testing.T, cluster *topics.Cluster) {
	t.Helper()
	if at, ends := cluster.Committed(m.Group, m.Topic), cluster.Ends(m.Topic); fmt.Sprint(at) != fmt.Sprint(ends) {
		t.Errorf("the group is at %v of %v", at, ends)
	}
}

func TestMain(m *testing.M) { children.Main(m, runMember) }

// runMember runs a member in a process of its own, and writes a line when a call begins. The call for the
// message held lasts until standard input is closed.
func runMember(m member) error {
	source, err := m.source()
	if err != nil {
		return err
	}
	connected, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{m.Redis}, DisableCache: true})
	if err != nil {
		return err
	}
	defer connected.Close()
	keys, err := redisstore.New(context.Background(), connected, redisstore.Options{})
	if err != nil {
		return err
	}
	config := policy(source)
	m.setTimeouts(&config)
	config.Logger = slog.New(slog.DiscardHandler)
	made, err := consumer.NewKeyed(keys, kept, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
		fmt.Println(m.Identity.ID, m.IdempotencyKey("call"))
		if m.Identity.ID == held {
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		return nil
	}, config)
	if err != nil {
		return err
	}
	if err := made.Run(context.Background()); err != nil {
		return err
	}
	fmt.Println("applied", made.Counts().Applied)
	return nil
}

// memberProcess is a member that runs in another process.
type memberProcess struct {
	*exec.Cmd
	input io.Closer
	// The channel calling is closed when the call for the message held has begun.
	calling chan struct{}
	// The channel over is closed when the process has written its last line.
	over chan struct{}
	// The last line of the process, valid after the channel over is closed.
	applied string
}

// startMember starts a member in another process. The calls of the other process are also counted in s.
func (m member) startMember(t *testing.T, s *fixture) *memberProcess {
	t.Helper()
	o := &memberProcess{Cmd: children.Command(t.Context(), t, m), calling: make(chan struct{}), over: make(chan struct{})}
	input, err := o.StdinPipe()
	output, failed := o.StdoutPipe()
	o.input, o.Stderr = input, t.Output()
	if err := errors.Join(err, failed, o.Start()); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(o.over)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			id, key, _ := strings.Cut(lines.Text(), " ")
			if id == "applied" {
				o.applied = key
				continue
			}
			if s.countCall(id, key); id == held {
				close(o.calling)
			}
		}
	}()
	return o
}

func TestKeyedConsumersOfATopic(t *testing.T) {
	t.Parallel()
	const messages = 300
	t.Run("law_13_law_2_whose_redis_restarts_between_a_claim_and_its_end", func(t *testing.T) {
		t.Parallel()
		m, cluster, server := topicOf(t, messages)
		s := newFixture()
		s.first = map[string]func(){held: func() { server.Kill(); server.Start() }}
		if sum := runConsumers(t, m.newConsumer(t, s)); sum.Applied != messages || sum.Duplicates != messages {
			t.Errorf("%+v", sum)
		}
		s.want(t, messages, 1)
		m.wantAllRead(t, cluster)
	})
	t.Run("law_2_law_5_whose_partition_goes_to_another_while_a_call_runs", func(t *testing.T) {
		t.Parallel()
		m, cluster, _ := topicOf(t, messages)
		s, joined := newFixture(), make(chan struct{})
		s.first = map[string]func(){held: func() {
			close(joined)
			// the other process has got the partition and waits, because the key is still claimed
			waitUntil(t, func() bool { return s.hasWaited(held) })
		}}
		first, second := m.newConsumer(t, s), m.newConsumer(t, s)
		var running sync.WaitGroup
		running.Go(func() { runConsumers(t, first) })
		<-joined
		runConsumers(t, second)
		running.Wait()
		if applied := first.Counts().Applied + second.Counts().Applied; applied != messages || second.Counts().Duplicates == 0 {
			t.Errorf("%+v, %+v", first.Counts(), second.Counts())
		}
		s.want(t, messages, 1)
		m.wantAllRead(t, cluster)
	})
	for name, frozen := range map[string]bool{
		"law_5_of_whom_one_is_killed_in_a_call":                                      false,
		"law_5_law_12_of_whom_one_is_frozen_in_a_call_and_whose_late_end_is_refused": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, cluster, _ := topicOf(t, messages)
			s := newFixture()
			dying := m.startMember(t, s)
			<-dying.calling
			silenced := time.Now()
			dying.silence(t, frozen)
			var again time.Time
			s.second = map[string]func(){held: func() { again = time.Now() }}
			heir := m.newConsumer(t, s)
			runConsumers(t, heir)
			// The process extends a lease after a third of the lease, so at least two thirds of the lease were left
			// when the process was frozen or killed.
			if least := m.Lease * 2 / 3; !s.hasWaited(held) || again.Sub(silenced) < least {
				t.Errorf("it was called for again after %v, with %v left at least; waited for: %t", again.Sub(silenced), least, s.hasWaited(held))
			}
			m.wantAllRead(t, cluster)
			if frozen {
				dying.goesOn(t, messages-heir.Counts().Applied)
				m.wantAllRead(t, cluster)
			}
			s.want(t, messages, 2)
			if n := s.countTwice(); n > workers {
				t.Errorf("%d messages were called for twice, and at most %d calls were under way", n, workers)
			}
		})
	}
}

// countTwice returns the number of messages with two calls.
func (s *fixture) countTwice() (n int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, calls := range s.calls {
		if calls > 1 {
			n++
		}
	}
	return n
}

// silence freezes the process or, if frozen is false, kills it.
func (o *memberProcess) silence(t *testing.T, frozen bool) {
	t.Helper()
	signal := syscall.SIGKILL
	if frozen {
		signal = syscall.SIGSTOP
	}
	if err := o.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if !frozen {
		<-o.over
		_ = o.Wait() // the error says that the process was killed
	}
}

// goesOn lets a frozen process end its call, and fails the test unless the process succeeds and reports the given
// number of applied messages.
func (o *memberProcess) goesOn(t *testing.T, applied int64) {
	t.Helper()
	if err := errors.Join(o.Process.Signal(syscall.SIGCONT), o.input.Close()); err != nil {
		t.Fatal(err)
	}
	<-o.over
	if err := o.Wait(); err != nil || o.applied != fmt.Sprint(applied) {
		t.Errorf("it ends with %v, and says that it applied %q messages, not %d", err, o.applied, applied)
	}
}

package file_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// causesFixture is a folder of files, with the store of the processes that read these files.
type causesFixture struct {
	t      *testing.T
	folder string
	store  *memstore.Store
	// If set, the function fetched is called by each process after the process has read its first lines.
	fetched func()
}

// put appends the events with the numbers from first to last to a file.
func (s *causesFixture) put(name string, first, last int) {
	s.t.Helper()
	var text strings.Builder
	for n := first; n <= last; n++ {
		fmt.Fprintf(&text, `{"specversion":"1.0","id":"%d","source":"shop","type":"order","data":{"n":%d}}`+"\n", n, n)
	}
	f, err := os.OpenFile(s.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text.String())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *causesFixture) path(name string) string { return filepath.Join(s.folder, name) }

// process runs a consumer until the end of a file. If point is not empty, the process dies when the consumer's second
// batch passes that point.
func (s *causesFixture) process(name string, point faults.Point) semel.Counts {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := &mortalStore{Store: s.store}
	var passed atomic.Int32
	var first sync.Once
	nth := int32(2)
	if point == faults.BeforeSettle { // one call of Settle may settle several batches
		nth = 1
	}
	c := consumer.Config{
		Name: "billing", Source: file.Open(s.path(name), file.Options{}), Identity: identity.CloudEvents(),
		Logger: slog.New(slog.DiscardHandler), Batch: consumer.BatchLimits{MaxSize: 5}, Workers: 1,
	}
	plan := faults.Plan{
		Seed: 1,
		At: func(at faults.Point, _ int) {
			if at == faults.AfterFetch && s.fetched != nil {
				first.Do(s.fetched)
			}
			if at == point && passed.Add(1) == nth {
				store.dead.Store(true)
				cancel()
			}
		},
	}
	running, err := consumer.New(store, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		return tx.Add("effect "+m.Identity.ID, 1)
	}, c, plan)
	if err == nil {
		err = running.Run(ctx)
	}
	if err != nil && point == "" {
		s.t.Fatal(err)
	}
	if point != "" && !store.dead.Load() {
		s.t.Fatalf("the process did not pass %s", point)
	}
	return running.Counts()
}

// mortalStore is a store that does not answer a dead process.
type mortalStore struct {
	*memstore.Store
	dead atomic.Bool
}

var errDead = errors.New("the process is dead")

func (m *mortalStore) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	if m.dead.Load() {
		return nil, nil, errDead
	}
	return m.Store.Begin(ctx, o, marks)
}

func (m *mortalStore) SavePosition(ctx context.Context, consumer, lane string, p source.Position) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Store.SavePosition(ctx, consumer, lane, p)
}

// Each subtest has one cause of duplicate deliveries that occurs with files. The function of a subtest returns the
// counts of the last process.
func TestCausesOfDuplicates(t *testing.T) {
	for name, happens := range map[string]func(*causesFixture) semel.Counts{
		"L7_producer_retry": func(s *causesFixture) semel.Counts { // a writer that does not know whether its line was written
			s.put("orders", 1, 1)
			s.put("orders", 1, 30)
			return s.process("orders", "")
		},
		"L7_relay_retry": func(s *causesFixture) semel.Counts { // a relay that died before it stored which lines it had written
			s.put("orders", 1, 20)
			s.process("orders", "")
			s.put("orders", 11, 30)
			return s.process("orders", "")
		},
		"L7_crash_after_effect":      func(s *causesFixture) semel.Counts { return s.crash(faults.AfterCommit) },
		"L7_crash_before_settle":     func(s *causesFixture) semel.Counts { return s.crash(faults.BeforeSettle) },
		"L7_rebalance":               twoAtOnce,
		"L7_time_out_hiding_success": hiddenSuccess,
		"L7_retry_topic": func(s *causesFixture) semel.Counts { // another application has copied its failed messages to a second file
			s.put("orders", 1, 30)
			s.process("orders", "")
			s.put("again", 5, 10)
			return s.process("again", "")
		},
		"L7_offset_reset": func(s *causesFixture) semel.Counts { // the file was replaced by another file with the same events
			s.put("orders", 1, 30)
			s.process("orders", "")
			if err := os.Remove(s.path("orders")); err != nil {
				s.t.Fatal(err)
			}
			s.put("orders", 2, 30)
			return s.process("orders", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &causesFixture{t: t, folder: t.TempDir(), store: memstore.New()}
				c := happens(s)
				if c.Duplicates == 0 || c.Conflicts != 0 || c.Parked != 0 || c.InFlight != 0 {
					t.Errorf("%+v", c)
				}
				for n := 1; n <= 30; n++ {
					if got := string(s.store.Get(fmt.Sprint("effect ", n))); got != "1" {
						t.Errorf("%d took effect %q times", n, got)
					}
				}
			})
		})
	}
}

func (s *causesFixture) crash(point faults.Point) semel.Counts {
	s.put("orders", 1, 30)
	s.process("orders", point)
	return s.process("orders", "")
}

// twoAtOnce runs two processes that both read the file. Each process waits until both processes have fetched lines.
// Without this wait, a quick process could save its position at the end of the file before the other process starts.
func twoAtOnce(s *causesFixture) semel.Counts {
	s.put("orders", 1, 30)
	var reading sync.WaitGroup
	reading.Add(2)
	s.fetched = func() { reading.Done(); reading.Wait() }
	var counts [2]semel.Counts
	var both sync.WaitGroup
	for i := range counts {
		both.Go(func() { counts[i] = s.process("orders", "") })
	}
	both.Wait()
	if n := counts[0].Applied + counts[1].Applied; n != 30 {
		s.t.Errorf("the two processes applied %d messages", n)
	}
	if counts[0].Duplicates > counts[1].Duplicates {
		return counts[0]
	}
	return counts[1]
}

// hiddenSuccess loses the responses to commits that have succeeded. A writer that got no response then writes its
// events again.
func hiddenSuccess(s *causesFixture) semel.Counts {
	lost := 0
	s.store = memstore.New(memstore.Fail(func(op string) error {
		if op == "commit-after" && lost < 3 {
			lost++
			return context.DeadlineExceeded
		}
		return nil
	}))
	s.put("orders", 1, 30)
	if c := s.process("orders", ""); c.Applied != 30 || lost != 3 {
		s.t.Errorf("%+v, %d answers were lost", c, lost)
	}
	s.put("orders", 25, 30)
	return s.process("orders", "")
}

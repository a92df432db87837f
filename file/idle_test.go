package file_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// lateReader is a source that delays the first line of an assigned lane, as on a busy machine.
type lateReader struct {
	source.Source
	source.LaneObserver
	late time.Duration
}

func (r *lateReader) Lanes(o source.LaneObserver) {
	r.LaneObserver = o
	r.Source.Lanes(r)
}

func (r *lateReader) Given(l source.Lane) {
	r.LaneObserver.Given(l)
	<-time.After(r.late)
}

func TestARunEndsIdleWhereAllWasRead(t *testing.T) {
	lines := func(n int) string {
		return strings.Repeat(`{"specversion":"1.0","id":"1","source":"shop","type":"order"}`+"\n", n)
	}
	run := func(t *testing.T, s source.Source) (semel.Counts, []semel.Unfinished) {
		t.Helper()
		c, err := consumer.New(memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { return nil }, consumer.Config{
			Name: "billing", Source: &lateReader{Source: s, late: 50 * time.Millisecond}, Identity: identity.CloudEvents(),
			IdleExit: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
		return c.Counts(), c.Unfinished()
	}
	t.Run("trap_T95_not_where_a_first_Fetch_was_too_slow_to_read", func(t *testing.T) {
		for name, o := range map[string]file.Options{"read to its end": {}, "followed": {Follow: true}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					path := t.TempDir() + "/events"
					write(t, path, lines(3))
					if c, _ := run(t, file.Open(path, o)); c.Applied != 1 || c.Duplicates != 2 {
						t.Errorf("%+v", c)
					}
				})
			})
		}
	})
	t.Run("trap_T95_a_line_that_may_still_be_written_is_named", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			path := t.TempDir() + "/events"
			write(t, path, lines(2)+strings.TrimSuffix(lines(1), "\n"))
			c, left := run(t, file.Open(path, file.Options{Follow: true}))
			if c.Deliveries != 2 || len(left) != 1 || left[0].Messages != 1 || left[0].Fault {
				t.Errorf("%+v, left %+v", c, left)
			}
		})
	})
	t.Run("trap_T95_nor_where_standard_input_has_more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			wrote := make(chan error, 1)
			go func() {
				_, err := w.Write([]byte(lines(3)))
				wrote <- err
			}()
			if c, _ := run(t, file.Stdin(r, file.Options{})); c.Deliveries != 3 {
				t.Errorf("%+v", c)
			}
			_ = r.Close()
			if err := <-wrote; err != nil {
				t.Error(err)
			}
		})
	})
}

// fetchFor fetches for at most a second and fails unless it gets n deliveries.
func fetchFor(t *testing.T, s source.Source, bytes int64, n int) []source.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	all, err := s.Fetch(ctx, source.Bound{Messages: 10, Bytes: bytes})
	if err != nil || len(all) != n {
		t.Fatalf("%d deliveries, want %d: %v", len(all), n, err)
	}
	return all
}

func TestASourceSaysWhetherItHasMore(t *testing.T) {
	const large = 1 << 20
	two := `{"id":1}` + "\n" + `{"id":2}` + "\n"
	open := func(t *testing.T, o file.Options) (s *file.Source, path string, idle func(want bool)) {
		path = t.TempDir() + "/events"
		write(t, path, two)
		o.Format = file.JSON
		s = file.Open(path, o)
		t.Cleanup(func() {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return s, path, func(want bool) {
			t.Helper()
			if is, _, err := s.Info().Idle(t.Context()); is != want || err != nil {
				t.Errorf("idle %t, want %t: %v", is, want, err)
			}
		}
	}
	bubble := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	bubble("trap_T95_it_has_where_a_line_that_comes_again_did_not_fit_into_the_last_Fetch", func(t *testing.T) {
		s, _, idle := open(t, file.Options{Follow: true})
		idle(false) // the file is not open yet
		both := fetchFor(t, s, large, 2)
		fetchFor(t, s, large, 0)
		idle(true)
		var back []source.Settlement
		for i := range both {
			back = append(back, source.Settlement{Delivery: &both[i], Kind: semel.Nack})
		}
		if _, err := s.Settle(t.Context(), back); err != nil {
			t.Fatal(err)
		}
		idle(false)
		fetchFor(t, s, 1, 1)
		idle(false)
		fetchFor(t, s, large, 1)
		idle(true)
	})
	bubble("trap_T95_it_has_where_a_line_came_since_the_last_Fetch", func(t *testing.T) {
		s, path, idle := open(t, file.Options{Follow: true})
		fetchFor(t, s, large, 2)
		fetchFor(t, s, large, 0)
		write(t, path, two+two)
		idle(false)
		fetchFor(t, s, large, 2)
		fetchFor(t, s, large, 0)
		idle(true)
	})
	bubble("trap_T95_whether_it_has_is_not_known_where_the_path_cannot_be_looked_up", func(t *testing.T) {
		folder := t.TempDir() + "/folder"
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, folder+"/events", two)
		s := file.Open(folder+"/events", file.Options{Format: file.JSON, Follow: true})
		fetchFor(t, s, large, 2)
		fetchFor(t, s, large, 0)
		if err := os.Rename(folder, folder+".old"); err != nil {
			t.Fatal(err)
		}
		write(t, folder, "no folder")
		if idle, _, err := s.Info().Idle(t.Context()); idle || err == nil {
			t.Errorf("idle %t, %v", idle, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	bubble("law_11_what_stands_in_a_lane_that_is_paused_keeps_no_run_from_ending", func(t *testing.T) {
		for _, follow := range []bool{false, true} {
			s, _, idle := open(t, file.Options{Follow: follow})
			first := fetchFor(t, s, 1, 1)
			idle(false)
			if s.Info().AtEnd() {
				t.Error("AtEnd returned true too early")
			}
			s.Flow(first[0].Lane, false)
			idle(true)
			if s.Info().AtEnd() == follow {
				t.Errorf("followed %t: at its end %t", follow, s.Info().AtEnd())
			}
		}
	})
	bubble("law_11_a_file_that_was_read_is_at_its_end_and_one_that_is_followed_never", func(t *testing.T) {
		for _, follow := range []bool{false, true} {
			s, _, _ := open(t, file.Options{Follow: follow})
			fetchFor(t, s, large, 2)
			fetchFor(t, s, large, 0)
			if s.Info().AtEnd() == follow {
				t.Errorf("followed %t: at its end %t", follow, s.Info().AtEnd())
			}
		}
	})
	bubble("law_11_standard_input_that_is_paused_is_not_known_to_end", func(t *testing.T) {
		s := file.Stdin(strings.NewReader(two), file.Options{Format: file.JSON})
		first := fetchFor(t, s, 1, 1)
		s.Flow(first[0].Lane, false)
		if s.Info().AtEnd() {
			t.Error("AtEnd returned true")
		}
		s.Flow(first[0].Lane, true)
		fetchFor(t, s, large, 1)
		fetchFor(t, s, large, 0)
		if !s.Info().AtEnd() {
			t.Error("the file was read, but AtEnd returned false")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

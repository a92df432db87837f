package pgxstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestACallbackThatSticks(t *testing.T) {
	t.Run("C17_is_cut_off_and_an_attempt_of_its_message_when_it_returns", func(t *testing.T) {
		h, straight, _ := cutting(t)
		release, told := make(chan struct{}), make(chan string, 9)
		running, err := consumer.New(h.Queued(), func(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
			q.ExecOne(h.inSchema(insert), m.Body)
			if string(m.Body) == "3" {
				// The answer is larger than the read buffer. If the store stops reading the answer, the connection is
				// broken.
				q.Query("select repeat('x', 1000) from generate_series(1, 50000)").Do(func(pgx.Rows) error { <-release; return nil })
			}
			return nil
		}, consumer.Config{
			Name: "billing", Identity: identity.CloudEvents(), Timeout: time.Second, Retry: consumer.RetryPolicy{MaxAttempts: 1},
			Observers: []semel.Observer{stuckTo(told)},
		})
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan consumer.Disposition, 1)
		go func() {
			d, err := running.Process(t.Context(), makeMessages(3, 4)[0])
			if err != nil {
				t.Error(err)
			}
			answered <- d
		}()
		if id := <-told; id != "3" {
			t.Errorf("message %s is told to be stuck", id)
		}
		open := 1
		for open > 0 { // wait until the server has closed these connections
			if err := straight.pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`).Scan(&open); err != nil {
				t.Fatal(err)
			}
		}
		close(release)
		if d := <-answered; d.Kind != semel.Ack || d.Ending != source.EndParked {
			t.Errorf("it is answered with %+v", d)
		}
		rows, err := straight.Rows(t.Context(), store.RowFilter{IDs: []string{"3"}})
		if err != nil || len(rows) != 1 || rows[0].Attempts != 1 || !strings.Contains(rows[0].LastError, "longer than the handler's timeout") || straight.count(t, "3") != 0 {
			t.Errorf("%+v, %v", rows, err)
		}
		if err := running.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// stuckTo receives the id of each message whose handler or callback blocks.
type stuckTo chan string

func (s stuckTo) Observe(e semel.Event) {
	if e.Kind == eventkind.Stuck {
		s <- e.Key.ID
	}
}

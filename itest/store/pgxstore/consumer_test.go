package pgxstore

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

func makeMessages(first, last int) []*semel.Message {
	var all []*semel.Message
	for _, id := range makeIDs(first, last) {
		all = append(all, &semel.Message{Attributes: semel.Attributes{ID: id, Source: "shop"}, Body: []byte(id)})
	}
	return all
}

// process delivers messages to a consumer until each message is acked, at most ten times.
func process[Tx any](t *testing.T, st store.TxStore[Tx], handler func(context.Context, Tx, *semel.Message) error, ms []*semel.Message) {
	t.Helper()
	running, err := consumer.New(st, handler, consumer.Config{Name: "billing", Identity: identity.CloudEvents()})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		var left []*semel.Message
		all, err := running.ProcessAll(t.Context(), ms)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range all {
			if d.Kind != semel.Ack {
				left = append(left, ms[i])
			}
		}
		if ms = left; len(ms) == 0 {
			break
		}
	}
	if err := running.Close(t.Context()); err != nil || len(ms) > 0 {
		t.Errorf("%d messages are left (%v)", len(ms), err)
	}
}

func (h *fixture) applyDirect(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
	_, err := tx.Exec(ctx, h.inSchema(insert), m.Body)
	return err
}

func (h *fixture) applyQueued(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
	q.ExecOne(h.inSchema(insert), m.Body)
	return nil
}

func TestConsumers(t *testing.T) {
	for name, cut := range map[string]func(*pgproxy.Proxy, pgproxy.Match) *pgproxy.Rule{
		"reply": (*pgproxy.Proxy).CutReply, "request": (*pgproxy.Proxy).CutRequest, "reply_in_flight": (*pgproxy.Proxy).CutInFlight,
	} {
		t.Run("case_3_an_unknown_commit_is_marked_again_and_every_effect_is_there_once/"+name, func(t *testing.T) {
			for form, run := range map[string]func(h *fixture, ms []*semel.Message){
				"handle": func(h *fixture, ms []*semel.Message) { process(t, h.Store, h.applyDirect, ms) },
				"queue":  func(h *fixture, ms []*semel.Message) { process(t, h.Queued(), h.applyQueued, ms) },
			} {
				h, straight, proxy := cutting(t)
				rule := cut(proxy, pgproxy.Nth(1, pgproxy.Containing("commit")))
				run(h, makeMessages(0, 30))
				if rule.Hits() == 0 {
					t.Errorf("%s: nothing was cut", form)
				}
				straight.wantApplied(t, makeIDs(0, 30)...)
			}
		})
	}
	t.Run("what_a_queue_learns_before_the_commit_decides_about_its_message_alone", func(t *testing.T) {
		h, straight, _ := cutting(t)
		process(t, h.Queued(), func(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
			q.ExecOne(h.inSchema(insert), m.Body)
			switch string(m.Body) {
			case "3":
				q.ExecOne(h.inSchema("update in.once set name = name where name = 'gone'"))
			case "5":
				q.Query("select 1").Do(func(pgx.Rows) error { return semel.Park("look at this") })
			case "7":
				q.Query("select 1").Do(func(pgx.Rows) error { return semel.Duplicate(fmt.Errorf("there already")) })
			}
			return nil
		}, makeMessages(0, 10))
		straight.wantApplied(t, "0", "1", "2", "4", "6", "8", "9")
		for id, want := range map[string]semel.Reason{"3": semel.ReasonPrecondition, "5": "look at this"} {
			rows, err := straight.Rows(t.Context(), store.RowFilter{IDs: []string{id}})
			if err != nil || len(rows) != 1 || rows[0].State != store.StateParked || rows[0].Reason != want {
				t.Errorf("message %s has the rows %+v (%v), want one parked for %q", id, rows, err, want)
			}
			if straight.count(t, id) != 0 {
				t.Errorf("message %s has an effect", id)
			}
		}
		b, v := sqlsuite.Begin[pgx.Tx](t, straight.Store, store.TxOptions{}, straight.makeMarks(t, "7"))
		b.Rollback(t.Context())
		if !v[0].Already(store.Applied) || straight.count(t, "7") != 0 {
			t.Errorf("the duplicate's verdict is %d, its effects %d", v[0].Kind, straight.count(t, "7"))
		}
	})
}

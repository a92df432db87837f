package consumer_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// forgetful is a store with an inbox that cannot remove markers.
type forgetful struct {
	store.TxStore[*memstore.Tx]
	store.Leases
	store.Inbox
}

func TestTheRetentionOfCalls(t *testing.T) {
	leased := func(src source.Source) consumer.Config {
		c := retentionConfig(src)
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
		return c
	}
	bubble(t, "H3_H4_what_is_past_its_retention_goes_and_its_copies_are_called_for_no_more", func(t *testing.T) {
		st, src := memstore.New(), newBroker()
		var made []string
		running := mustNewLeased(t, st, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
			made = append(made, m.Identity.ID)
			return nil
		}, leased(src))
		run := start(t, running)
		first := time.Now()
		src.send("1", first)
		pass(3 * time.Hour)
		if v := outcome(t, st, "1"); v.Kind != store.Fresh {
			t.Errorf("its marker stays: %v", v)
		}
		src.send("1", first)
		src.send("2", time.Now())
		pass(time.Minute)
		if n := running.Counts(); !slices.Equal(made, []string{"1", "2"}) || n.Parked != 1 || n.Inbox.Applied != 2 {
			t.Errorf("called for %v; %+v", made, n)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "H1_without_a_retention_every_reaper_hears_that_all_is_kept", func(t *testing.T) {
		st := memstore.New()
		if err := st.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		c := leased(newFeed())
		c.Retention = consumer.RetentionPolicy{}
		run := start(t, mustNewLeased(t, st, noCall, c))
		pass(time.Minute)
		if all, err := st.Retentions(t.Context(), "billing"); err != nil || len(all) != 1 || all[0].Keep != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "H1_a_horizon_that_is_longer_is_refused", func(t *testing.T) {
		src := newBroker()
		src.horizon = source.Horizon{Late: 7 * 24 * time.Hour, Why: "topic payments: retention.ms 7d"}
		err := mustNewLeased(t, memstore.New(), noCall, leased(src)).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "topic payments: retention.ms 7d") {
			t.Errorf("the run says %v", err)
		}
	})
	t.Run("H1_a_store_that_removes_nothing_is_refused_by_what_it_is", func(t *testing.T) {
		inner := memstore.New()
		_, err := consumer.NewLeased(forgetful{inner, inner, inner}, noCall, leased(newFeed()))
		if !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "keeps everything for ever") {
			t.Errorf("New says %v", err)
		}
	})
}

func noCall(context.Context, consumer.Call, *semel.Message) error { return nil }

// saving is a source that stores its positions in the store of its consumer.
type saving struct {
	*listSource
	in source.PositionStore
}

func (s *saving) Info() source.Info {
	return source.Info{Positions: func(_ string, in source.PositionStore) { s.in = in }}
}

func TestThePositionsOfCalls(t *testing.T) {
	bubble(t, "case_13_a_source_keeps_its_positions_in_the_store_that_NewLeased_was_given", func(t *testing.T) {
		store, src := memstore.New(), &saving{listSource: newListSource()}
		c := config(src)
		c.Strategy, c.AckOnReceipt, c.IdleExit = consumer.StrategyInbox, true, time.Second
		err := mustNewLeased(t, store, noCall, c).Run(t.Context())
		if err != nil && !errors.Is(err, io.EOF) || src.in != source.PositionStore(store) {
			t.Errorf("%v; the positions are in %v", err, src.in)
		}
	})
}

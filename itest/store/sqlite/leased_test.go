package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/store"
)

func TestTheRetentionOfCalls(t *testing.T) {
	db := openFile(t, newFile(t), pragmas)
	store := storeOn(t, db)
	for _, keep := range []time.Duration{time.Hour, 0} {
		run, err := consumer.NewLeased(store, func(context.Context, consumer.Call, *semel.Message) error { return nil }, consumer.Config{
			Name: "billing", Identity: identity.By("header:id"), Strategy: consumer.StrategyInbox, IdleExit: time.Second,
			Retention: consumer.RetentionPolicy{Keep: keep}, Logger: slog.New(slog.DiscardHandler),
		})
		if err == nil {
			err = run.Run(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if all, err := store.Retentions(t.Context(), "billing"); err != nil || len(all) != 1 || all[0].Keep != keep {
			t.Errorf("with Keep %v the store has %+v, %v", keep, all, err)
		}
	}
}

func TestARowThatSomebodyElseMadeDue(t *testing.T) {
	t.Run("law_1_nobody_calls_for_what_has_ended_as_its_marker_says", func(t *testing.T) {
		db, calls := openFile(t, newFile(t), pragmas), 0
		st := storeOn(t, db)
		config := consumer.Config{Name: "billing", Identity: identity.By("header:id"), Strategy: consumer.StrategyInbox, IdleExit: time.Second, Logger: slog.New(slog.DiscardHandler)}
		accepts, err := consumer.New(st, func(context.Context, *sql.Tx, *semel.Message) error { return nil }, config)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = accepts.Accept(t.Context(), tx, &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte("1")}}})
		if err := errors.Join(err, tx.Commit()); err != nil {
			t.Fatal(err)
		}
		exec(t, db, "update semel_markers set outcome = ?", int64(store.Applied))
		run, err := consumer.NewLeased(st, func(context.Context, consumer.Call, *semel.Message) error { calls++; return nil }, config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_ = run.Run(ctx)
		revision := 0
		if err := db.QueryRow("select revision from semel_inbox").Scan(&revision); err != nil || calls != 0 || revision > 10 || ctx.Err() != nil {
			t.Errorf("%d calls, revision %d, %v, %v", calls, revision, err, ctx.Err())
		}
	})
}

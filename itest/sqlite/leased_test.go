package sqlite

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
)

func TestTheRetentionOfCalls(t *testing.T) {
	db := openFile(t, newFile(t), pragmas)
	store := storeOn(t, db)
	for _, keep := range []time.Duration{time.Hour, 0} {
		run, err := consumer.New(consumer.Leased(store), func(context.Context, consumer.Call, *semel.Message) error { return nil }, consumer.Config{
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

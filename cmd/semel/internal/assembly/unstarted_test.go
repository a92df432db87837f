package assembly

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/sqlstore"
)

// hangingDB is a database that accepts connections but never responds.
type hangingDB struct {
	tables
	database
}

func (hangingDB) Status(ctx context.Context) ([]sqlstore.Migration, error) {
	return nil, waitForEnd(ctx)
}
func (hangingDB) Check(ctx context.Context) error { return waitForEnd(ctx) }
func (hangingDB) describe() string                { return "database x" }
func (hangingDB) explain(err error) error         { return err }

func waitForEnd(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// workingDB is a database whose tables fit this release.
type workingDB struct{ tables }

func (workingDB) Status(context.Context) ([]sqlstore.Migration, error) { return nil, nil }
func (workingDB) Check(context.Context) error                          { return nil }
func (workingDB) LackingRights(context.Context) ([]string, error)      { return nil, nil }

// emptyDB is a database without tables.
type emptyDB struct {
	workingDB
	database
	migrated bool
}

func (e *emptyDB) Status(context.Context) ([]sqlstore.Migration, error) {
	if !e.migrated {
		return nil, semel.ErrSchema
	}
	return nil, nil
}

func (*emptyDB) describe() string        { return "database y" }
func (*emptyDB) explain(err error) error { return err }

func (e *emptyDB) Migrate(context.Context) ([]string, error) {
	e.migrated = true
	return nil, nil
}

func TestAStoreThatDoesNotAnswerAtTheStart(t *testing.T) {
	opened := func(continues bool) *Assembly {
		p := &policy.Policy{Consumers: []*policy.Consumer{
			{Name: "billing", Store: "other", ContinueOnFailure: continues}, {Name: "stock", Store: "shop"},
		}}
		none := hangingDB{}
		return &Assembly{policy: p, options: Options{ContinueOnFailure: true, Logger: slog.New(slog.DiscardHandler)}, failedStores: map[string]error{},
			Stores: []*Store{{tables: none, database: none, policy: &policy.Store{Name: "other"}}, {tables: workingDB{}, policy: &policy.Store{Name: "shop"}}}}
	}
	t.Run("does_not_keep_consumers_of_other_stores_from_starting_if_its_own_may_fail", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, began := opened(true), time.Now()
			if err := a.Prepare(t.Context(), false); err != nil || time.Since(began) != responseTimeout {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if why := a.failedStores["other"]; len(a.failedStores) != 1 || !errors.Is(why, context.DeadlineExceeded) {
				t.Errorf("%v", a.failedStores)
			}
		})
	})
	t.Run("is_spared_also_if_a_consumer_needs_it_that_is_not_run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := opened(true)
			a.policy.Consumers = append(a.policy.Consumers, &policy.Consumer{Name: "audit", Store: "other"})
			a.options.Consumer = "billing"
			if err := a.Prepare(t.Context(), false); err != nil || a.failedStores["other"] == nil {
				t.Errorf("%v, %v", err, a.failedStores)
			}
		})
	})
	t.Run("is_none_that_says_at_once_that_it_lacks_tables", func(t *testing.T) {
		a, fresh := opened(true), &emptyDB{}
		a.Stores[0].tables, a.Stores[0].database, a.Stores[0].policy.Migrate = fresh, fresh, true
		if err := a.Prepare(t.Context(), false); err != nil || a.failedStores["other"] != nil || !fresh.migrated {
			t.Errorf("%v, %v, migrated %v", err, a.failedStores, fresh.migrated)
		}
	})
	t.Run("is_waited_for_if_there_is_no_other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			a, began := opened(true), time.Now()
			a.Stores = a.Stores[:1]
			if err := a.Prepare(ctx, false); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) < time.Hour {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	})
	t.Run("is_waited_for_if_the_process_would_end_with_it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := opened(false).Prepare(ctx, false); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
				t.Errorf("%v, %v", err, ctx.Err())
			}
		})
	})
}

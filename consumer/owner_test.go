package consumer_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
)

// logged starts a consumer and returns its log and its error.
func logged(t *testing.T, store *memstore.Store, change func(*consumer.Config)) (string, error) {
	t.Helper()
	var log bytes.Buffer
	r := newRelease(t, store, byOrder, nil, func(c *consumer.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		change(c)
	})
	err := r.consumer.Check(t.Context())
	return log.String(), err
}

func TestAConsumersNameHasAnOwner(t *testing.T) {
	owned := func(owner string, exclusive bool) func(*consumer.Config) {
		return func(c *consumer.Config) { c.Owner, c.Exclusive = owner, exclusive }
	}
	t.Run("trap_23_a_foreign_set_of_handlers_under_a_consumers_name_is_told", func(t *testing.T) {
		store := memstore.New()
		for _, owner := range []string{"order.created", "", "order.created"} {
			if log, err := logged(t, store, owned(owner, false)); err != nil || log != "" {
				t.Errorf("%q: %s, %v", owner, log, err)
			}
		}
		if log, err := logged(t, store, owned("invoice.paid", false)); err != nil || !strings.Contains(log, "order.created") || !strings.Contains(log, "invoice.paid") {
			t.Errorf("another: %s, %v", log, err)
		}
	})
	t.Run("trap_23_added_handler_types_are_the_same_owner_and_a_removed_one_is_told", func(t *testing.T) {
		store := memstore.New()
		for _, types := range [][]string{{"order.created"}, {"order.created", "order.paid"}} {
			if log, err := logged(t, store, owned(admin.HandlersOf(types), false)); err != nil || log != "" {
				t.Errorf("%q: %s, %v", types, log, err)
			}
		}
		if log, err := logged(t, store, owned(admin.HandlersOf([]string{"order.paid"}), false)); err != nil || !strings.Contains(log, "order.created") {
			t.Errorf("without order.created: %s, %v", log, err)
		}
	})
	t.Run("trap_23_where_the_name_is_exclusive_it_is_refused_until_it_is_released", func(t *testing.T) {
		store := memstore.New()
		if _, err := logged(t, store, owned("order.created", true)); err != nil {
			t.Fatal(err)
		}
		_, err := logged(t, store, owned("invoice.paid", true))
		if !errors.Is(err, semel.ErrForeignOwner) || !strings.Contains(err.Error(), "order.created") || !strings.Contains(err.Error(), "release") {
			t.Errorf("got %v", err)
		}
		if set, err := store.SetOwner(t.Context(), "billing", "order.created", ""); err != nil || !set {
			t.Fatal(err)
		}
		if _, err := logged(t, store, owned("invoice.paid", true)); err != nil {
			t.Errorf("after it was released: %v", err)
		}
	})
}

func TestANewNameSimilarToAKnownOneIsLogged(t *testing.T) {
	store := memstore.New()
	for _, name := range []string{"billing", "audit-eu"} {
		if _, err := store.Scope(t.Context(), name, "shop", 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("A7_a_consumer_under_a_new_name_beside_a_similar_one_is_told_so", func(t *testing.T) {
		for name, similar := range map[string]string{
			"biling": "billing", "Billing": "billing", "bill_ing": "billing", "billing2": "billing", "Audit.EU": "audit-eu",
			"billing": "", "audit-eu": "", "shipping": "", "ab": "", "invoices": "",
		} {
			log, err := logged(t, store, func(c *consumer.Config) { c.Name = name })
			if err != nil || (similar == "") != (log == "") || !strings.Contains(log, similar) {
				t.Errorf("for %s the log names %q: %s, %v", name, similar, log, err)
			}
		}
	})
}

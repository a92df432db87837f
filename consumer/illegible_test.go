package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

// shortOf is an error type. The method Error of shortOf panics if the pointer is nil.
type shortOf struct{ need int }

func (e *shortOf) Error() string { return fmt.Sprint("short of ", e.need) }

func TestErrorsThatCannotBeRead(t *testing.T) {
	var none *shortOf
	for name, err := range map[string]error{"plain": none, "permanent": semel.Permanent(none), "retry": semel.Retry(none), "wrapped": fmt.Errorf("x: %w", none), "joined": errors.Join(errors.New("x"), none)} {
		bubble(t, "trap_T90_a_nil_pointer_as_an_error_sets_its_message_aside_and_says_so/"+name, func(t *testing.T) {
			store := memstore.New()
			c := config(newListSource(numbered("m", 5)...))
			c.Retry.MaxAttempts = 2
			counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				if m.Identity.ID == "m3" {
					return err
				}
				return add(ctx, tx, m)
			}, c)
			r := row(t, store, "m3")
			if counts.Applied != 4 || counts.Parked != 1 || !strings.Contains(r.LastError, "nil of type *consumer_test.shortOf") {
				t.Errorf("%+v, %q", counts, r.LastError)
			}
			if (name == "permanent") != (r.Reason == semel.ReasonPermanent) {
				t.Errorf("the reason is %s", r.Reason)
			}
		})
	}
}

// circle is an error that wraps itself.
type circle struct{}

func (c *circle) Error() string { return "circle" }
func (c *circle) Unwrap() error { return c }

func TestAnErrorThatWrapsItselfDelaysNoOtherMessage(t *testing.T) {
	for name, err := range map[string]error{"plain": &circle{}, "permanent": semel.Permanent(&circle{}), "joined": errors.Join(errors.New("x"), &circle{})} {
		bubble(t, "trap_T90_its_message_is_set_aside_and_says_so/"+name, func(t *testing.T) {
			store := memstore.New()
			c := config(newListSource(numbered("m", 5)...))
			c.Retry.MaxAttempts = 2
			counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				if m.Identity.ID == "m3" {
					return err
				}
				return add(ctx, tx, m)
			}, c)
			if r := row(t, store, "m3"); counts.Applied != 4 || counts.Parked != 1 || !strings.Contains(r.LastError, "which wraps itself") {
				t.Errorf("%+v, %q", counts, r.LastError)
			}
		})
	}
}

package consumer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/memstore"
)

const least = 64 << 10

// bodied returns a message with a body of this length.
func bodied(id string, length int) *semel.Message {
	return message(id, `"`+strings.Repeat("x", length-2)+`"`)
}

func TestABodyIsBoundedBeforeAStoreSeesIt(t *testing.T) {
	bubble(t, "C18_a_longer_body_is_set_aside_as_too_large_with_its_beginning_and_length", func(t *testing.T) {
		source := newListSource(bodied("1", least), bodied("2", least+1), message("3", "{}"))
		whole := source.pending[1].Message
		store := memstore.New()
		c := config(source)
		c.MaxBody = least
		if counts := runs(t, store, add, c); counts.Applied != 2 || counts.Parked != 1 || len(source.settled) != 3 {
			t.Errorf("%+v, settled %v", counts, source.settled)
		}
		all := rows(t, store)
		if len(all) != 1 {
			t.Fatalf("%d rows", len(all))
		}
		r := all[0]
		length, _ := r.Message.Headers.Get(semelheader.Length)
		if r.Reason != semel.ReasonTooLarge || r.Attempts != 0 || len(r.Message.Body) != least || string(length) != "65537" || !strings.Contains(r.LastError, "65537 bytes") {
			t.Errorf("the row has the reason %q after %d attempts, %d bytes of %s: %s", r.Reason, r.Attempts, len(r.Message.Body), length, r.LastError)
		}
		if len(whole.Body) != least+1 || len(whole.Headers) != 1 {
			t.Error("the source's message was changed")
		}
	})
	bubble(t, "C18_also_what_the_source_refused_is_bounded", func(t *testing.T) {
		source, store := newListSource(bodied("1", 3*least)), memstore.New()
		source.pending[0].Refused = semel.ReasonMalformed
		c := config(source)
		c.MaxBody = least
		if counts := runs(t, store, add, c); counts.Parked != 1 {
			t.Errorf("%+v", counts)
		}
		if r := rows(t, store)[0]; r.Reason != semel.ReasonMalformed || len(r.Message.Body) != least {
			t.Errorf("%q with %d bytes", r.Reason, len(r.Message.Body))
		}
	})
	bubble(t, "C18_the_default_is_16_MiB", func(t *testing.T) {
		source := newListSource(bodied("1", 16<<20), bodied("2", 16<<20+1))
		if counts := runs(t, memstore.New(), add, config(source)); counts.Applied != 1 || counts.Parked != 1 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "C18_two_bodies_that_begin_alike_are_two_messages", func(t *testing.T) {
		source := newListSource(bodied("1", 2*least), bodied("1", 3*least), bodied("1", 2*least))
		c := config(source)
		c.MaxBody = least
		if counts := runs(t, memstore.New(), add, c); counts.Parked != 2 || counts.Duplicates != 1 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "C18_in_a_loop_of_ones_own_as_well", func(t *testing.T) {
		c := config(nil)
		c.MaxBody = least
		running, err := consumer.New(memstore.New(), add, c)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := running.Process(t.Context(), bodied("1", least+1)); err != nil || d.Kind != semel.Ack || d.Reason != semel.ReasonTooLarge || running.Counts().Parked != 1 {
			t.Errorf("%+v, %v, %+v", d, err, running.Counts())
		}
		var fault *identity.Error
		if _, err := running.TryMark(t.Context(), nil, bodied("1", least+1)); !errors.As(err, &fault) || fault.Reason != semel.ReasonTooLarge {
			t.Errorf("TryMark says %v", err)
		}
		if err := running.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("a bound that keeps less than 64 KiB is refused", func(t *testing.T) {
		c := config(nil)
		c.MaxBody = least - 1
		if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), "MaxBody: is 65535; it must be 65536 to") {
			t.Errorf("it says: %v", err)
		}
	})
}

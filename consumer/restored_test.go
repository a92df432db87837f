package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// restoredSource is a source that delivers some messages and then reports that the store lacks records of messages that
// the broker counts as acked.
type restoredSource struct{ *listSource }

func (s *restoredSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if s.fetches > 0 {
		s.fetches++
		pass(500 * time.Millisecond)
		return nil, fmt.Errorf("the offset is 5, and was 9: %w", semel.ErrBehind)
	}
	got, _ := s.listSource.Fetch(ctx, most)
	return got, nil
}

func TestAStoreThatIsFoundBehindItsBroker(t *testing.T) {
	bubble(t, "trap_T110_ends_the_run_which_says_so_and_what_runs_may_finish", func(t *testing.T) {
		source := &restoredSource{newListSource(message("1", `{}`), message("2", `{}`))}
		c := config(source)
		c.Drain = time.Minute
		store := memstore.New()
		slowly := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			pass(time.Second)
			return add(ctx, tx, m)
		}
		consumer := mustNew(t, store, slowly, c)
		began := time.Now()
		err := consumer.Run(t.Context())
		if !errors.Is(err, semel.ErrBehind) || !strings.Contains(err.Error(), "the offset is 5, and was 9") {
			t.Errorf("Run says %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the run took %v to end", took)
		}
		if source.fetches > 2 {
			t.Errorf("the source was asked %d times after it gave up", source.fetches-2)
		}
		if got := effect(t, store, "1"); got != "1" || source.settled["0"] != 1 {
			t.Errorf("what ran has the effect %q, and was settled %d times", got, source.settled["0"])
		}
	})
}

package consumer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

func TestAStoreWhoseClockIsSetBack(t *testing.T) {
	bubble(t, "trap_T113_is_told_of_and_no_row_waits_for_it", func(t *testing.T) {
		ahead := 24 * time.Hour
		store := memstore.New(memstore.Clock(func() time.Time { return time.Now().Add(ahead) }))
		fillInbox(t, store, 5)
		ahead = 0
		c, said, seen := withoutSource(config(nil)), &log{}, &witness{}
		c.IdleExit, c.Logger, c.Observers = time.Minute, said.logger(), []semel.Observer{seen}
		counts := runs(t, store, add, c)
		down := seen.eventsOf(semel.EventNotReady)
		if len(down) != 1 || down[0].Reason != "clock" || down[0].Messages != 5 || down[0].Wait < 23*time.Hour || len(seen.eventsOf(semel.EventReady)) == 0 {
			t.Errorf("observers are told of %+v", down)
		}
		if counts.Inbox.Applied != 5 || strings.Count(said.String(), "the store's clock was set back") != 1 {
			t.Errorf("%+v; the log says\n%s", counts, said)
		}
	})
}

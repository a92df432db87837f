package machine

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestANewLane(t *testing.T) {
	t.Run("trap_134_does_not_go_to_a_worker_whose_handler_does_not_end", func(t *testing.T) {
		c := testConfig()
		c.Workers = 3
		m := New(c)
		m.Step(Given{Lane: source.Lane{ID: "stuck", Epoch: 1}}, 0)
		f := opening(m.Step(Fetched{Items: items(1, "stuck")}, 0))[0]
		m.Step(Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}}, 0)
		m.Step(Stuck{Flight: f, Item: f.Entries[0].Item}, 0)
		for i := range 12 {
			lane := fmt.Sprint("new", i)
			m.Step(Given{Lane: source.Lane{ID: lane, Epoch: 1}}, 0)
			m.Step(Fetched{Items: items(1, lane)}, 0)
			if worker := m.lanes[lane].line.worker; worker == f.Worker {
				t.Errorf("lane %s waits for the handler of worker %d", lane, worker)
			}
		}
	})
}

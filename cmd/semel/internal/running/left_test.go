package running

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// unfinishedConsumer is a consumer that stopped because it was idle, with unfinished messages.
type unfinishedConsumer struct{ left []semel.Unfinished }

func (b unfinishedConsumer) Run(context.Context) error      { return nil }
func (b unfinishedConsumer) Counts() semel.Counts           { return semel.Counts{} }
func (b unfinishedConsumer) Unfinished() []semel.Unfinished { return b.left }

func TestTheSummaryNamesUnfinishedLanes(t *testing.T) {
	t.Run("trap_T95_with_lane_and_count_for_people_and_programs", func(t *testing.T) {
		s, err := All(t.Context(), map[string]Consumer{
			"billing": unfinishedConsumer{[]semel.Unfinished{{Lane: "orders/0", Messages: 3, Reason: "held up by an open transaction"}, {Lane: "orders/1", Messages: source.Unknown, Reason: "lost"}}},
			"audit":   unfinishedConsumer{},
		}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := s.Write(&out); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			"left: consumer billing, lane orders/0: 3 messages: held up by an open transaction\n",
			"left: consumer billing, lane orders/1: some messages: lost\n",
		} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("the summary lacks %q:\n%s", line, out.String())
			}
		}
		document, err := json.Marshal(s)
		if err != nil || !strings.Contains(string(document), `"left":{"billing":[{"lane":"orders/0","messages":3,`) {
			t.Errorf("%s, %v", document, err)
		}
	})
}

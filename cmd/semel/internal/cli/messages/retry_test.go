package messages

import (
	"bytes"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/commandtest"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// While a retry waits until other retries have ended, another retry or a redelivery may process the message.
func TestARetryPredictsAgainWhenItsTurnHasCome(t *testing.T) {
	t.Run("trap_T47_a_prediction_from_before_its_turn_is_not_used", func(t *testing.T) {
		var out, log bytes.Buffer
		c, _, a := commandtest.Bare(t, &out, &log)
		d := &retry{CLI: c, assembly: a, box: command.BoxOf(a.Stores[0]), retryFlags: &retryFlags{verb: admin.Retry, who: "ann", why: "x"}, chosen: store.RowFilter{Numbers: []int64{7}}}
		done, err := d.executeRetry(t.Context(), []operate.Letter{{Number: 7, Consumer: "billing", Prediction: operate.FateApplied}})
		if err != nil || len(done) != 1 || done[0].Prediction != operate.FateRefused || done[0].Changed() {
			t.Errorf("%+v: %v", done, err)
		}
		if !strings.HasPrefix(out.String(), "predicted: 1 refused (1 because there is no row with this number)") {
			t.Errorf("it says %q", out.String())
		}
	})
}

//go:build unix

package publish

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/processes"
)

func TestATopicThatIsMissing(t *testing.T) {
	binary := must.Get(processes.Build(t.Context(), t.TempDir()))(t)
	t.Run("K2_is_a_fault_at_the_start_and_sets_no_message_aside", func(t *testing.T) {
		cmd, log := move(t, binary, newFolder(t, "semel-no-such-topic", 3), services.Kafka(t))
		err := cmd.Wait()
		if text := log.String(); err == nil || !strings.Contains(text, "consumers.receipts.handler.kafka: kafka: topic semel-no-such-topic: the topic does not exist") || strings.Contains(text, "parked") {
			t.Errorf("%v: %s", err, text)
		}
	})
}

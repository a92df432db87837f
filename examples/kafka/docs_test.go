package example

import (
	"os"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/house/pages"
)

// TestTheDocumentShowsTheProgram checks that the code in docs/guides/kafka.md occurs in balances/main.go or
// in the example of kafka.NewPublisher.
func TestTheDocumentShowsTheProgram(t *testing.T) {
	pages.Shows(t, "../../docs/guides/kafka.md", 1, pages.Read(t, "balances/main.go", "../../kafka/example_publisher_test.go"))
}

func TestTheDocumentSaysWhatIsNotPromised(t *testing.T) {
	document, err := os.ReadFile("../../docs/guides/kafka.md")
	if err != nil {
		t.Fatal(err)
	}
	says := func(t *testing.T, all ...string) {
		t.Helper()
		for _, line := range all {
			if !strings.Contains(string(document), line) {
				t.Errorf("it does not say %q", line)
			}
		}
	}
	t.Run("trap_38_more_partitions_move_keys", func(t *testing.T) {
		says(t, "**More partitions move keys.**", "order of that key across the change does not")
	})
	t.Run("trap_41_transactions_of_old_brokers_can_be_torn", func(t *testing.T) {
		says(t, "**Transactions torn by the protocol of old brokers.**", "Use Kafka 4.0 or newer")
	})
}

package kafka

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/semel-go/semel"
)

func TestTheLogHasThePartitionsThatComeAndGo(t *testing.T) {
	t.Run("one_line_when_they_are_assigned_and_one_when_they_are_given_up", func(t *testing.T) {
		c := cluster(t, kfake.SeedTopics(2, "orders"))
		text := &lockedBuffer{}
		put(t, newProducer(t, c.ListenAddrs()), "orders", 0, "0")
		r := read(t, Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", Logger: slog.New(slog.NewTextHandler(text, nil))})
		got := r.take(1)
		if left, err := r.Settle(t.Context(), settlements(semel.Ack, got)); len(left) > 0 || err != nil {
			t.Fatal(left, err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			`level=INFO msg="partitions assigned" group=billing count=2 partitions="[orders/0@start orders/1@start]"`,
			`level=INFO msg="partitions given up" group=billing count=2 partitions="[orders/0@1 orders/1@start]"`,
		} {
			if strings.Count(text.String(), line) != 1 {
				t.Errorf("the log lacks %q:\n%s", line, text)
			}
		}
	})
}

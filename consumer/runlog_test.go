package consumer_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
)

// describedSource is a source with a description, which is logged.
type describedSource struct{ *listSource }

func (describedSource) LogValue() slog.Value {
	return slog.GroupValue(slog.String("group", "billing"))
}

func TestTheLogHasTheStartAndTheEndOfARun(t *testing.T) {
	bubble(t, "one_line_each_with_the_source_and_the_counts", func(t *testing.T) {
		var said log
		c := config(describedSource{newListSource(numbered("m", 3)...)})
		c.Logger = said.logger()
		runs(t, memstore.New(), add, c)
		for _, line := range []string{
			`level=INFO msg="the consumer starts" consumer=billing strategy=marker workers=8 source.group=billing`,
			`level=INFO msg="the consumer has ended" consumer=billing applied=3 duplicates=0 unapplied=0 failed=0 in_flight=0`,
		} {
			if strings.Count(said.String(), line) != 1 {
				t.Errorf("the log lacks %q:\n%s", line, &said)
			}
		}
	})
	bubble(t, "none_for_messages_that_Process_is_given", func(t *testing.T) {
		var said log
		c := config(nil)
		c.Logger = said.logger()
		running, err := consumer.New(memstore.New(), add, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := running.Process(t.Context(), message("1", `{}`)); err != nil {
			t.Fatal(err)
		}
		if err := running.Close(t.Context()); err != nil || strings.Contains(said.String(), "the consumer") {
			t.Errorf("%v:\n%s", err, &said)
		}
	})
}

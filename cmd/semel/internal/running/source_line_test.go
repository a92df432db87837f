package running

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/terminal"
)

// asGroup is the value of the log attribute source if the attribute has several parts.
type asGroup []slog.Attr

func (g asGroup) LogValue() slog.Value { return slog.GroupValue(g...) }

func TestATerminalShowsWhatEachConsumerReads(t *testing.T) {
	const starts = "the consumer starts"
	topics := func(all ...string) asGroup { return asGroup{slog.Any("topics", all), slog.String("group", "g")} }
	for name, c := range map[string]struct {
		msg   string
		about []any
		want  string
	}{
		"a_topic":            {starts, []any{"consumer", "billing", "source", topics("orders")}, "billing: topic orders, group g\n"},
		"topics":             {starts, []any{"consumer", "billing", "source", topics("orders", "returns")}, "billing: topics orders, returns, group g\n"},
		"a_pattern":          {starts, []any{"consumer", "billing", "source", asGroup{slog.String("topic_pattern", "o.*"), slog.String("group", "g")}}, "billing: topics that match o.*, group g\n"},
		"standard_input":     {starts, []any{"consumer", "billing", "source", asGroup{slog.String("file", "stdin")}}, "billing: standard input\n"},
		"a_file_not_opened":  {starts, []any{"consumer", "billing", "source", asGroup{slog.String("file", "a.jsonl")}}, ""},
		"no_source":          {starts, []any{"consumer", "mailer"}, ""},
		"a_file":             {"file opened", []any{"consumer", "billing", "source", asGroup{slog.String("file", "a.jsonl"), slog.Int64("from", 0)}}, "billing: file a.jsonl, from the start\n"},
		"a_part_of_a_file":   {"file opened", []any{"consumer", "billing", "source", asGroup{slog.String("file", "a.jsonl"), slog.Int64("from", 120)}}, "billing: file a.jsonl, from byte 120\n"},
		"a_webhook":          {"webhooks are received", []any{"address", "127.0.0.1:8080", "path", "/hooks/pay"}, "ledger: webhooks at 127.0.0.1:8080/hooks/pay\n"},
		"a_partition":        {"partitions assigned", []any{"count", 1, "partitions", []string{"orders/0@start"}}, "ledger: 1 partition: orders/0 from the start\n"},
		"several_partitions": {"partitions assigned", []any{"count", 2, "partitions", []string{"orders/0@10", "orders/1@4"}}, "ledger: 2 partitions: orders/0 from 10, orders/1 from 4\n"},
		"many_partitions":    {"partitions assigned", []any{"count", 9, "partitions", []string{"orders/0@10"}}, "ledger: 9 partitions: orders/0 from 10 and 8 more\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			slog.New(SumUp(slog.NewTextHandler(&out, nil), &out, terminal.Unlimited)).With("consumer", "ledger").Info(c.msg, c.about...)
			if out.String() != c.want {
				t.Errorf("%q, want %q", out.String(), c.want)
			}
		})
	}
	t.Run("wrapped_on_a_narrow_terminal", func(t *testing.T) {
		var out bytes.Buffer
		slog.New(SumUp(slog.NewTextHandler(&out, nil), &out, 30)).Info("file opened", "consumer", "billing", "source", asGroup{slog.String("file", "payments.jsonl")})
		if want := "billing: file payments.jsonl,\n  from the start\n"; out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	})
}

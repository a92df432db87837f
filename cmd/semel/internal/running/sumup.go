package running

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/eventkind"
)

// messageEvents lists the events about single messages that SumUp leaves out. The event of a message
// that halts its consumer is not included, because the consumer ends.
var messageEvents = []semel.EventKind{eventkind.Duplicate, semel.EventConflict, semel.EventParked, semel.EventDeadLettered,
	semel.EventDiscarded, eventkind.Retry, eventkind.Backstop, eventkind.SameContent, eventkind.WithoutKey}

// redundantLines lists the log lines that only repeat the live line or the summary. Package consumer logs the lines in
// redundantLines.
var redundantLines = []string{"the consumer starts", "the consumer has ended"}

// SumUp filters a log that a person reads during a run. SumUp removes lines about single messages, because
// there can be millions, and the summary counts them at the end. Lines about the source of a consumer are
// written to w without time and level, wrapped to the given number of columns.
func SumUp(log slog.Handler, w io.Writer, columns int) slog.Handler {
	return sumUp{Handler: log, w: w, columns: columns}
}

type sumUp struct {
	slog.Handler
	w       io.Writer
	columns int
	// consumer is the value of the attribute consumer that WithAttrs has added; empty without the attribute.
	consumer string
}

func (s sumUp) Handle(ctx context.Context, r slog.Record) error {
	if text := sourceLine(s.consumer, r); text != "" {
		_, err := fmt.Fprintln(s.w, terminal.Wrap(text, s.columns))
		return err
	}
	if r.Level < slog.LevelError && (slices.Contains(messageEvents, semel.EventKind(r.Message)) || slices.Contains(redundantLines, r.Message)) {
		return nil
	}
	return s.Handler.Handle(ctx, r)
}

func (s sumUp) WithAttrs(attrs []slog.Attr) slog.Handler {
	s.Handler = s.Handler.WithAttrs(attrs)
	for _, a := range attrs {
		if a.Key == "consumer" {
			s.consumer = a.Value.String()
		}
	}
	return s
}

func (s sumUp) WithGroup(name string) slog.Handler {
	s.Handler = s.Handler.WithGroup(name)
	return s
}

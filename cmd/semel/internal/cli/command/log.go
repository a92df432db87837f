package command

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/loglimit"
)

// Logging has the flags of the log on standard error.
type Logging struct {
	Level, format string
	verbose       bool
}

// The log formats.
const (
	formatText = "text"
	formatJSON = "json"
)

// Add adds the flags to the root command and all subcommands.
func (l *Logging) Add(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&l.Level, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&l.format, "log-format", "", "text or json (default: text on a terminal, json elsewhere)")
	flags.BoolVarP(&l.verbose, "verbose", "v", false, "on a terminal, log single messages instead of sums")
	for name, words := range map[string][]string{"log-level": {"debug", "info", "warn", "error"}, "log-format": {formatText, formatJSON}} {
		if err := root.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err)
		}
	}
}

// Log returns a logger that writes to w as the flags say. If summedUp is true, the log leaves out lines about
// single messages, because the summary of the run counts the messages.
func (c *CLI) Log(w io.Writer) (log *slog.Logger, summedUp bool, err error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Logs.Level)); err != nil {
		return nil, false, UsageError("--log-level %q is no level; use debug, info, warn or error", c.Logs.Level)
	}
	options := &slog.HandlerOptions{Level: level}
	format := c.Logs.format
	if format == "" && c.ErrTerminal {
		format = formatText
	}
	switch format {
	case "", formatJSON:
		options.ReplaceAttr = durationsInWords
		return slog.New(loglimit.New(slog.NewJSONHandler(terminal.JSON(w), options))), false, nil
	case formatText:
	default:
		return nil, false, UsageError("--log-format %q is no format; use text or json", c.Logs.format)
	}
	handler := slog.Handler(slog.NewTextHandler(w, options))
	if summedUp = c.ErrTerminal && !c.Logs.verbose && level >= slog.LevelInfo; summedUp {
		handler = running.SumUp(handler, w, c.Width)
	}
	return slog.New(loglimit.New(handler)), summedUp, nil
}

// durationsInWords formats durations in JSON logs with units.
func durationsInWords(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

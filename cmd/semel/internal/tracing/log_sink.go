package tracing

import (
	"log/slog"

	"github.com/go-logr/logr"
)

// logSink writes what OpenTelemetry's packages log, such as an environment variable
// that they cannot read, to the log of the run. They would write it to standard error, in a form
// of their own. Its values are left out: they may be a part of a header with a token.
type logSink struct{ log *slog.Logger }

var _ logr.LogSink = logSink{}

// Init implements logr.LogSink.
func (logSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink: errors come without it, and nothing else is of use.
func (logSink) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (logSink) Info(int, string, ...any) {}

// Error implements logr.LogSink.
func (s logSink) Error(err error, message string, _ ...any) {
	s.log.Warn("traces: a setting of the environment (OTEL_…) is not used", "setting", message, "error", err)
}

// WithValues implements logr.LogSink.
func (s logSink) WithValues(...any) logr.LogSink { return s }

// WithName implements logr.LogSink.
func (s logSink) WithName(string) logr.LogSink { return s }

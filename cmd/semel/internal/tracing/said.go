package tracing

import (
	"log/slog"

	"github.com/go-logr/logr"
)

// said has what OpenTelemetry's packages say of themselves, as of a variable of the environment
// that they cannot read, in the log of the run. They would write it to standard error, in a form
// of their own. Its values are left out: they may be a part of a header with a token.
type said struct{ log *slog.Logger }

var _ logr.LogSink = said{}

// Init implements logr.LogSink.
func (said) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink: errors come without it, and nothing else is of use.
func (said) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (said) Info(int, string, ...any) {}

// Error implements logr.LogSink.
func (s said) Error(err error, message string, _ ...any) {
	s.log.Warn("traces: a setting of the environment (OTEL_…) is not used", "setting", message, "error", err)
}

// WithValues implements logr.LogSink.
func (s said) WithValues(...any) logr.LogSink { return s }

// WithName implements logr.LogSink.
func (s said) WithName(string) logr.LogSink { return s }

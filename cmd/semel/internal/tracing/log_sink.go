package tracing

import (
	"log/slog"

	"github.com/go-logr/logr"
)

// logSink passes the log messages of OpenTelemetry's packages, for example about an invalid environment variable, to
// the log of the run. By default they would go to standard error in another format. Values are left out, because they
// may be part of a header with a token.
type logSink struct{ log *slog.Logger }

var _ logr.LogSink = logSink{}

// Init implements logr.LogSink.
func (logSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink. Errors are logged in any case, and other messages are not useful.
func (logSink) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (logSink) Info(int, string, ...any) {}

// Error implements logr.LogSink.
func (s logSink) Error(err error, message string, _ ...any) {
	s.log.Warn("traces: an environment variable (OTEL_…) is ignored", "setting", message, "error", err)
}

// WithValues implements logr.LogSink.
func (s logSink) WithValues(...any) logr.LogSink { return s }

// WithName implements logr.LogSink.
func (s logSink) WithName(string) logr.LogSink { return s }

package tracing

import (
	"log/slog"

	"github.com/go-logr/logr"
)

// logSink writes log messages of the OpenTelemetry packages to the log of the run, for example about an
// invalid environment variable. Without a log sink, the OpenTelemetry packages print to standard error in
// another format. logSink leaves out values, because a value can be a header with a token.
type logSink struct{ log *slog.Logger }

var _ logr.LogSink = logSink{}

// Init implements logr.LogSink.
func (logSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink. Only errors are logged; errors do not depend on Enabled.
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

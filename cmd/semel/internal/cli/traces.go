package cli

import (
	"context"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/tracing"
)

// trace has spans of the consumers sent to the policy's collector; nil where it has none.
func (e *execution) trace(ctx context.Context, a *assembly.Assembly) (*tracing.Tracer, error) {
	t := e.policy.Traces
	if t.OTLP == "" {
		return nil, nil
	}
	o := tracing.Options{Endpoint: t.Endpoint(), Ratio: t.Ratio, Sources: map[string]string{}, Logger: e.options.Logger}
	for _, c := range e.policy.Consumers {
		o.Sources[c.Name] = a.SourceKind(c)
	}
	traced, err := tracing.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	a.Observe(traced)
	e.options.Logger.Info("spans of sampled messages are sent", "endpoint", o.Endpoint)
	return traced, nil
}

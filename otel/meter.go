package otel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/measure"
)

// Consumer has the methods that a Meter calls when metrics are collected; consumer.Consumer implements it. The
// methods use neither the store nor the source.
type Consumer interface {
	Counts() semel.Counts
	Load() measure.Load
	Ready() (bool, string)
	Alive() (bool, string)
}

// Meter reports metrics. As an observer (consumer.Config.Observers) a Meter can serve any number of consumers.
// Watch adds the metrics that the Meter reads from a consumer.
type Meter struct {
	meter  metric.Meter
	source string

	observed map[string]metric.Float64Observable // by name; never changed after NewMeter
	messages metric.Int64Histogram
	parts    [3]metric.Float64Histogram // mark, handle, commit
	batches  metric.Int64Counter
	counters map[string]metric.Int64Counter // by name; never changed after NewMeter

	mutex     sync.Mutex
	consumers map[string]*observedConsumer // by the name of the consumer in events; guarded by mutex
}

// observedConsumer is the state of a Meter for one consumer.
type observedConsumer struct {
	record []metric.RecordOption
	ends   [4][]metric.AddOption // by measure.End

	mutex  sync.Mutex
	paused bool              // guarded by mutex
	serial measure.Stopwatch // guarded by mutex
}

// NewMeter returns a Meter for a provider. The parameter source is the kind of the consumers' source, such as "kafka"
// or "file"; an empty text means "none". The error comes from the provider and names an instrument.
func NewMeter(provider metric.MeterProvider, source string) (*Meter, error) {
	m := &Meter{meter: provider.Meter(scope), source: sourceKind(source), observed: map[string]metric.Float64Observable{},
		counters: map[string]metric.Int64Counter{}, consumers: map[string]*observedConsumer{}}
	var faults []error
	made := func(err error) { faults = append(faults, err) }
	for _, i := range slices.Concat(instruments, apiInstruments) {
		var err error
		help, unit := metric.WithDescription(i.help), metric.WithUnit(i.unit)
		switch i.kind {
		case asked:
			m.observed[i.name], err = m.meter.Float64ObservableCounter(i.name, help, unit)
		case askedGauge:
			m.observed[i.name], err = m.meter.Float64ObservableGauge(i.name, help, unit)
		case told:
			m.counters[i.name], err = m.meter.Int64Counter(i.name, help, unit)
		}
		made(err)
	}
	var err error
	m.messages, err = m.meter.Int64Histogram(batchMessages, metric.WithDescription("How many messages a batch has."), metric.WithExplicitBucketBoundaries(messageBounds...))
	made(err)
	for i, p := range batchParts {
		m.parts[i], err = m.meter.Float64Histogram(p.name, metric.WithDescription(p.help), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(secondBounds...))
		made(err)
	}
	m.batches = m.counters[batchesTotal]
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return m, nil
}

// Watch reads the metrics of a consumer each time metrics are collected, until stop is called. The parameter name is
// the name of the consumer. Only one consumer of a name can be watched at a time.
func (m *Meter) Watch(name string, c Consumer) (stop func() error, err error) {
	m.begin(name)
	return m.whenAsked(func(o metric.Observer) { m.collect(name, c, o) })
}

// API has the method that a Meter calls for the metrics of an HTTP API; httpkey.Guard implements it.
type API interface {
	Figures(each func(measure.Figure))
}

// WatchAPI is like Watch, for an HTTP API. The label consumer of the metrics has the value name.
func (m *Meter) WatchAPI(name string, a API) (stop func() error, err error) {
	consumer := attribute.String(labelConsumer, name)
	return m.whenAsked(func(o metric.Observer) {
		a.Figures(func(f measure.Figure) {
			if i, known := m.observed[f.Name]; known {
				o.ObserveFloat64(i, f.Is, metric.WithAttributes(consumer, attribute.String(f.Label, f.Value)))
			}
		})
	})
}

// whenAsked registers a function that reports metrics. The provider calls the function each time metrics are
// collected.
func (m *Meter) whenAsked(tell func(metric.Observer)) (stop func() error, err error) {
	instruments := make([]metric.Observable, 0, len(m.observed))
	for _, i := range m.observed {
		instruments = append(instruments, i)
	}
	registration, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		tell(o)
		return nil
	}, instruments...)
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return registration.Unregister, nil
}

// begin writes the value 0 to each counter that events update, so that the first event is visible as an increase.
func (m *Meter) begin(name string) {
	none := semel.Event{Consumer: name}
	for _, counter := range []string{"semel_contended_total", "semel_backstops_total", "semel_retry_budget_waits_total"} {
		m.count(counter, none, 0)
	}
	for _, a := range measure.Asides() {
		m.count("semel_unapplied_total", none, 0, attribute.String(labelHow, a.How), attribute.String(labelReason, a.Reason))
	}
	for _, part := range measure.Parts() {
		m.count("semel_not_ready_total", none, 0, attribute.String(labelPart, part))
	}
	for _, end := range m.consumer(name).ends {
		m.batches.Add(context.Background(), 0, end...)
	}
}

// collect reports the metrics of a consumer.
func (m *Meter) collect(name string, c Consumer, o metric.Observer) {
	tell := func(f measure.Figure) {
		labels := append(make([]attribute.KeyValue, 0, 3), attribute.String(labelConsumer, name))
		if f.BySource {
			labels = append(labels, attribute.String(labelSource, m.source))
		}
		if f.Label != "" {
			labels = append(labels, attribute.String(f.Label, f.Value))
		}
		o.ObserveFloat64(m.observed[f.Name], f.Is, metric.WithAttributes(labels...))
	}
	measure.Figures(c.Counts(), tell)
	load := c.Load()
	load.Figures(tell)
	ready, _ := c.Ready()
	alive, _ := c.Alive()
	of := m.consumer(name)
	of.mutex.Lock()
	paused := of.paused
	serialised, _ := of.serial.Read(time.Now())
	of.mutex.Unlock()
	for _, f := range []measure.Figure{
		{Name: "semel_ready", Is: truth(ready)}, {Name: "semel_alive", Is: truth(alive)}, {Name: "semel_paused", Is: truth(paused)},
		{Name: "semel_serialised", Is: truth(load.Serial)}, {Name: "semel_serialised_seconds_total", Is: serialised.Seconds()},
	} {
		tell(f)
	}
}

// truth returns 1 for true and 0 for false.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// consumer returns the state for the consumer of an event. An event of a generation belongs to the consumer of the
// generation.
func (m *Meter) consumer(name string) *observedConsumer {
	public, _ := admin.GenerationOf(name)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	of := m.consumers[public]
	if of == nil {
		consumer := attribute.String(labelConsumer, public)
		of = &observedConsumer{record: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(consumer))}}
		for _, end := range measure.Ends() {
			of.ends[end] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(consumer, attribute.String(labelEnd, end.String())))}
		}
		m.consumers[public] = of
	}
	return of
}

// Measure implements measure.Meter.
func (m *Meter) Measure(b measure.Batch) {
	of, ctx := m.consumer(b.Consumer), context.Background()
	if int(b.End) < len(of.ends) {
		m.batches.Add(ctx, 1, of.ends[b.End]...)
	}
	m.messages.Record(ctx, int64(b.Messages), of.record...)
	m.parts[0].Record(ctx, b.Marking.Seconds(), of.record...)
	if b.Handling > 0 {
		m.parts[1].Record(ctx, b.Handling.Seconds(), of.record...)
	}
	if b.Committing > 0 {
		m.parts[2].Record(ctx, b.Committing.Seconds(), of.record...)
	}
}

// Observe implements semel.Observer.
func (m *Meter) Observe(e semel.Event) {
	switch e.Kind {
	case eventkind.Contended:
		m.count("semel_contended_total", e, 1)
	case eventkind.Backstop:
		m.count("semel_backstops_total", e, e.Messages)
	case eventkind.RetriesWait:
		m.count("semel_retry_budget_waits_total", e, 1)
	case eventkind.Control:
		of := m.consumer(e.Consumer)
		of.mutex.Lock()
		defer of.mutex.Unlock()
		of.paused = e.Reason == semel.ReasonPaused
	case semel.EventNotReady:
		if part := string(e.Reason); slices.Contains(measure.Parts(), part) {
			m.count("semel_not_ready_total", e, 1, attribute.String(labelPart, part))
		}
	case eventkind.Serial, eventkind.Parallel:
		m.consumer(e.Consumer).setSerialized(e.Kind == eventkind.Serial)
	default:
		if a, ended := measure.AsideOf(e); ended {
			m.count("semel_unapplied_total", e, e.Messages, attribute.String(labelHow, a.How), attribute.String(labelReason, a.Reason))
		}
	}
}

func (m *Meter) count(name string, e semel.Event, n int, labels ...attribute.KeyValue) {
	public, _ := admin.GenerationOf(e.Consumer)
	m.counters[name].Add(context.Background(), int64(n), metric.WithAttributes(append(labels, attribute.String(labelConsumer, public))...))
}

func (of *observedConsumer) setSerialized(on bool) {
	of.mutex.Lock()
	defer of.mutex.Unlock()
	of.serial.Turn(on, time.Now())
}

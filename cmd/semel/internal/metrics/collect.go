package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/measure"
)

// Consumer is a consumer that runs or will run. No method of Consumer waits.
type Consumer interface {
	Counts() semel.Counts
	Load() measure.Load
	// Ready and Alive are like the methods of consumer.Consumer. After the run ended with an error, Ready and
	// Alive return false and the error. If an operator ended the run, Ready and Alive return the consumer's own
	// result.
	Ready() (bool, string)
	Alive() (bool, string)
	// StoreDown returns the start and the cause of an outage of the store. While the store works, the result
	// since is zero.
	StoreDown() (since time.Time, why string)
	// SourceKind returns the kind of the source.
	SourceKind() string
	// Lanes returns figures about the source's lanes, or nil if the source has no such figures.
	Lanes() *Lanes
	// Requests returns the request counts of a webhook source, or nil for other sources.
	Requests() *Requests
}

// Requests counts the requests to a webhook source.
type Requests struct {
	// By is the number of requests by outcome.
	By map[string]uint64
	// EqualBodies is the number of requests whose body equals that of an earlier request, although the
	// unsigned headers differ.
	EqualBodies uint64
}

// Lanes has figures about the lanes of a source.
type Lanes struct {
	// Behind is the number of messages that are not acked; -1 if the number is unknown.
	Behind int64
	// HeldUp is the number of lanes that wait for an open transaction. Standing is the number of lanes that
	// a fault has stopped.
	HeldUp, Standing int
}

// collector reads the consumers and the latest samples of stores for each scrape. collector never waits.
type collector struct {
	watch        *Watch
	consumers    func() map[string]Consumer
	samplers     []*Sampler
	options      Options
	descriptions map[string]metricDescription
	now          func() time.Time
}

// metricDescription is a metric of the table with the description that Prometheus needs.
type metricDescription struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// buckets are the upper bounds of a histogram; nil for other metrics.
	buckets []float64
}

func newCollector(w *Watch, consumers func() map[string]Consumer, samplers []*Sampler, o Options) *collector {
	c := &collector{watch: w, consumers: consumers, samplers: samplers, options: o, descriptions: map[string]metricDescription{}, now: time.Now}
	for _, p := range table() {
		for _, m := range p.metrics {
			_, labels := entry(m.name)
			d := metricDescription{prometheus.NewDesc(m.name, m.help, labels, nil), prometheus.GaugeValue, m.buckets}
			if m.kind == counter {
				d.kind = prometheus.CounterValue
			}
			c.descriptions[m.name] = d
		}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descriptions {
		out <- d.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := scrape{collector: c, out: out, now: c.now()}
	consumers := c.consumers()
	for name, of := range c.watch.counts {
		s.reportConsumer(name, of)
		for _, risk := range c.options.Risks[name] {
			s.report("semel_residual_risk", 1, name, risk)
		}
		if consumer := consumers[name]; consumer != nil {
			figures := s.figureReporter(name, consumer.SourceKind())
			measure.Figures(consumer.Counts(), figures)
			consumer.Load().Figures(figures)
			s.reportLanes(name, consumer.Lanes())
			s.reportRequests(name, consumer.Requests())
			s.reportHealth(name, consumer)
		} else if kind, known := c.options.Sources[name]; known { // export zeros before the consumer runs, so that Prometheus sees the first values as an increase
			measure.Figures(semel.Counts{}, s.figureReporter(name, kind))
		}
	}
	if c.options.Spans != nil {
		sent, dropped := c.options.Spans()
		s.report("semel_spans_sent_total", float64(sent))
		s.report("semel_spans_dropped_total", float64(dropped))
	}
	for _, sampler := range c.samplers {
		sampler.report(&s)
	}
}

type scrape struct {
	*collector
	out chan<- prometheus.Metric
	now time.Time
}

// report exports a value. The parameter labels has the values of the metric's labels, in the order of the
// table.
func (s *scrape) report(name string, value float64, labels ...string) {
	s.out <- s.newMetric(name, value, labels...)
}

func (s *scrape) newMetric(name string, value float64, labels ...string) prometheus.Metric {
	d := s.descriptions[name]
	for i := range labels {
		labels[i] = labelValue(labels[i])
	}
	return prometheus.MustNewConstMetric(d.desc, d.kind, value, labels...)
}

// reportUnapplied exports how many messages were parked, discarded or dead-lettered for one reason. Most
// counts stay 0, and the metric of a count that is 0 is created only once. The caller must hold the mutex of
// the consumer.
func (s *scrape) reportUnapplied(name string, of *consumerCounts, a measure.Aside, n int64) {
	const metric = "semel_unapplied_total"
	if n > 0 {
		s.report(metric, float64(n), name, a.How, a.Reason)
		return
	}
	if of.zeroMetrics[a] == nil {
		of.zeroMetrics[a] = s.newMetric(metric, 0, name, a.How, a.Reason)
	}
	s.out <- of.zeroMetrics[a]
}

// labelValue replaces invalid UTF-8, which label values must not contain.
func labelValue(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// reportTally exports a histogram.
func (s *scrape) reportTally(name, consumer string, t *tally) {
	d := s.descriptions[name]
	count, sum, below := t.read(d.buckets)
	s.out <- prometheus.MustNewConstHistogram(d.desc, count, sum, below, labelValue(consumer))
}

func (s *scrape) reportConsumer(name string, of *consumerCounts) {
	s.reportTally("semel_batch_messages", name, of.messages)
	s.reportTally("semel_batch_mark_seconds", name, of.marking)
	s.reportTally("semel_batch_handle_seconds", name, of.handling)
	s.reportTally("semel_batch_commit_seconds", name, of.committing)
	for _, end := range measure.Ends() {
		s.report("semel_batches_total", float64(of.ends[end].Load()), name, end.String())
	}
	of.eachUnapplied(func(a measure.Aside, n int64) { s.reportUnapplied(name, of, a, n) })
	of.eachFailure(func(part string, n int64) { s.report("semel_not_ready_total", float64(n), name, part) })
	took, now := of.serialDuration(s.now)
	s.report("semel_serialised_seconds_total", took.Seconds(), name)
	s.report("semel_serialised", boolValue(now), name)
	s.report("semel_contended_total", float64(of.contended.Load()), name)
	s.report("semel_backstops_total", float64(of.backstops.Load()), name)
	s.report("semel_retry_budget_waits_total", float64(of.budget.Load()), name)
	s.report("semel_paused", boolValue(of.paused.Load()), name)
}

func (s *scrape) reportRequests(name string, r *Requests) {
	if r == nil {
		return
	}
	for end, n := range r.By {
		s.report("semel_webhook_requests_total", float64(n), name, end)
	}
	s.report("semel_webhook_equal_bodies_total", float64(r.EqualBodies), name)
}

// figureReporter returns a function that exports one figure of the consumer.
func (s *scrape) figureReporter(name, source string) func(measure.Figure) {
	return func(f measure.Figure) {
		labels := append(make([]string, 0, 3), name)
		if f.BySource {
			labels = append(labels, source)
		}
		if f.Label != "" {
			labels = append(labels, f.Value)
		}
		s.report(f.Name, f.Is, labels...)
	}
}

func (s *scrape) reportLanes(name string, l *Lanes) {
	if l == nil {
		return
	}
	s.report("semel_lanes", float64(l.HeldUp), name, "held up")
	s.report("semel_lanes", float64(l.Standing), name, "standing")
	if l.Behind >= 0 {
		s.report("semel_broker_lag_messages", float64(l.Behind), name)
	}
}

func (s *scrape) reportHealth(name string, c Consumer) {
	ready, _ := c.Ready()
	alive, _ := checkAlive(c, s.options.RestartOnOutage)
	s.report("semel_ready", boolValue(ready), name)
	s.report("semel_alive", boolValue(alive), name)
}

func boolValue(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

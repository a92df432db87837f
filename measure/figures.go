package measure

import "github.com/semel-go/semel"

// Figure is one metric value, with the name that docs/reference/metrics.md lists.
type Figure struct {
	Name string
	// Label and Value are the label that divides the metric, in addition to the consumer and the source, and its
	// value; empty if there is none.
	Label, Value string
	// BySource means that the kind of the source is also a label.
	BySource bool
	Is       float64
}

// Figures calls each with every metric value of c, always in the same order.
func Figures(c semel.Counts, each func(Figure)) {
	each(Figure{Name: "semel_deliveries_total", BySource: true, Is: float64(c.Deliveries)})
	for _, e := range [...]struct {
		ending string
		n      int64
	}{
		{"applied", c.Applied}, {"duplicates", c.Duplicates}, {"conflicts", c.Conflicts}, {"parked", c.Parked}, {"dead_lettered", c.DeadLettered},
		{"discarded", c.Discarded}, {"skipped", c.Skipped}, {"received", c.Received}, {"waiting", c.Waiting}, {"failed", c.Failed},
	} {
		each(Figure{Name: "semel_endings_total", Label: "ending", Value: e.ending, BySource: true, Is: float64(e.n)})
	}
	for _, e := range [...]struct {
		outcome string
		n       int64
	}{
		{"applied", c.Inbox.Applied}, {"duplicates", c.Inbox.Duplicates}, {"waiting", c.Inbox.Waiting}, {"parked", c.Inbox.Parked},
		{"dead_lettered", c.Inbox.DeadLettered}, {"discarded", c.Inbox.Discarded}, {"stepped", c.Inbox.Stepped}, {"released", c.Inbox.Released}, {"lost", c.Inbox.Lost},
	} {
		each(Figure{Name: "semel_claims_total", Label: "outcome", Value: e.outcome, Is: float64(e.n)})
	}
	for _, e := range [...]struct {
		name string
		n    int64
	}{
		{"semel_effects_total", c.Applied + c.Inbox.Applied}, {"semel_duplicates_total", c.Duplicates + c.Inbox.Duplicates}, {"semel_conflicts_total", c.Conflicts},
		{"semel_retries_total", c.Retried}, {"semel_reruns_total", c.Rerun}, {"semel_same_content_total", c.SameContent}, {"semel_without_key_total", c.WithoutKey},
		{"semel_intents_sent_again_total", c.ReEmitted}, {"semel_intents_not_sent_again_total", c.NotReEmitted}, {"semel_reclaimed_total", c.Inbox.Reclaimed},
	} {
		each(Figure{Name: e.name, Is: float64(e.n)})
	}
}

// Figures calls each with every metric value of l, always in the same order.
func (l Load) Figures(each func(Figure)) {
	for _, f := range [...]struct {
		name, state string
		n           int
	}{
		{"semel_unsettled_messages", "queued", l.Queued}, {"semel_unsettled_messages", "flying", l.Flying}, {"semel_unsettled_messages", "held", l.Held},
		{"semel_unsettled_messages", "riding", l.Riding}, {"semel_unsettled_messages", "settling", l.Settling},
		{"semel_lanes", "given", l.Lanes}, {"semel_lanes", "paused", l.Paused}, {"semel_workers", "all", l.Workers}, {"semel_workers", "stuck", l.Stuck},
	} {
		each(Figure{Name: f.name, Label: "state", Value: f.state, Is: float64(f.n)})
	}
	each(Figure{Name: "semel_unsettled_bytes", Is: float64(l.Bytes)})
	each(Figure{Name: "semel_unsettled_oldest_seconds", Is: l.Oldest.Seconds()})
}

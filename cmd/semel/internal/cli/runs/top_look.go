package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"

	dto "github.com/prometheus/client_model/go"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// topStore has the methods of a store that `semel top` needs. Callers of the methods set a timeout for each
// call.
type topStore interface {
	admin.Controls
	Name() string
	Consumers(ctx context.Context) ([]string, error)
	SampleRows(ctx context.Context, state store.RowState) (sqlstore.Sampled, error)
	Unfit(ctx context.Context, err error) error
}

// caller sends a request to the process at the policy's address; see call.
type caller func(ctx context.Context, l policy.Listen, method, path string) (*http.Response, error)

// topView is the state of a consumer at one time. The value of a field is nil if the value is unknown.
type topView struct {
	Store    string `json:"store"`
	Consumer string `json:"consumer"`
	// State is running, paused, limited or not ready. State is empty if no process reports the consumer and
	// no operator paused the consumer.
	State string `json:"state"`
	// PerSecond is the number of effects per second since the previous look. Effects is the total. Lag is
	// the lag that the process reports.
	PerSecond *float64 `json:"effects_per_second"`
	Effects   *float64 `json:"effects"`
	Lag       *float64 `json:"lag"`
	// Waiting is the number of inbox rows that wait to be processed. Aside is the number of parked and
	// dead-lettered rows. MoreWaiting and MoreAside mean that the store stopped counting and there may be
	// more rows. Oldest is the age of the oldest waiting row.
	Waiting     int64   `json:"waiting"`
	MoreWaiting bool    `json:"waiting_at_least"`
	Aside       int64   `json:"parked"`
	MoreAside   bool    `json:"parked_at_least"`
	Oldest      float64 `json:"oldest_seconds"`
	// Unread means that the store was not readable, so the numbers of rows are unknown.
	Unread bool   `json:"unread"`
	Error  string `json:"error,omitempty"`
	// LastError is the last error of the consumer in its process, even if a retry succeeded.
	LastError *metrics.LastError `json:"last_error,omitempty"`
	// pausedSince is the time of the pause. answered means that a process answered. isRunning
	// means that the answering process reports the consumer.
	pausedSince         time.Time
	answered, isRunning bool
}

// topLook is the state of all consumers at one time.
type topLook struct {
	At        time.Time `json:"at"`
	Consumers []topView `json:"consumers"`
	// Notes has explanations about stores and processes that were not readable. Failed is the number of stores
	// that were not readable.
	Notes  []string `json:"notes,omitempty"`
	Failed int      `json:"-"`
	// Asking means that no store has responded yet.
	Asking bool `json:"-"`
	// unreadable lists the stores that were not readable. noRun is why the process did not respond.
	unreadable []problem
	noRun      string
}

// effectSample has the number of effects at the previous look. A rate is computed from the number of effects
// at the previous look and the number now.
type effectSample struct {
	at      time.Time
	effects map[string]float64
}

// look reads the stores and asks the running process.
func (w *watcher) look(ctx context.Context) *topLook {
	l := &topLook{At: w.now(), Consumers: []topView{}}
	for _, s := range w.stores {
		if err := w.read(ctx, l, s); err != nil && ctx.Err() == nil {
			l.Failed++
			note := unreadable(ctx, s, err)
			l.Notes = append(l.Notes, note)
			l.unreadable = append(l.unreadable, problem{Store: s.Name(), What: "not readable", Why: strings.TrimPrefix(note, "store "+s.Name()+": ")})
			w.addUnread(l, s)
		}
	}
	switch {
	case w.policy.Listen.Address == "":
		l.explainStates(w.policy.Bare)
	case ctx.Err() == nil:
		if err := w.askRun(ctx, l); err != nil {
			l.noRun = err.Error()
			l.Notes = append(l.Notes, "rates, lag and readiness are not known: "+l.noRun)
		}
	}
	return l
}

// explainStates notes why a state is unknown if no process can be asked.
func (l *topLook) explainStates(bare bool) {
	if slices.ContainsFunc(l.Consumers, func(v topView) bool { return v.State == "" }) {
		l.Notes = append(l.Notes, "STATE is unknown: "+map[bool]string{true: noPolicy, false: noListen}[bare])
	}
}

// unreadable returns why a store is not readable and, if known, a remedy.
func unreadable(ctx context.Context, s topStore, err error) string {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if unfit := s.Unfit(ctx, err); unfit != nil {
		return unfit.Error()
	}
	return fmt.Sprintf("store %s cannot be read: %v", s.Name(), err)
}

// If a store is not readable, addUnread adds, for each consumer of the store, a view in which the numbers are unknown.
func (w *watcher) addUnread(l *topLook, s topStore) {
	l.Consumers = slices.DeleteFunc(l.Consumers, func(v topView) bool { return v.Store == s.Name() })
	for _, name := range command.KnownConsumers(w.policy, s.Name(), nil) {
		if w.Consumer == "" || w.Consumer == name {
			l.Consumers = append(l.Consumers, topView{Store: s.Name(), Consumer: name, Unread: true})
		}
	}
}

// read reads the state of the consumers from one store.
func (w *watcher) read(ctx context.Context, l *topLook, s topStore) error {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	known, err := s.Consumers(ctx)
	if err != nil {
		return err
	}
	rows := map[store.RowState]sqlstore.Sampled{}
	for _, state := range append(command.WaitingStates(), store.StateParked, store.StateDeadLettered) {
		if rows[state], err = s.SampleRows(ctx, state); err != nil {
			return err
		}
	}
	for _, name := range command.KnownConsumers(w.policy, s.Name(), known) {
		if w.Consumer != "" && w.Consumer != name {
			continue
		}
		v := topView{Store: s.Name(), Consumer: name}
		c, err := operate.ControlOf(ctx, s.Name(), s, name)
		if err != nil {
			return err
		}
		if v.State = controlState(c); v.State == "-" {
			v.State = ""
		} else if o := pauseOrder(c); o != nil {
			v.Error, v.pausedSince = o.Why, o.At
		}
		for state, sampled := range rows {
			of := sampled.Consumers[name]
			if state == store.StateParked || state == store.StateDeadLettered {
				v.Aside, v.MoreAside = v.Aside+of.Rows, v.MoreAside || sampled.AtLeast
				continue
			}
			v.Waiting, v.MoreWaiting = v.Waiting+of.Rows, v.MoreWaiting || sampled.AtLeast
			v.Oldest = max(v.Oldest, of.Oldest.Seconds())
		}
		l.Consumers = append(l.Consumers, v)
	}
	return nil
}

// lookWithin is the timeout for reading a store or asking the process.
const lookWithin = 5 * time.Second

// askRun adds the figures that the running process reports.
func (w *watcher) askRun(ctx context.Context, l *topLook) error {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	figures, err := w.fetchMetrics(ctx)
	if err != nil {
		return err
	}
	health, err := w.health(ctx)
	if err != nil {
		return err
	}
	now := effectSample{l.At, map[string]float64{}}
	for i := range l.Consumers {
		v := &l.Consumers[i]
		v.answered = true
		if h, runs := health.Consumers[v.Consumer]; runs {
			v.setHealth(h)
		}
		v.Lag = figureOf(figures["semel_broker_lag_messages"], v.Consumer)
		v.Effects = figureOf(figures["semel_effects_total"], v.Consumer)
		if v.Effects == nil {
			continue
		}
		now.effects[v.Consumer] = *v.Effects
		before, known := w.previous.effects[v.Consumer]
		if passed := now.at.Sub(w.previous.at).Seconds(); known && passed > 0 && *v.Effects >= before {
			rate := (*v.Effects - before) / passed
			v.PerSecond = &rate
		}
	}
	w.previous = now
	return nil
}

// setHealth sets the state and the last error from the health that the process reports.
func (v *topView) setHealth(h metrics.ConsumerHealth) {
	v.LastError, v.isRunning = h.LastError, true
	reason := operate.WithoutConsumer(v.Consumer, h.Reason)
	switch {
	case !h.OK && v.State != "paused":
		v.State, v.Error = "not ready", reason
	case v.State == "":
		v.State, v.Error = "running", reason
	}
}

func (w *watcher) fetchMetrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	response, err := w.call(ctx, w.policy.Listen, http.MethodGet, metrics.PathMetrics)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", w.policy.Listen.Address, response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(io.LimitReader(response.Body, mostFigures))
}

// mostFigures is the maximum number of bytes that are read from a metrics response.
const mostFigures = 16 << 20

func (w *watcher) health(ctx context.Context) (h metrics.Health, err error) {
	response, err := w.call(ctx, w.policy.Listen, http.MethodGet, metrics.PathReady)
	if err != nil {
		return h, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, mostHealth)).Decode(&h)
	return h, err
}

// figureOf returns the sum of a metric's values for a consumer, or nil if the metric has no value for the
// consumer.
func figureOf(f *dto.MetricFamily, consumer string) *float64 {
	var sum float64
	found := false
	for _, m := range f.GetMetric() {
		for _, label := range m.GetLabel() {
			if label.GetName() == "consumer" && label.GetValue() == consumer {
				found = true
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	if !found {
		return nil
	}
	return &sum
}

// sortOrders has the sort orders of the table. Every sort order, except the order by name, shows the
// consumer with the most problems first.
var sortOrders = []struct {
	name    string
	compare func(a, b topView) int
}{
	{"name", func(a, b topView) int { return strings.Compare(a.Consumer, b.Consumer) }},
	{"rate", func(a, b topView) int { return compareFigures(b.PerSecond, a.PerSecond) }},
	{"lag", func(a, b topView) int { return compareFigures(b.Lag, a.Lag) }},
	{"waiting", func(a, b topView) int { return int(b.Waiting - a.Waiting) }},
	{"oldest", func(a, b topView) int { return compareFigures(&b.Oldest, &a.Oldest) }},
	{"parked", func(a, b topView) int { return int(b.Aside - a.Aside) }},
}

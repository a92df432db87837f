package httpkey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/store"
)

// The numbers of requests, by fate or by the code of their problem document.
type counts struct {
	mutex   sync.Mutex
	byLabel map[string]int64 // guarded by mutex
}

func (c *counts) add(o *Observation) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.byLabel == nil {
		c.byLabel = map[string]int64{}
	}
	c.byLabel[o.label()]++
}

// label returns the code of the problem document or, without a problem document, the fate.
func (o *Observation) label() string {
	if o.Code != "" {
		return o.Code
	}
	return o.Fate.String()
}

// Figures calls the function each with every metric of the guard, always in the same order. Package otel calls Figures
// when metrics are collected. The values of labels are fixed and contain no data of requests.
//
//	semel_http_requests_total{fate}  requests since the guard was created: passed, ran, replayed,
//	                                 finished, unprotected, or the code of the problem document
//	                                 (Contract lists all)
//	semel_http_keys{state}           in_flight: keys on which this process is working; open:
//	                                 running handlers; most: their maximum (Config.MostOpen)
func (g *Guard) Figures(each func(measure.Figure)) {
	g.counts.mutex.Lock()
	of := maps.Clone(g.counts.byLabel)
	g.counts.mutex.Unlock()
	for _, fate := range fateLabels() {
		each(measure.Figure{Name: "semel_http_requests_total", Label: "fate", Value: fate, Is: float64(of[fate])})
	}
	state := func(name string, n int) {
		each(measure.Figure{Name: "semel_http_keys", Label: "state", Value: name, Is: float64(n)})
	}
	state("in_flight", g.flights.count())
	state("open", int(g.handlers.unitsInUse()))
	state("most", g.config.MostOpen)
}

// fateLabels returns all values of the label fate.
func fateLabels() []string {
	all := slices.Sorted(maps.Keys(titles))
	for _, f := range []Fate{Passed, Ran, Replayed, Unprotected, Finished} {
		all = append(all, f.String())
	}
	return all
}

// Check asks the store whether requests can be protected now. Call Check when the program starts, and for readiness.
// With New, Check may write the name of the guard into the store, but changes nothing else.
func (g *Guard) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := g.strategy.check(ctx); err != nil {
		return fmt.Errorf("httpkey: requests of %s cannot be protected: %w", g.config.Name, err)
	}
	return nil
}

func (t *transactional[Tx]) check(ctx context.Context) error {
	if checker, able := t.store.(admin.SchemaChecker); able {
		if err := checker.Check(ctx); err != nil {
			return err
		}
	}
	if err := t.intern(ctx); err != nil {
		return err
	}
	_, err := t.results.Results(ctx, []admin.ResultOf{{Scope: t.scope.Load(), ID: []byte{0}}}) // no request has this key
	return err
}

// check asks the store for a key that no request can have, because keys are not empty.
func (l *leased) check(ctx context.Context) error {
	if checker, able := l.store.(admin.SchemaChecker); able {
		if err := checker.Check(ctx); err != nil {
			return err
		}
	}
	nobody := semel.Key{Consumer: l.guard.config.Name, Source: "", ID: "\x00check"}
	if err := l.store.ExtendKey(ctx, nobody, store.NewToken(), poll); !errors.Is(err, store.ErrClaimLost) {
		return errors.Join(errors.New("the store does not answer as it should"), err)
	}
	return nil
}

package httpkey_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/memstore"
)

// collectMetrics returns the metrics of a guard that are not 0.
func collectMetrics(g *httpkey.Guard) map[string]float64 {
	all := map[string]float64{}
	g.Figures(func(f measure.Figure) {
		if f.Is != 0 {
			all[strings.TrimPrefix(f.Name, "semel_http_")+" "+f.Value] = f.Is
		}
	})
	return all
}

func TestK4OutcomesOfRequestsAreCounted(t *testing.T) {
	t.Run("K4_by_fate_and_by_why_they_were_refused", func(t *testing.T) {
		s := newFixture(t, effect, func(c *httpkey.Config) { c.MostOpen, c.Pass = 3, []string{http.MethodGet} })
		s.post(`"k"`, "tea")
		s.post(`"k"`, "tea")
		s.post(`"k"`, "coffee")
		s.post("", "tea")
		s.post("k k", "tea")
		s.post(`"k2"`, "tea", func(r *http.Request) { r.Header.Del("X-Account") })
		s.post(`"k3"`, "tea", func(r *http.Request) { r.Method = http.MethodGet })
		want := map[string]float64{
			"requests_total ran": 1, "requests_total replayed": 1, "requests_total idempotency-key-reused": 1, "requests_total idempotency-key-missing": 1,
			"requests_total idempotency-key-invalid": 1, "requests_total caller-unknown": 1, "requests_total passed": 1, "keys most": 3,
		}
		if got := collectMetrics(s.Guard); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
	t.Run("K4_and_what_is_under_way", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			leave := make(chan struct{})
			s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				<-leave
				effect(w, r)
			}, func(c *httpkey.Config) { c.Observe = nil })
			for _, key := range []string{`"a"`, `"b"`} {
				go s.post(key, "tea")
			}
			synctest.Wait()
			if got := collectMetrics(s.Guard); got["keys in_flight"] != 2 || got["keys open"] != 2 || got["keys most"] != 8 {
				t.Errorf("%v", got)
			}
			close(leave)
			synctest.Wait()
			if got := collectMetrics(s.Guard); got["keys in_flight"] != 0 || got["keys open"] != 0 || got["requests_total ran"] != 2 {
				t.Errorf("when they have ended, %v", got)
			}
		})
	})
	t.Run("K4_each_has_one_name_for_ever", func(t *testing.T) {
		seen := map[string]bool{}
		newLeasedFixture(t, memstore.NewKeys(), effect, nil).Figures(func(f measure.Figure) {
			if seen[f.Name+f.Value] || f.Label == "" || f.Value == "" {
				t.Errorf("%+v", f)
			}
			seen[f.Name+f.Value] = true
		})
		if len(seen) != 27 { // 19 codes, 5 fates, and three states of keys
			t.Errorf("%d figures", len(seen))
		}
	})
}

// unfit is a store whose schema does not fit this release.
type unfit struct{ keystore.Store }

func (unfit) Check(context.Context) error { return semel.ErrSchema }

func TestK8AGuardSaysWhetherItsStoreWorks(t *testing.T) {
	t.Run("K8_of_New", func(t *testing.T) {
		var f failingStore
		s := newFixture(t, effect, nil, memstore.Fail(func(string) error { return f.currentError() }))
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("it works: %v", err)
		}
		f.setError(errAway)
		if err := s.Check(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("it is away: %v", err)
		}
	})
	t.Run("K8_of_NewLeased", func(t *testing.T) {
		var f failingStore
		s := newLeasedFixture(t, f.keys(), effect, nil)
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("it works: %v", err)
		}
		f.setError(errAway)
		if err := s.Check(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("it is away: %v", err)
		}
	})
	t.Run("K8_and_whether_its_tables_fit", func(t *testing.T) {
		if err := newLeasedFixture(t, unfit{memstore.NewKeys()}, effect, nil).Check(t.Context()); !errors.Is(err, semel.ErrSchema) {
			t.Errorf("it says %v", err)
		}
	})
}

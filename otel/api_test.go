package otel_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/otel"
)

func TestFiguresOfAnAPI(t *testing.T) {
	t.Run("K4_of_a_guard_are_told", func(t *testing.T) {
		reader := metric.NewManualReader()
		m, err := otel.NewMeter(metric.NewMeterProvider(metric.WithReader(reader)), "")
		if err != nil {
			t.Fatal(err)
		}
		g, err := httpkey.New(memstore.New(), httpkey.Config{Name: "orders", OneTenant: true, Keep: 72 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		stop, err := m.WatchAPI("orders", g)
		if err != nil {
			t.Fatal(err)
		}
		api := g.ProtectFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
		for _, key := range []string{`"a"`, `"a"`, `"b"`, "not quoted"} {
			r := httptest.NewRequest(http.MethodPost, "/orders", nil)
			r.Header.Set(httpkey.Header, key)
			api.ServeHTTP(httptest.NewRecorder(), r)
		}
		got := collect(t, reader)
		for figure, want := range map[string]float64{
			"semel_http_requests_total consumer=orders,fate=ran": 2, "semel_http_requests_total consumer=orders,fate=replayed": 1,
			"semel_http_requests_total consumer=orders,fate=idempotency-key-invalid": 1, "semel_http_requests_total consumer=orders,fate=store-unavailable": 0,
			"semel_http_keys consumer=orders,state=in_flight": 0, "semel_http_keys consumer=orders,state=most": 8,
		} {
			if is, there := got.figures[figure]; !there || is != want {
				t.Errorf("%s is %v (%t), not %v", figure, is, there, want)
			}
		}
		if got.kinds["semel_http_requests_total"] != "counter" || got.kinds["semel_http_keys"] != "gauge" {
			t.Errorf("%v", got.kinds)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got := collect(t, reader); len(got.figures) > 0 {
			t.Errorf("after stop, %v", got.figures)
		}
	})
}

package tracing

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/sourcetest"
)

// receiver is a collector for tests.
type receiver struct {
	mutex    sync.Mutex
	path     string
	services []string
	spans    map[string][]*tracev1.Span // the received spans by name
}

// ServeHTTP accepts and records spans.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var all collector.ExportTraceServiceRequest
	body, err := io.ReadAll(q.Body)
	if err == nil {
		err = proto.Unmarshal(body, &all)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.path = q.URL.Path
	for _, of := range all.ResourceSpans {
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				r.services = append(r.services, a.Value.GetStringValue())
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				r.spans[s.Name] = append(r.spans[s.Name], s)
			}
		}
	}
}

// message returns a message whose trace has the given flags. If flags is empty, the message has no trace.
func message(n int, flags string) *semel.Message {
	m := &semel.Message{Body: []byte("{}"), Origin: semel.Origin{Partition: -1, Offset: -1}, Headers: semel.Headers{{Name: "id", Value: fmt.Append(nil, n)}}}
	if flags != "" {
		m.Headers = append(m.Headers, semel.Header{Name: "traceparent", Value: fmt.Appendf(nil, "00-%032x-%016x-%s", n, 0xabc, flags)})
	}
	return m
}

// runConsumer runs a consumer with the given messages and returns the duration of the run.
func runConsumer(t *testing.T, observer semel.Observer, messages ...*semel.Message) time.Duration {
	t.Helper()
	source := sourcetest.NewMemory(1)
	for _, m := range messages {
		if err := source.Publish(0, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := source.End(); err != nil {
		t.Fatal(err)
	}
	c, err := consumer.New(memstore.New(), func(_ context.Context, tx *memstore.Tx, m *semel.Message) error { return tx.Add(m.Identity.ID, 1) },
		consumer.Config{Name: "billing", Source: source, Identity: identity.By("header:id"), Observers: []semel.Observer{observer}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := c.Run(t.Context()); err != nil || c.Counts().Applied != int64(len(messages)) {
		t.Fatalf("%v, %+v", err, c.Counts())
	}
	return time.Since(began)
}

func TestSpansAreSent(t *testing.T) {
	t.Run("C14_a_sampled_message_has_its_span_in_its_own_trace_with_a_link_to_its_batch", func(t *testing.T) {
		got := &receiver{spans: map[string][]*tracev1.Span{}}
		server := httptest.NewServer(got)
		defer server.Close()
		traced, err := Open(t.Context(), Options{Endpoint: server.URL + "/v1/traces", Sources: map[string]string{"billing": "file"}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		runConsumer(t, traced, message(1, "01"), message(2, "00"), message(3, ""))
		traced.Close()
		process, batch := got.spans["process billing"], got.spans["batch billing"]
		if len(process) != 1 || len(batch) != 1 || len(process[0].Links) != 1 {
			t.Fatalf("the spans are %v", got.spans)
		}
		of, link := process[0], process[0].Links[0]
		if hex.EncodeToString(of.TraceId) != fmt.Sprintf("%032x", 1) || hex.EncodeToString(of.ParentSpanId) != fmt.Sprintf("%016x", 0xabc) {
			t.Errorf("the span is in trace %x, under %x", of.TraceId, of.ParentSpanId)
		}
		if !bytes.Equal(link.TraceId, batch[0].TraceId) || !bytes.Equal(link.SpanId, batch[0].SpanId) || bytes.Equal(of.TraceId, batch[0].TraceId) || len(batch[0].ParentSpanId) != 0 || len(batch[0].Links) != 0 {
			t.Errorf("the span links to %v, but its batch is %v", link, batch[0])
		}
		if said := fmt.Sprint(of.Attributes); !strings.Contains(said, "file") || got.path != "/v1/traces" || got.services[0] != "semel" {
			t.Errorf("%s of %v at %s", said, got.services, got.path)
		}
		if sent, dropped := traced.Spans(); sent != 2 || dropped != 0 {
			t.Errorf("%d were sent, and %d dropped", sent, dropped)
		}
	})
	t.Run("C14_a_ratio_takes_a_share_by_the_trace", func(t *testing.T) {
		kept := &countingExporter{}
		traced, err := sendBy(t.Context(), kept, Options{Ratio: 0.5, Sources: map[string]string{"billing": "file"}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		low, high := message(1, "01"), message(2, "01")
		high.Headers[1].Value = []byte("00-ffffffffffffffffffffffffffffffff-0000000000000abc-01")
		runConsumer(t, traced, low, high)
		traced.Close()
		if n := kept.names["process billing"]; n != 1 {
			t.Errorf("the spans are %v", kept.names)
		}
	})
}

// countingExporter is an exporter that counts spans by name and calls a function of the test.
type countingExporter struct {
	mutex sync.Mutex
	names map[string]int
	do    func(context.Context) error
}

func (k *countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.mutex.Lock()
	do := k.do
	k.mutex.Unlock()
	if do != nil {
		if err := do(ctx); err != nil {
			return err
		}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.names == nil {
		k.names = map[string]int{}
	}
	for _, s := range spans {
		k.names[s.Name()]++
	}
	return nil
}

func (k *countingExporter) Shutdown(context.Context) error { return nil }

func recordSpans(t *Tracer, n int) {
	b := t.TraceBatch(measure.Begun{Consumer: "billing@2", Messages: n, At: time.Now()})
	for range n {
		parent, _ := message(1, "01").TraceContext()
		b.TraceMessage(parent).End(measure.MessageEnd{Ending: "applied"})
	}
	b.End(measure.Batch{})
}

func TestACollectorThatDoesNotWork(t *testing.T) {
	opened := func(t *testing.T, k *countingExporter) (*Tracer, *bytes.Buffer) {
		said := &bytes.Buffer{}
		traced, err := sendBy(t.Context(), k, Options{Sources: map[string]string{"billing": "file"}, Logger: slog.New(slog.NewTextHandler(said, nil))})
		if err != nil {
			t.Fatal(err)
		}
		return traced, said
	}
	t.Run("C14_one_that_hangs_holds_up_no_message_and_the_end_for_seconds_at_most", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			traced, said := opened(t, &countingExporter{do: func(context.Context) error { <-release; return nil }})
			began := time.Now()
			recordSpans(traced, maxQueued+1000)
			if took := time.Since(began); took != 0 {
				t.Errorf("the messages took %v", took)
			}
			if _, dropped := traced.Spans(); dropped != 1001 {
				t.Errorf("%d were dropped", dropped)
			}
			traced.Close()
			if took := time.Since(began); took != closeTimeout {
				t.Errorf("Close took %v", took)
			}
			if _, dropped := traced.Spans(); dropped != maxQueued+1001 || !strings.Contains(said.String(), "spans were not sent before the process ended") {
				t.Errorf("%d were dropped; the log says\n%s", dropped, said)
			}
			close(release)
		})
	})
	t.Run("C14_one_that_refuses_is_told_of_once_a_minute_and_when_it_is_back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := &countingExporter{do: func(context.Context) error { return errors.New("503 of a test") }}
			traced, said := opened(t, k)
			for range 90 { // wait for one and a half minutes
				recordSpans(traced, 3)
				<-time.After(time.Second)
			}
			synctest.Wait()
			if n := strings.Count(said.String(), "does not accept spans"); n != 2 || !strings.Contains(said.String(), "503 of a test") {
				t.Errorf("it was logged %d times:\n%s", n, said)
			}
			k.mutex.Lock()
			k.do = nil
			k.mutex.Unlock()
			recordSpans(traced, 3)
			traced.Close()
			if sent, dropped := traced.Spans(); sent < 4 || sent+dropped != 91*4 || !strings.Contains(said.String(), "accepts spans again") {
				t.Errorf("%d were sent, %d dropped:\n%s", sent, dropped, said)
			}
		})
	})
	t.Run("one_that_answers_at_length_is_told_of_shortly", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			traced, said := opened(t, &countingExporter{do: func(context.Context) error { return errors.New(strings.Repeat("ü", 1<<20)) }})
			recordSpans(traced, 3)
			traced.Close()
			if n := said.Len(); n < mostShown || n > mostShown+500 {
				t.Errorf("%d bytes were logged", n)
			}
		})
	})
}

func TestIgnoredEnvironmentVariablesAreLogged(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", filepath.Join(t.TempDir(), "nowhere"))
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "secret of a test")
	log := &bytes.Buffer{}
	traced, err := Open(t.Context(), Options{Endpoint: "http://127.0.0.1:1/v1/traces", Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	traced.Close()
	if text := log.String(); strings.Count(text, "nowhere") != 1 || !strings.Contains(text, "parse headers") || strings.Contains(text, "secret") {
		t.Errorf("the log says:\n%s", text)
	}
}

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestARunSendsItsSpans(t *testing.T) {
	t.Run("C14_to_the_collector_of_the_policy_before_it_ends", func(t *testing.T) {
		var mutex sync.Mutex
		var got []byte
		collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mutex.Lock()
			defer mutex.Unlock()
			got = append(got, body...)
		}))
		defer collector.Close()
		folder := t.TempDir()
		for name, text := range map[string]string{
			"semel.yaml": `version: 1
traces: {otlp: "` + collector.URL + `"}
stores: {shop: {sqlite: {path: shop.db}, migrate: true}}
sources: {in: {file: {path: in.jsonl, format: envelope}}}
consumers:
  billing:
    from: in
    store: shop
    strategy: marker
    identity: {id: "header:id"}
    handler: {sql: {params: {k: "body:/k"}, statements: ["insert into done values (:k)"]}}
`,
			"in.jsonl": `{"headers": {"id": "1", "traceparent": "00-73616d706c65642d74726163652d6f6e-0000000000000abc-01"}, "body": {"k": "a"}}
{"headers": {"id": "2", "traceparent": "00-6e6f742d73616d706c65642d74776f2e-0000000000000abc-00"}, "body": {"k": "b"}}
`,
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		output(t, folder, "sqlite", "shop.db", "create table done (k text)")
		output(t, folder, "semel", "run")
		mutex.Lock()
		defer mutex.Unlock()
		for text, want := range map[string]bool{"process billing": true, "batch billing": true, "sampled-trace-on": true, "not-sampled-two.": false} {
			if bytes.Contains(got, []byte(text)) != want {
				t.Errorf("%q is there: %t", text, !want)
			}
		}
	})
}

package consumer_test

import (
	"context"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
)

func TestAHandlersMessageSaysThatItsBodyWasRead(t *testing.T) {
	for name, c := range map[string]struct {
		print   identity.Fingerprinter
		body    string
		process bool
		proven  bool
	}{
		"where_it_was":                             {identity.FingerprintBody(), `{"a":1}`, false, true},
		"not_where_nobody_asked":                   {identity.FingerprintNone(), `{"a":1}`, false, false},
		"not_where_it_is_none":                     {identity.FingerprintBody(), `{"a":1,"a":2}`, false, false},
		"not_in_a_call_whose_caller_has_its_bytes": {identity.FingerprintBody(), `{"a":1}`, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := message("1", c.body)
			ran, proven := false, false
			handler := func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
				ran, proven = true, m.Strict.Holds(m.Body)
				return nil
			}
			config := config(newListSource(m))
			config.Fingerprint = c.print
			var err error
			if c.process {
				config.Source = nil
				running := mustNew(t, memstore.New(), handler, config)
				_, err = running.Process(t.Context(), m)
				defer func() { _ = running.Close(t.Context()) }()
			} else {
				err = mustNew(t, memstore.New(), handler, config).Run(t.Context())
			}
			if err != nil || !ran || proven != c.proven {
				t.Errorf("ran %v, proven %v: %v", ran, proven, err)
			}
		})
	}
}

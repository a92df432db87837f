package file_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/source"
)

// BenchmarkLinesOf1KiB reads and acks events of about 1 KiB. Each Fetch returns 256 events.
func BenchmarkLinesOf1KiB(b *testing.B) {
	event := `{"specversion":"1.0","id":"0190b5c4-7a1e-7cc0-9f3a-2b1c5d6e7f80","source":"/shop/orders","type":"order.placed",` +
		`"time":"2026-01-02T03:04:05Z","data":{"account":"a-1842","amount":12.5,"currency":"EUR","lines":[` +
		strings.TrimSuffix(strings.Repeat(`{"article":"4711-0815","pieces":3,"price":1.25},`, 15), ",") + `]}}` + "\n"
	path := filepath.Join(b.TempDir(), "events.jsonl")
	const lines = 20_000
	write(b, path, strings.Repeat(event, lines))
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	for read := 0; read < b.N; {
		s := file.Open(path, file.Options{})
		for {
			got, err := s.Fetch(b.Context(), source.Bound{Messages: 256, Bytes: 64 << 20})
			if errors.Is(err, source.ErrEnd) || read >= b.N {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			read += len(got)
			done := make([]source.Settlement, len(got))
			for i := range got {
				done[i] = source.Settlement{Delivery: &got[i], Kind: semel.Ack}
			}
			if _, err := s.Settle(b.Context(), done); err != nil {
				b.Fatal(err)
			}
		}
		_ = s.Close(b.Context())
	}
}

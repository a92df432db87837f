package kafka

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// BenchmarkFetchAndSettle reads and settles records of 500 bytes with five
// headers, 500 a Fetch, from a broker in this process.
func BenchmarkFetchAndSettle(b *testing.B) {
	c := cluster(b, kfake.SeedTopics(6, "orders"))
	p := newProducer(b, c.ListenAddrs())
	const most = 200_000
	value := make([]byte, 500)
	headers := []kgo.RecordHeader{{Key: "ce_id", Value: []byte("0190b5c4-7a1e-7cc0-9f3a-2b1c5d6e7f80")}, {Key: "ce_source", Value: []byte("/shop")}, {Key: "ce_type", Value: []byte("paid")}, {Key: "ce_time", Value: []byte("2026-01-02T03:04:05Z")}, {Key: "content-type", Value: []byte("application/json")}}
	for i := range min(b.N, most) {
		p.Produce(b.Context(), &kgo.Record{Topic: "orders", Partition: int32(i % 6), Value: value, Headers: headers}, nil)
	}
	if err := p.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for read := 0; read < b.N; {
		r, err := New(quiet(Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"}))
		if err != nil {
			b.Fatal(err)
		}
		for n := 0; n < min(b.N, most) && read < b.N; {
			got, err := r.Fetch(b.Context(), source.Bound{Messages: 500, Bytes: 64 << 20})
			if err != nil {
				b.Fatal(err)
			}
			if left, err := r.Settle(b.Context(), settlements(semel.Ack, got)); err != nil || len(left) > 0 {
				b.Fatal(left, err)
			}
			n, read = n+len(got), read+len(got)
		}
		_ = r.Close(b.Context())
	}
}

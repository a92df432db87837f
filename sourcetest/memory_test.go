package sourcetest_test

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sourcetest"
)

func allOf(lanes int) sourcetest.Can {
	return sourcetest.Can{
		Lanes: lanes, Live: true, Whole: true, Ordered: true, Reopens: true, Remembers: true,
		HandsBack: true, Delays: true, Counts: true, Pauses: true, DeadLetters: true, Idles: true, Ends: true,
	}
}

func TestMemoryKeepsTheLaws(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		Start: func(testing.TB) sourcetest.Broker { return sourcetest.NewMemory(3) },
		Can:   allOf(3), Virtual: true,
	})
}

// BenchmarkMemory measures how long one message takes to be published, fetched and acked.
func BenchmarkMemory(b *testing.B) {
	m := sourcetest.NewMemory(8)
	message := &semel.Message{Body: []byte("body")}
	settlements := make([]source.Settlement, 256)
	b.ReportAllocs()
	for i := 0; i < b.N; {
		for lane := range 256 {
			if err := m.Publish(lane%8, message); err != nil {
				b.Fatal(err)
			}
		}
		got, err := m.Fetch(b.Context(), source.Bound{Messages: 256, Bytes: 1 << 20})
		if err != nil {
			b.Fatal(err)
		}
		for j := range got {
			settlements[j] = source.Settlement{Delivery: &got[j], Kind: semel.Ack}
		}
		if _, err := m.Settle(b.Context(), settlements[:len(got)]); err != nil {
			b.Fatal(err)
		}
		i += len(got)
	}
}

package report

import (
	"encoding/binary"
	"fmt"
	"testing"
	"unsafe"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
)

// newDistinctItems returns n messages with different contents.
func newDistinctItems(n int) []machine.Item {
	all := make([]machine.Item, n)
	for i := range all {
		all[i].Identity = fmt.Sprintf("payment-%012d", i)
		all[i].Print = semel.Fingerprint{Version: 1}
		x := uint64(i+1) * 0x9e3779b97f4a7c15
		binary.LittleEndian.PutUint64(all[i].Print.Sum[:], x^x>>31)
		binary.LittleEndian.PutUint64(all[i].Print.Sum[8:], x*x)
	}
	return all
}

func TestRecentContentsAreRemembered(t *testing.T) {
	t.Run("A8_of_the_last_ten_thousand_nearly_all_are_known_and_none_is_mistaken", func(t *testing.T) {
		var r recent
		all := newDistinctItems(200_000)
		for i := range all {
			for range 2 {
				if r.isRepeated(&all[i]) {
					t.Fatalf("content %d counts as repeated, or its copy does not", i)
				}
			}
		}
		known := 0
		for i := len(all) - 10_000; i < len(all); i++ {
			other := all[i]
			other.Identity += "-again"
			if r.isRepeated(&other) {
				known++
			}
		}
		if known < 9_900 {
			t.Errorf("%d of 10,000 are known", known)
		}
	})
	t.Run("A8_another_source_another_rule_and_none_are_another_content", func(t *testing.T) {
		var r recent
		items := newDistinctItems(4)
		for i := range items {
			items[i].Print.Sum = items[0].Print.Sum
		}
		items[1].Source = "shop"
		items[2].Print.Version = 2
		items[3].Print = semel.Fingerprint{}
		for range 2 {
			for i := range items {
				if r.isRepeated(&items[i]) {
					t.Errorf("message %d counts as repeated", i)
				}
			}
		}
	})
	t.Run("law_11_it_is_of_one_size_and_of_none_without_fingerprints", func(t *testing.T) {
		var r recent
		if r.isRepeated(&machine.Item{Identity: "1"}) || r.sets != nil {
			t.Error("a message without a fingerprint was remembered")
		}
		r.isRepeated(&newDistinctItems(1)[0])
		if size := len(r.sets) * int(unsafe.Sizeof(r.sets[0])); size != 1<<20 {
			t.Errorf("%d bytes", size)
		}
	})
}

// BenchmarkSameContent measures the lookup and the recording of a message with new content. Each message uses a
// different memory location. The sub-benchmark "without" measures the loop alone.
func BenchmarkSameContent(b *testing.B) {
	bench := func(b *testing.B, do func(*machine.Item)) {
		all := newDistinctItems(512) // the size of a batch
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			it := &all[i%len(all)]
			binary.LittleEndian.PutUint64(it.Print.Sum[:], uint64(i)*0x9e3779b97f4a7c15)
			do(it)
		}
	}
	b.Run("with", func(b *testing.B) {
		var r recent
		bench(b, func(it *machine.Item) { r.isRepeated(it) })
	})
	b.Run("without", func(b *testing.B) { bench(b, func(*machine.Item) {}) })
}

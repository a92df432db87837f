package hook

import (
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// doubling is a decompressor whose output is twice as long as its input.
type doubling struct{}

func (doubling) Decompress(src []byte, _ kgo.CompressionCodecType) ([]byte, error) {
	return slices.Concat(src, src), nil
}

func TestWhatIsHeldCounts(t *testing.T) {
	t.Run("trap_T91_a_second_batch_is_refused_while_what_is_not_settled_is_at_the_bound", func(t *testing.T) {
		o := NewBudget()
		o.Use(doubling{})
		o.Raise(1000)
		o.Hold(1000)
		batch := make([]byte, 10)
		if _, err := o.Decompress(batch, 0); err != nil {
			t.Errorf("the first batch, which is always let in: %v", err)
		}
		if _, err := o.Decompress(batch, 0); !errors.Is(err, ErrOverBudget) {
			t.Errorf("the second batch: %v", err)
		}
		o.Hold(-900)
		if _, err := o.Decompress(batch, 0); err != nil {
			t.Errorf("with room: %v", err)
		}
	})
}

package stored

import (
	"errors"
	"slices"
	"testing"
)

func TestABeginningHasAsManyStartsAsItSays(t *testing.T) {
	t.Run("trap_T92_one_of_another_number_of_partitions_is_damaged", func(t *testing.T) {
		p := Beginning{TopicID: [16]byte{7}, Starts: []int64{1, 300}}.Position()
		if b, err := BeginningOf(p); err != nil || !slices.Equal(b.Starts, []int64{1, 300}) {
			t.Errorf("%+v, %v", b, err)
		}
		for _, length := range []int64{0, 1, 3} {
			p.Length = length
			if b, err := BeginningOf(p); !errors.Is(err, ErrDamaged) {
				t.Errorf("two starts with the length %d are read as %+v, %v", length, b, err)
			}
		}
	})
}

package sqlform

import (
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func TestReceive(t *testing.T) {
	// receiveSizes receives messages of the given sizes; a negative size means a duplicate. The result contains the
	// sizes of the messages in each piece.
	receiveSizes := func(t *testing.T, sizes []int) (pieces [][]int) {
		marks, verdicts := make([]store.Mark, len(sizes)), make([]store.Verdict, len(sizes))
		messages := make([]*semel.Message, len(sizes))
		for i, n := range sizes {
			marks[i].ID, verdicts[i].Kind, messages[i] = []byte("a"), store.Fresh, &semel.Message{Body: make([]byte, max(n, 0))}
			if n < 0 {
				verdicts[i].Kind = []store.VerdictKind{store.Seen, store.Conflict, store.Newer, store.Busy}[-n-1]
			}
		}
		all, err := Receive(Crypt{}, marks, verdicts, messages)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			var piece []int
			for _, body := range r.Payloads {
				piece = append(piece, len(body))
			}
			pieces = append(pieces, piece)
		}
		return pieces
	}
	const half = mostReceived / 2
	for name, c := range map[string]struct {
		sizes []int
		want  [][]int
	}{
		"none":                               {nil, nil},
		"copies_are_not_written":             {[]int{-1, -2, -3, -4}, nil},
		"small_ones_together_in_their_order": {[]int{0, 10, -1, 1000}, [][]int{{0, 10, 1000}}},
		"no_more_bytes_than_one_takes":       {[]int{half, half, 1}, [][]int{{half}, {half, 1}}}, // the envelopes count too
		"one_that_is_larger_goes_alone":      {[]int{1, 3 * half, 1}, [][]int{{1}, {3 * half}, {1}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := receiveSizes(t, c.sizes); !slices.EqualFunc(got, c.want, slices.Equal[[]int]) {
				t.Errorf("pieces of %v, want %v", got, c.want)
			}
		})
	}
}

package kafka

import "testing"

func TestWhatIsMissingAndGone(t *testing.T) {
	t.Run("trap_T110_no_more_is_gone_than_is_missing", func(t *testing.T) {
		for _, c := range []struct {
			p             PartitionPosition
			missing, gone int64
		}{
			{PartitionPosition{Standing: Behind, Target: 5, Group: 10, Start: 0, End: 90}, 5, 0},
			{PartitionPosition{Standing: Behind, Target: 5, Group: 10, Start: 7, End: 90}, 5, 2},
			{PartitionPosition{Standing: Behind, Target: 5, Group: 10, Start: 50, End: 90}, 5, 5}, // the log begins behind the group
			{PartitionPosition{Standing: Ahead, Target: 5, Group: 10, Start: 7, End: 90}, 5, 2},
			{PartitionPosition{Standing: Behind, Target: -1, Group: 10, Start: 3, End: 90}, 10, 3},
			{PartitionPosition{Standing: Level, Target: 5, Group: 10, Start: 7, End: 90}, 0, 0},
			{PartitionPosition{Standing: Unknown, Target: 5, Group: 10, Start: 7, End: 90}, 0, 0},
		} {
			if m, g := c.p.Missing(), c.p.Gone(); m != c.missing || g != c.gone {
				t.Errorf("%+v: %d are missing and %d gone, want %d and %d", c.p, m, g, c.missing, c.gone)
			}
		}
	})
}

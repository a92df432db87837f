package proof

import "testing"

func TestAnOffsetThatGoesBackOrVanishesIsNoted(t *testing.T) {
	o := Offsets{highest: map[int32]int64{}}
	o.note(map[int32]int64{0: 5})
	o.note(map[int32]int64{0: 5, 1: 3})
	o.note(map[int32]int64{0: 9, 1: 3})
	if o.Backwards != 0 || o.Samples != 3 || o.Wrong() != nil {
		t.Fatalf("nothing went back: %+v", o)
	}
	o.note(map[int32]int64{0: 8, 1: 3})
	o.note(map[int32]int64{0: 8})
	if o.Backwards != 2 || len(o.Rewinds) != 2 || o.Wrong() == nil {
		t.Errorf("one offset went back and one vanished: %+v", o)
	}
}

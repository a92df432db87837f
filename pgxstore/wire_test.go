package pgxstore

import (
	"slices"
	"testing"
)

func TestStatementsArePreparedAnewAfterTwiceAsManyPipelinesEachTime(t *testing.T) {
	var at []int
	for k := new(known); k.exchanges < 2100; {
		if k.outgrown() {
			at = append(at, k.exchanges)
		}
	}
	if !slices.Equal(at, []int{256, 512, 1024, 2048}) {
		t.Errorf("at %v", at)
	}
}

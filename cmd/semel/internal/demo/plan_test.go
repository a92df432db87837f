package demo

import (
	"reflect"
	"testing"
)

func TestTheSeedDecidesTheDeliveriesAndTheCrashes(t *testing.T) {
	if !reflect.DeepEqual(newPlan(7), newPlan(7)) {
		t.Error("one seed made two plans")
	}
	one, other := newPlan(7), newPlan(8)
	if reflect.DeepEqual(one.deliveries, other.deliveries) || reflect.DeepEqual(one.crashes, other.crashes) {
		t.Error("two seeds made the same deliveries or the same crashes")
	}
}

func TestEverySeedHasCrashesAtEachPoint(t *testing.T) {
	for seed := range uint64(1000) {
		p := newPlan(seed)
		times, ids := map[payment]int{}, map[[2]string]bool{}
		for _, d := range p.deliveries {
			times[d]++
			ids[[2]string{d.Producer, d.ID}] = true
		}
		if len(times) != payments || len(ids) != payments || len(p.deliveries) != payments+payments/perCopy {
			t.Fatalf("seed %d: %d deliveries of %d payments with %d identities", seed, len(p.deliveries), len(times), len(ids))
		}
		points := map[Point]int{}
		for i, c := range p.crashes {
			points[c.Point]++
			if times[p.deliveries[c.Delivery]] != 1 {
				t.Errorf("seed %d: the crash at %d strikes a payment that was sent twice", seed, c.Delivery)
			}
			if i > 0 && c.Delivery-p.crashes[i-1].Delivery <= window {
				t.Errorf("seed %d: the crashes at %d and %d fit in one window", seed, p.crashes[i-1].Delivery, c.Delivery)
			}
		}
		if want := map[Point]int{Received: perPoint, InTransaction: perPoint, BetweenSteps: perPoint}; !reflect.DeepEqual(points, want) {
			t.Errorf("seed %d: crashes at %v", seed, points)
		}
	}
}

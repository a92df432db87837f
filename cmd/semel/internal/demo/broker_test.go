package demo

import (
	"slices"
	"testing"
)

// positions takes deliveries from the broker, not more than the parameter most, and returns their positions.
func positions(b *broker, most int) []int {
	var all []int
	for _, d := range b.nextDeliveries(most) {
		all = append(all, d.Position)
	}
	return all
}

func brokerOf(t *testing.T, deliveries int, crashes ...Crash) *broker {
	t.Helper()
	b, err := newBroker(plan{deliveries: make([]payment, deliveries), crashes: crashes})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUnackedMessagesOfADeadConsumerAreRedeliveredInOrder(t *testing.T) {
	b := brokerOf(t, 5)
	positions(b, 4)
	b.ack([]int{1})
	b.recordCrash(0)
	if got := positions(b, 9); !slices.Equal(got, []int{0, 2, 3, 4}) {
		t.Errorf("delivered %v", got)
	}
	if all, again := b.countDeliveries(); all != 8 || again != 3 || b.crashCount != 1 {
		t.Errorf("%d deliveries, %d of them again, %d crashes", all, again, b.crashCount)
	}
	b.ack([]int{0, 2, 3, 4})
	if !b.isEmpty() || b.ackedCount() != 5 {
		t.Errorf("%d of 5 are settled", b.ackedCount())
	}
}

func TestTheWindowLimitsUnackedDeliveries(t *testing.T) {
	b := brokerOf(t, 3*window)
	if n := len(positions(b, 2*window)); n != window {
		t.Errorf("took %d", n)
	}
	if got := positions(b, 1); got != nil {
		t.Errorf("the consumer got %v beyond the window", got)
	}
	b.ack([]int{3, 4})
	b.redeliver([]int{7, 3})
	if got := positions(b, window); !slices.Equal(got, []int{7, window, window + 1}) {
		t.Errorf("took %v", got)
	}
}

func TestACrashHappensOnce(t *testing.T) {
	b := brokerOf(t, 3, Crash{Delivery: 1, Point: InTransaction})
	if taken := b.nextDeliveries(3); taken[1].Crash != InTransaction || taken[0].Crash != "" {
		t.Errorf("%+v", taken)
	}
	b.recordCrash(1)
	if taken := b.nextDeliveries(3); taken[1].Crash != "" || taken[1].Before != 1 {
		t.Errorf("%+v", taken)
	}
}

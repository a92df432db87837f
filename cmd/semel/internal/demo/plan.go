package demo

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Point names a step at which a consumer's process can be killed.
type Point string

// The points.
const (
	// Received: a delivery has come, nothing has been done with it.
	Received Point = "received"
	// InTransaction: the booking is written and not committed.
	InTransaction Point = "in the transaction"
	// BetweenSteps: the first of booking and settling is done, the second is not.
	BetweenSteps Point = "between booking and settling"
)

// Crash kills a consumer's process when it passes Point after it took the
// delivery that stands at Delivery.
type Crash struct {
	Delivery int   `json:"delivery"`
	Point    Point `json:"point"`
}

// Sizes of the demonstration: enough for every kind of crash to happen several
// times, little enough to end in seconds.
const (
	payments  = 300
	accounts  = 8
	perCopy   = 10 // of so many payments the producer sends one twice
	lateness  = 20 // a copy comes after at most so many other payments
	perPoint  = 4  // crashes at each point
	maxAmount = 500
)

// window is how many unsettled deliveries the broker leaves with a consumer.
// Crashes are further apart, so that a batch never hides one from the next.
const window = 10

// plan is what the seed decides: the deliveries and the crashes.
type plan struct {
	// deliveries are in the broker's order; producers' copies are among them.
	deliveries []payment
	crashes    []Crash
}

func newPlan(seed uint64) plan {
	random := rand.New(rand.NewPCG(seed, 0))
	p := plan{}
	p.deliveries = newDeliveries(random)
	p.crashes = newCrashes(random, p.deliveries)
	return p
}

func newDeliveries(random *rand.Rand) []payment {
	type sent struct {
		at int
		payment
	}
	var all []sent
	twice := 0
	for i := range payments {
		if i%perCopy == 0 {
			twice = i + random.IntN(perCopy)
		}
		// Both producers count from 1: an id alone is no identity.
		p := payment{Producer: []string{"shop", "till"}[i%2], ID: fmt.Sprint(i/2 + 1),
			Account: fmt.Sprintf("account %d", 1+random.IntN(accounts)), Amount: 1 + random.Int64N(maxAmount)}
		all = append(all, sent{i, p})
		if i == twice {
			all = append(all, sent{i + 1 + random.IntN(lateness), p})
		}
	}
	slices.SortStableFunc(all, func(a, b sent) int { return cmp.Compare(a.at, b.at) })
	var deliveries []payment
	for _, s := range all {
		deliveries = append(deliveries, s.payment)
	}
	return deliveries
}

// newCrashes spreads the crashes evenly. Each strikes a payment that was sent
// once: of another, the producer's copy would hide what the crash did.
func newCrashes(random *rand.Rand, deliveries []payment) []Crash {
	times := map[payment]int{}
	for _, p := range deliveries {
		times[p]++
	}
	points := slices.Repeat([]Point{Received, InTransaction, BetweenSteps}, perPoint)
	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	stretch := len(deliveries) / len(points)
	var crashes []Crash
	for i, point := range points {
		var once []int
		for at := i * stretch; at < (i+1)*stretch-window; at++ {
			if times[deliveries[at]] == 1 {
				once = append(once, at)
			}
		}
		crashes = append(crashes, Crash{Delivery: once[random.IntN(len(once))], Point: point})
	}
	return crashes
}

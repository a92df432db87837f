package demo

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Point is a step at which a consumer's process can be killed.
type Point string

// The points.
const (
	// Received: the process has received the delivery and has not processed it.
	Received Point = "received"
	// InTransaction: the booking is written but not committed.
	InTransaction Point = "in the transaction"
	// BetweenSteps: of the two steps (commit the booking, ack the delivery) the consumer has finished the first one only.
	BetweenSteps Point = "between booking and settling"
)

// Crash kills a consumer's process at Point after the process has received the delivery with the index Delivery.
type Crash struct {
	Delivery int   `json:"delivery"`
	Point    Point `json:"point"`
}

// The sizes of a demonstration: large enough for each kind of crash to happen several times, and small enough to end
// within seconds.
const (
	payments  = 300
	accounts  = 8
	perCopy   = 10 // the producer sends one of so many payments twice
	lateness  = 20 // maximum number of payments between a payment and its copy
	perPoint  = 4  // crashes at each point
	maxAmount = 500
)

// window is the maximum number of unacked deliveries of a consumer. The distance between crashes is larger, so a
// batch never contains two.
const window = 10

// plan has the deliveries and crashes for a seed.
type plan struct {
	// deliveries are in the broker's order, with the copies that producers send.
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
		// Both producers count from 1, so the id alone is not an identity.
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

// newCrashes distributes the crashes evenly. Each one hits a payment that was sent once, because a copy from the
// producer would hide the effect of the crash.
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

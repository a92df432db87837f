package demo

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Point is a step at which the demo can kill a consumer's process.
type Point string

// The steps at which the demo can kill a process.
const (
	// Received means that the process has received the delivery but has not started to process the delivery.
	Received Point = "received"
	// InTransaction means that the booking is written, but the transaction is not committed.
	InTransaction Point = "in the transaction"
	// BetweenSteps means that only the first of two steps is done. The steps are the commit of the booking and
	// the ack of the delivery, in the order that the consumer has chosen.
	BetweenSteps Point = "between booking and settling"
)

// Crash is a planned crash. The process is killed at Point, after it has received the delivery with index
// Delivery.
type Crash struct {
	Delivery int   `json:"delivery"`
	Point    Point `json:"point"`
}

// The sizes of a demo. Each kind of crash happens several times, and the demo takes seconds.
const (
	payments  = 300
	accounts  = 8
	perCopy   = 10 // the producer sends one of so many payments twice
	lateness  = 20 // maximum number of payments between a payment and its copy
	perPoint  = 4  // number of crashes at each point
	maxAmount = 500
)

// window is the maximum number of unacked deliveries of a consumer. Crashes are further apart than window,
// so a batch contains at most one crash.
const window = 10

// plan has the deliveries and crashes for one seed.
type plan struct {
	// deliveries has the deliveries in the order of the broker, including the copies that producers send.
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
		// The ids of both producers start at 1, so the id alone does not identify a payment.
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

// newCrashes distributes the crashes evenly over payments that the producer sent once. A copy that the
// producer sends would hide the effect of a crash.
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

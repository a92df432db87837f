package bench

import (
	"fmt"
	"slices"
)

// Quartiles are the quartiles of measured values, interpolated between neighbouring values.
type Quartiles struct {
	Lower  float64 `json:"lower"`
	Median float64 `json:"median"`
	Upper  float64 `json:"upper"`
}

// QuartilesOf returns the quartiles of values, or the zero value if there are no values.
func QuartilesOf(values []float64) Quartiles {
	sorted := slices.Sorted(slices.Values(values))
	at := func(part float64) float64 {
		if len(sorted) == 0 {
			return 0
		}
		position := part * float64(len(sorted)-1)
		i := int(position)
		if i+1 == len(sorted) {
			return sorted[i]
		}
		return sorted[i] + (position-float64(i))*(sorted[i+1]-sorted[i])
	}
	return Quartiles{at(0.25), at(0.5), at(0.75)}
}

// Text returns the lower quartile, the median and the upper quartile in a given format, or a dash if there are no
// values.
func (q Quartiles) Text(format string) string {
	if q == (Quartiles{}) {
		return "–"
	}
	return fmt.Sprintf(format+" – **"+format+"** – "+format, q.Lower, q.Median, q.Upper)
}

// Rate returns the quartiles of an implementation's messages per second.
func (r Row) Rate(who Contestant) Quartiles {
	var rates []float64
	for _, run := range r.Runs[who] {
		rates = append(rates, run.Rate())
	}
	return QuartilesOf(rates)
}

// Ratio divides the rate of one implementation by the rate of another in each round, and returns the quartiles of these
// fractions. The result is zero if one of the implementations was not measured.
func (r Row) Ratio(one, other Contestant) Quartiles {
	var ratios []float64
	for i := range min(len(r.Runs[one]), len(r.Runs[other])) {
		ratios = append(ratios, r.Runs[one][i].Rate()/r.Runs[other][i].Rate())
	}
	return QuartilesOf(ratios)
}

// Busy returns the quartiles of the client's CPU time per message, in microseconds.
func (r Row) Busy(who Contestant) Quartiles {
	var times []float64
	for _, run := range r.Runs[who] {
		if run.Messages > 0 {
			times = append(times, float64(run.Busy.Microseconds())/float64(run.Messages))
		}
	}
	return QuartilesOf(times)
}

// Met returns the number of an implementation's deadlocks in all rounds, and the fraction of time in which the
// implementation ran its batches one at a time.
func (r Row) Met(who Contestant) (deadlocks int, serial float64) {
	var serialised, took float64
	for _, run := range r.Runs[who] {
		deadlocks += run.Deadlocks
		serialised += run.Serial.Seconds()
		took += run.Took.Seconds()
	}
	if took > 0 {
		serial = serialised / took
	}
	return deadlocks, serial
}

package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// KeptView shows the retention of a consumer.
type KeptView struct {
	Store    string `json:"store"`
	Consumer string `json:"consumer"`
	// Keep is the retention of markers and Bodies the retention of payloads, in seconds; 0 means no limit.
	Keep   float64 `json:"keep_seconds"`
	Bodies float64 `json:"bodies_seconds,omitempty"`
	// Horizon is the maximum delay of a copy, in seconds. Why explains how the horizon is calculated.
	Horizon float64 `json:"horizon_seconds,omitempty"`
	Why     string  `json:"horizon,omitempty"`
	Off     bool    `json:"off,omitempty"`
	// Progress is the time at which the consumer last recorded its progress. Held is the lane that keeps the
	// cutoff from advancing. Oldest is the time of the oldest record in the lane Held.
	Progress time.Time  `json:"progress"`
	Held     string     `json:"held_by,omitempty"`
	Oldest   *time.Time `json:"oldest,omitempty"`
	// Cutoff is the time before which markers may be removed. Low is the time before which markers were
	// removed.
	Cutoff *time.Time `json:"cutoff,omitempty"`
	Low    *time.Time `json:"low,omitempty"`
	// Behind is the time between the oldest removable marker and the cutoff, in seconds.
	Behind float64 `json:"behind_seconds"`
	// LastDay is the number of markers added in the last day, counted up to 100,000. MarkerBytes is the size
	// of a marker in bytes; 0 if unknown.
	LastDay     int64 `json:"last_day"`
	MarkerBytes int64 `json:"marker_bytes,omitempty"`
	// Days describes the daily partitions of the consumer's markers; nil without daily partitions.
	Days *DaysView `json:"days,omitempty"`
	// Stopped is why the reaper removes nothing; empty if the reaper works.
	Stopped string `json:"stopped,omitempty"`
}

// DaysView counts the daily partitions of a consumer's markers. Kept is the number of partitions, Due is the
// number of partitions that are older than the retention, and First is the day of the oldest partition.
type DaysView struct {
	Kept  int64     `json:"kept"`
	Due   int64     `json:"due"`
	First time.Time `json:"first"`
}

// NewKeptView returns the view of a consumer's retention. The parameter st is the name of the store.
func NewKeptView(st string, r *store.StoredRetention) KeptView {
	v := KeptView{Store: st, Consumer: r.Consumer, Keep: r.Keep.Seconds(), Bodies: r.Bodies.Seconds(), Horizon: r.Horizon.Seconds(), Why: r.Why, Off: r.Off,
		Progress: r.Progress.UTC(), Held: r.Held, Oldest: utcOrNil(r.Oldest), Cutoff: utcOrNil(r.Cutoff), Low: utcOrNil(r.Low), LastDay: r.LastDay, MarkerBytes: r.MarkerBytes}
	if !r.First.IsZero() {
		v.Behind = r.Cutoff.Sub(r.First).Seconds()
	}
	if r.Days.Kept > 0 {
		v.Days = &DaysView{r.Days.Kept, r.Days.Due, r.Days.First.UTC()}
	}
	switch {
	case r.Off:
		v.Stopped = "it is switched off"
	case r.Keep > 0 && r.Horizon > r.Keep:
		v.Stopped = "copies can arrive later than the retention"
	}
	return v
}

func utcOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Reaped counts, for a consumer, what one pass of the reaper removed or would remove. The reaper removes old
// markers.
type Reaped struct {
	Store    string `json:"store"`
	Consumer string `json:"consumer"`
	Markers  int64  `json:"markers"`
	Rows     int64  `json:"rows"`
	Bodies   int64  `json:"bodies"`
	// Days is the number of dropped daily partitions; nil without daily partitions. Markers does not count
	// the markers in dropped partitions.
	Days *int64 `json:"days,omitempty"`
	// Kept is the number of markers before the cutoff that are not removed, because their messages are
	// unfinished.
	Kept int64 `json:"kept"`
	// Cutoff is the time before which markers were removed; nil if no marker may be removed.
	Cutoff *time.Time `json:"cutoff,omitempty"`
	// Elsewhere reports that another process is running the reaper for this consumer.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// Stopped is why the reaper removes nothing; empty if the reaper works.
	Stopped string `json:"stopped,omitempty"`
}

// Due reports whether a pass of the reaper would remove markers, rows or payloads.
func (r Reaped) Due() bool {
	return r.Stopped == "" && !r.Elsewhere && (r.Markers+r.Rows+r.Bodies > 0 || r.Days != nil && *r.Days > 0)
}

// markersPerRead is the number of markers that one call reads.
const markersPerRead = 1000

// Reap removes a consumer's markers, rows and payloads that are older than the retention. If dry is true, Reap only
// counts. Reap calls the function told after each slice of markers. If told returns an error, Reap ends the pass. If
// the reaper is stopped, Reap returns no error.
func Reap(ctx context.Context, st string, of store.Reaper, r *store.StoredRetention, dry bool, told func(Reaped) error) (Reaped, error) {
	sum := Reaped{Store: st, Consumer: r.Consumer, Cutoff: utcOrNil(r.Cutoff)}
	if r.Days.Kept > 0 {
		sum.Days = new(int64)
	}
	if !dry && r.Keep > 0 {
		to, err := of.Advance(ctx, r.Consumer)
		if err != nil {
			return sum.stop(err)
		}
		sum.Cutoff = utcOrNil(to)
	}
	var all store.Reaped
	for over := false; !over; {
		o := store.Reaping{Consumer: r.Consumer, Most: markersPerRead, After: all.Next, DryRun: dry}
		done, err := of.Reap(ctx, o)
		if err != nil {
			return sum.stop(err)
		}
		over = all.Add(o, done)
		sum.Markers, sum.Rows, sum.Bodies, sum.Kept, sum.Elsewhere = all.Markers, all.Rows, all.Bodies, all.Kept, all.Elsewhere
		if sum.Days != nil {
			*sum.Days = all.Days
		}
		if err := told(sum); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func (r Reaped) stop(err error) (Reaped, error) {
	if errors.Is(err, semel.ErrState) {
		r.Stopped = Plain(err.Error())
		return r, nil
	}
	return r, err
}

// Remarks returns explanations of the figures, one per line.
func (v KeptView) Remarks() (lines []string) {
	switch {
	case v.Stopped != "":
		lines = append(lines, "nothing is removed: "+v.Stopped)
	case v.Keep == 0 && v.LastDay > 0 && v.MarkerBytes > 0:
		lines = append(lines, fmt.Sprintf("it grows by about %d markers a day, %d MB", v.LastDay, (v.LastDay*v.MarkerBytes+999_999)/1_000_000))
	}
	if v.Days != nil && v.Days.Due > 0 {
		lines = append(lines, fmt.Sprintf("%d days past the retention still exist, from %s: they hold unfinished messages or wait for the reaper", v.Days.Due, v.Days.First.Format(time.DateOnly)))
	}
	if v.Horizon > 0 && v.Why != "" {
		lines = append(lines, "latest copy: "+v.Why)
	}
	if v.Held != "" && v.Keep > 0 {
		lines = append(lines, fmt.Sprintf("lane %s has been behind since %s; it holds back the reaper", v.Held, v.Oldest.Format(time.RFC3339)))
	}
	return lines
}

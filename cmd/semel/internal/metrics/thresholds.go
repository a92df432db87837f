package metrics

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Thresholds are what the policy says of the alerts of one consumer.
type Thresholds struct {
	Consumer string
	// PendingAge is how old what waits may be, Parked from how many parked messages on
	// somebody is told; 0: the rule that ships stays. DuplicateSpike has few copies told of,
	// too.
	PendingAge     time.Duration
	Parked         int
	DuplicateSpike bool
}

// within puts conditions on labels into braces; nothing of none.
func within(conditions ...string) string {
	given := slices.DeleteFunc(conditions, func(c string) bool { return c == "" })
	if len(given) == 0 {
		return ""
	}
	return "{" + strings.Join(given, ",") + "}"
}

// duplicateSpike is that most of what is delivered are copies, and more than so many a second.
func duplicateSpike(which string, most float64) string {
	copies := "sum by (" + mine + ") (rate(semel_duplicates_total" + within(which) + "[10m]))"
	return fmt.Sprintf("%s > 0.5 * sum by (%s) (rate(semel_deliveries_total%s[10m])) and %s > %v", copies, mine, within(which), copies, most)
}

// parked is that at least so many messages are, but for effects that a replay suppressed: so
// it was meant.
func parked(which string, least int) string {
	return fmt.Sprintf("max by (store, consumer) (semel_store_rows%s) - max by (store, consumer) (semel_store_suppressed_effects%s) > %d", within(which, `state="PARKED"`), within(which), least-1)
}

// pendingAge is that what waits is older.
func pendingAge(which string, most time.Duration) string {
	return fmt.Sprintf("max by (store, consumer) (semel_store_oldest_seconds%s) > %v", within(which, `state=~"RECEIVED|FAILED_RETRYABLE|IN_PROGRESS"`), most.Seconds())
}

// threshold is one alert of which policies may say something: whether one does, and its rule of
// such consumers, and of all others.
type threshold struct {
	name string
	set  func(Thresholds) bool
	own  func(which string, t Thresholds) string
	rest func(which string) string
}

func thresholds() []threshold {
	return []threshold{
		{"SemelDuplicateSpike", func(t Thresholds) bool { return t.DuplicateSpike },
			func(which string, _ Thresholds) string { return duplicateSpike(which, 0) }, func(which string) string { return duplicateSpike(which, 1) }},
		{"SemelParked", func(t Thresholds) bool { return t.Parked > 0 },
			func(which string, t Thresholds) string { return parked(which, t.Parked) }, func(which string) string { return parked(which, 1) }},
		{"SemelPendingAge", func(t Thresholds) bool { return t.PendingAge > 0 },
			func(which string, t Thresholds) string { return pendingAge(which, t.PendingAge) }, func(which string) string { return pendingAge(which, 15*time.Minute) }},
	}
}

// PolicyRules are the rules that ship, with the thresholds of consumers in their places: the
// rule that ships then leaves out the consumers that have one of their own.
func PolicyRules(consumers []Thresholds) string {
	shipped := alerts()
	var own []alert
	for _, kind := range thresholds() {
		at := slices.IndexFunc(shipped, func(a alert) bool { return a.name == kind.name })
		var names []string
		for _, t := range consumers {
			if !kind.set(t) {
				continue
			}
			names = append(names, regexp.QuoteMeta(t.Consumer))
			mine := shipped[at]
			mine.expr = kind.own("consumer="+strconv.Quote(t.Consumer), t)
			mine.hold = min(mine.hold, time.Minute)
			mine.summary = strings.NewReplacer("for a quarter of an hour", "for longer than its pending_age", "messages were set aside", "as many messages as its policy says were set aside").Replace(mine.summary)
			own = append(own, mine)
		}
		if len(names) > 0 {
			shipped[at].expr = kind.rest("consumer!~" + strconv.Quote(strings.Join(names, "|")))
		}
	}
	var b strings.Builder
	b.WriteString("# Printed by semel alerts: the rules that ship, with what the policy says of its consumers. Runbooks: docs/alerts.md.\ngroups:\n")
	writeGroup(&b, "semel", shipped)
	if len(own) > 0 {
		writeGroup(&b, "semel policy", own)
	}
	return b.String()
}

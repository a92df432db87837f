package metrics

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Thresholds are the alert thresholds that the policy sets for one consumer.
type Thresholds struct {
	Consumer string
	// PendingAge is the maximum age of waiting messages. Parked is the number of parked messages at which the
	// alert fires. If PendingAge or Parked is 0, the default rule applies. DuplicateSpike lets the duplicate
	// alert also fire for few duplicates.
	PendingAge     time.Duration
	Parked         int
	DuplicateSpike bool
}

// labelConditions returns label conditions in braces, or "" if there are no conditions.
func labelConditions(conditions ...string) string {
	given := slices.DeleteFunc(conditions, func(c string) bool { return c == "" })
	if len(given) == 0 {
		return ""
	}
	return "{" + strings.Join(given, ",") + "}"
}

// duplicateSpike returns an expression that is true if more than half of the deliveries are duplicates and
// the rate of duplicates is greater than the parameter most, per second.
func duplicateSpike(which string, most float64) string {
	copies := "sum by (" + sumLabel + ") (rate(semel_duplicates_total" + labelConditions(which) + "[10m]))"
	return fmt.Sprintf("%s > 0.5 * sum by (%s) (rate(semel_deliveries_total%s[10m])) and %s > %v", copies, sumLabel, labelConditions(which), copies, most)
}

// parkedExpr returns an expression that is true if the number of parked messages is equal to or
// greater than the parameter least. Intents that a replay suppresses on purpose do not count as parked.
func parkedExpr(which string, least int) string {
	return fmt.Sprintf("max by (store, consumer) (semel_store_rows%s) - max by (store, consumer) (semel_store_suppressed_effects%s) > %d", labelConditions(which, `state="PARKED"`), labelConditions(which), least-1)
}

// pendingAge returns an expression that is true if a waiting message is older than the parameter most.
func pendingAge(which string, most time.Duration) string {
	return fmt.Sprintf("max by (store, consumer) (semel_store_oldest_seconds%s) > %v", labelConditions(which, `state=~"RECEIVED|FAILED_RETRYABLE|IN_PROGRESS"`), most.Seconds())
}

// threshold is an alert that policies can adjust. isSet reports whether a policy adjusts the
// alert. consumerExpr returns the rule for a consumer with its own threshold, and defaultExpr
// returns the rule for all other consumers.
type threshold struct {
	name         string
	isSet        func(Thresholds) bool
	consumerExpr func(which string, t Thresholds) string
	defaultExpr  func(which string) string
}

func thresholds() []threshold {
	return []threshold{
		{"SemelDuplicateSpike", func(t Thresholds) bool { return t.DuplicateSpike },
			func(which string, _ Thresholds) string { return duplicateSpike(which, 0) }, func(which string) string { return duplicateSpike(which, 1) }},
		{"SemelParked", func(t Thresholds) bool { return t.Parked > 0 },
			func(which string, t Thresholds) string { return parkedExpr(which, t.Parked) }, func(which string) string { return parkedExpr(which, 1) }},
		{"SemelPendingAge", func(t Thresholds) bool { return t.PendingAge > 0 },
			func(which string, t Thresholds) string { return pendingAge(which, t.PendingAge) }, func(which string) string { return pendingAge(which, 15*time.Minute) }},
	}
}

// PolicyRules returns all alert rules, with the consumers' own thresholds. A default rule excludes each
// consumer that has its own threshold.
func PolicyRules(consumers []Thresholds) string {
	shipped := alerts()
	var own []alert
	for _, kind := range thresholds() {
		at := slices.IndexFunc(shipped, func(a alert) bool { return a.name == kind.name })
		var names []string
		for _, t := range consumers {
			if !kind.isSet(t) {
				continue
			}
			names = append(names, regexp.QuoteMeta(t.Consumer))
			mine := shipped[at]
			mine.expr = kind.consumerExpr("consumer="+strconv.Quote(t.Consumer), t)
			mine.hold = min(mine.hold, time.Minute)
			mine.summary = strings.NewReplacer("for 15 minutes", "for longer than its pending_age", "messages are parked", "as many messages as its policy allows are parked").Replace(mine.summary)
			own = append(own, mine)
		}
		if len(names) > 0 {
			shipped[at].expr = kind.defaultExpr("consumer!~" + strconv.Quote(strings.Join(names, "|")))
		}
	}
	var b strings.Builder
	b.WriteString("# Printed by semel generate alerts: the default rules, with the thresholds of the policy. Runbooks: docs/operate/alerts.md.\ngroups:\n")
	writeGroup(&b, "semel", shipped)
	if len(own) > 0 {
		writeGroup(&b, "semel policy", own)
	}
	return b.String()
}

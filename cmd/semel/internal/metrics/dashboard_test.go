package metrics

import (
	"encoding/json"
	"strings"
)

// row is a chapter of the dashboard.
type row struct {
	title  string
	panels []panel
}

// panel is one picture, which answers one question of who is on call.
type panel struct {
	title, says, unit string
	queries           []query
}

// query is a question to Prometheus, with what a line of its answer is named.
type query struct{ expr, legend string }

// What queries of the dashboard have in common: the consumers that were chosen, and a window
// that fits what is shown.
const (
	chosen = `consumer=~"$consumer"`
	window = "[$__rate_interval]"
)

// The units of panels, as Grafana names them.
const (
	perSecond  = "ops"
	plainCount = "short"
	inSeconds  = "s"
)

// each divides a rate by consumer.
func each(name string) query {
	return query{"sum by (consumer) (rate(" + name + "{" + chosen + "}" + window + "))", "{{consumer}}"}
}

// named is a figure of a process, by consumer, with a word for the line.
func named(word, expr string) query { return query{expr, "{{consumer}} " + word} }

// dashboard is what ships, from what matters most to what explains it.
func dashboard() []row { return []row{onceRow(), waitingRow(), workRow(), healthRow()} }

func onceRow() row {
	return row{"Once", []panel{
		{"Effects", "What took effect.", perSecond, []query{each("semel_effects_total")}},
		{"Deliveries by ending", "How deliveries ended; duplicates are a success.", perSecond, []query{{"sum by (ending) (rate(semel_endings_total{" + chosen + "}" + window + "))", "{{ending}}"}}},
		{"Duplicates", "Copies of what had ended before.", perSecond, []query{each("semel_duplicates_total")}},
		{"Doubts", "In the last hour: conflicts, doubled effects that a constraint caught, and what Semel cannot keep from doubling.", plainCount, []query{
			named("conflicts", "sum by (consumer) (increase(semel_conflicts_total{"+chosen+"}[1h]))"),
			named("caught", "sum by (consumer) (increase(semel_backstops_total{"+chosen+"}[1h]))"),
			named("without a key", "sum by (consumer) (increase(semel_without_key_total{"+chosen+"}[1h]))"),
			named("not sent again", "sum by (consumer) (increase(semel_intents_not_sent_again_total{"+chosen+"}[1h]))"),
		}},
	}}
}

func waitingRow() row {
	return row{"What waits, and what is set aside", []panel{
		{"Rows in the store", "By state. RECEIVED, IN_PROGRESS, FAILED_RETRYABLE and BLOCKED go on by themselves.", plainCount, []query{
			{"max by (store, consumer, state) (semel_store_rows{" + chosen + "}) > 0 or max by (store, consumer, state) (semel_store_rows{" + chosen + `,state="RECEIVED"})`, "{{consumer}} {{state}}"}}},
		{"Oldest that waits", "The pending age, and how long a version has been missing.", inSeconds, []query{
			named("waits", "max by (store, consumer) (semel_store_oldest_seconds{"+chosen+`,state=~"RECEIVED|FAILED_RETRYABLE|IN_PROGRESS"})`),
			named("gap", "max by (store, consumer) (semel_store_gap_oldest_seconds{"+chosen+"})")}},
		{"Set aside", "Parked and dead-lettered: a person decides.", plainCount, []query{
			{"max by (store, consumer, state) (semel_store_rows{" + chosen + `,state=~"PARKED|DEAD_LETTERED"})`, "{{consumer}} {{state}}"}}},
		{"Broker lag", "Records that are not settled. With ack: after_receipt it says nothing of what waits in the store.", plainCount, []query{
			{"sum by (consumer) (semel_broker_lag_messages{" + chosen + "})", "{{consumer}}"}}},
		{"In memory", "Deliveries and claims that are not settled, by state.", plainCount, []query{
			{"sum by (state) (semel_unsettled_messages{" + chosen + "})", "{{state}}"}}},
		{"Oldest in memory", "How long ago the oldest of them came.", inSeconds, []query{
			{"max by (consumer) (semel_unsettled_oldest_seconds{" + chosen + "})", "{{consumer}}"}}},
	}}
}

// quantile is what 95 of 100 batches took at most.
func quantile(what string) string {
	return "histogram_quantile(0.95, sum by (consumer, le) (rate(semel_batch_" + what + "_seconds_bucket{" + chosen + "}" + window + ")))"
}

func workRow() row {
	return row{"Work", []panel{
		{"What a batch takes", "95 of 100 batches take at most so long: to mark with the waits for locks, to handle, to commit.", inSeconds, []query{
			named("mark", quantile("mark")), named("handle", quantile("handle")), named("commit", quantile("commit"))}},
		{"Batches by end", "Unknown: the answer to the commit was lost.", perSecond, []query{{"sum by (end) (rate(semel_batches_total{" + chosen + "}" + window + "))", "{{end}}"}}},
		{"Messages in a batch", "The mean.", plainCount, []query{
			{"sum by (consumer) (rate(semel_batch_messages_sum{" + chosen + "}" + window + ")) / sum by (consumer) (rate(semel_batch_messages_count{" + chosen + "}" + window + "))", "{{consumer}}"}}},
		{"Tried again", "Further attempts, runs that were rolled back with their batch, and batches that contended.", perSecond, []query{
			named("retries", each("semel_retries_total").expr), named("reruns", each("semel_reruns_total").expr), named("contended", each("semel_contended_total").expr)}},
		{"Claims", "Of rows of the inbox and of intents, by how they ended.", perSecond, []query{{"sum by (outcome) (rate(semel_claims_total{" + chosen + "}" + window + "))", "{{outcome}}"}}},
		{"Serialised", "1 while batches run one at a time.", plainCount, []query{{"max by (consumer) (semel_serialised{" + chosen + "})", "{{consumer}}"}}},
	}}
}

func healthRow() row {
	return row{"Health", []panel{
		{"Not ready, not alive, paused", "1 where it is so.", plainCount, []query{
			named("not ready", "1 - min by (consumer) (semel_ready{"+chosen+"})"), named("not alive", "1 - min by (consumer) (semel_alive{"+chosen+"})"), named("paused", "max by (consumer) (semel_paused{"+chosen+"})")}},
		{"Workers", "Stuck: their handlers go on after their time-outs.", plainCount, []query{{"sum by (consumer, state) (semel_workers{" + chosen + "})", "{{consumer}} {{state}}"}}},
		{"Age of the stores' figures", "What panels with rows and ages of the store show is so old.", inSeconds, []query{{"max by (store, instance) (semel_store_sample_age_seconds)", "{{store}} {{instance}}"}}},
		{"Reaper", "How much longer than their retention markers are kept, and how long ago a process told how far it is.", inSeconds, []query{
			named("lag", "max by (store, consumer) (semel_store_reaper_lag_seconds{"+chosen+"})"), named("progress", "max by (store, consumer) (semel_store_reaper_progress_seconds{"+chosen+"})")}},
		{"Tables", "Rows, and dead ones, as the server estimates them.", plainCount, []query{
			{"max by (store, table) (semel_store_estimated_rows)", "{{store}} {{table}}"}, {"max by (store, table) (semel_store_estimated_dead_rows)", "{{store}} {{table}} dead"}}},
		{"Connections", "Of each process.", plainCount, []query{{"max by (store, instance, state) (semel_store_connections)", "{{store}} {{instance}} {{state}}"}}},
	}}
}

// The sizes of panels: two in a line of 24.
const (
	panelWidth  = 12
	panelHeight = 8
)

// object is one of JSON.
type object map[string]any

// Dashboard is deploy/dashboard.json, for Grafana.
func Dashboard() string {
	source := object{"type": "prometheus", "uid": "${source}"}
	var panels []object
	y := 0
	for _, r := range dashboard() {
		panels = append(panels, object{"id": len(panels) + 1, "type": "row", "title": r.title, "collapsed": false, "panels": []object{}, "gridPos": object{"h": 1, "w": 2 * panelWidth, "x": 0, "y": y}})
		y++
		for i, p := range r.panels {
			panels = append(panels, p.object(len(panels)+1, source, object{"h": panelHeight, "w": panelWidth, "x": i % 2 * panelWidth, "y": y + i/2*panelHeight}))
		}
		y += (len(r.panels) + 1) / 2 * panelHeight
	}
	variables := []object{
		{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
		{"name": "consumer", "label": "consumer", "type": "query", "datasource": source, "query": object{"query": "label_values(semel_ready, consumer)", "refId": "consumer"},
			"refresh": 2, "includeAll": true, "allValue": ".*", "multi": true, "current": object{"text": "All", "value": "$__all"}},
	}
	var b strings.Builder
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	_ = to.Encode(object{
		"title": "Semel", "uid": "semel", "tags": []string{"semel"}, "schemaVersion": 39, "editable": true, "refresh": "30s", "timezone": "browser",
		"time": object{"from": "now-3h", "to": "now"}, "annotations": object{"list": []object{}}, "templating": object{"list": variables}, "panels": panels,
	})
	return b.String()
}

func (p panel) object(id int, source, at object) object {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend})
	}
	return object{"id": id, "type": "timeseries", "title": p.title, "description": p.says, "datasource": source, "gridPos": at, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
		"options":     object{"legend": object{"calcs": []string{}, "displayMode": "list", "placement": "bottom", "showLegend": true}, "tooltip": object{"mode": "multi", "sort": "desc"}}}
}

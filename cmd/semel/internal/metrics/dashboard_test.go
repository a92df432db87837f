package metrics

import (
	"encoding/json"
	"strings"
)

// row is a section of the dashboard.
type row struct {
	title  string
	panels []panel
}

// panel is a chart of the dashboard. Each chart answers one question of the person on call.
type panel struct {
	title, says, unit string
	queries           []query
}

// query is a Prometheus query with the legend of its lines.
type query struct{ expr, legend string }

// Parts of queries: `consumerSelector` selects consumers, and `window` is a range that fits the displayed time.
const (
	consumerSelector = `consumer=~"$consumer"`
	window           = "[$__rate_interval]"
)

// The units of panels, as Grafana names them.
const (
	perSecond  = "ops"
	plainCount = "short"
	inSeconds  = "s"
)

func rateByConsumer(name string) query {
	return query{"sum by (consumer) (rate(" + name + "{" + consumerSelector + "}" + window + "))", "{{consumer}}"}
}

// namedQuery returns a query by consumer. The legend of each line is the consumer's name, followed by
// the parameter word.
func namedQuery(word, expr string) query { return query{expr, "{{consumer}} " + word} }

// dashboard returns the sections of the dashboard, most important first.
func dashboard() []row { return []row{onceRow(), waitingRow(), workRow(), healthRow()} }

func onceRow() row {
	return row{"Once", []panel{
		{"Effects", "Committed effects.", perSecond, []query{rateByConsumer("semel_effects_total")}},
		{"Deliveries by ending", "How deliveries ended; duplicates are a success.", perSecond, []query{{"sum by (ending) (rate(semel_endings_total{" + consumerSelector + "}" + window + "))", "{{ending}}"}}},
		{"Duplicates", "Copies of messages that ended before.", perSecond, []query{rateByConsumer("semel_duplicates_total")}},
		{"Doubts", "In the last hour: conflicts, doubled effects that a constraint caught, and effects that Semel cannot protect against doubling.", plainCount, []query{
			namedQuery("conflicts", "sum by (consumer) (increase(semel_conflicts_total{"+consumerSelector+"}[1h]))"),
			namedQuery("caught", "sum by (consumer) (increase(semel_backstops_total{"+consumerSelector+"}[1h]))"),
			namedQuery("without a key", "sum by (consumer) (increase(semel_without_key_total{"+consumerSelector+"}[1h]))"),
			namedQuery("not sent again", "sum by (consumer) (increase(semel_intents_not_sent_again_total{"+consumerSelector+"}[1h]))"),
		}},
	}}
}

func waitingRow() row {
	return row{"Waiting and parked messages", []panel{
		{"Rows in the store", "By state. RECEIVED, IN_PROGRESS, FAILED_RETRYABLE and BLOCKED need no operator.", plainCount, []query{
			{"max by (store, consumer, state) (semel_store_rows{" + consumerSelector + "}) > 0 or max by (store, consumer, state) (semel_store_rows{" + consumerSelector + `,state="RECEIVED"})`, "{{consumer}} {{state}}"}}},
		{"Oldest waiting message", "The pending age, and the time for which a version has been missing.", inSeconds, []query{
			namedQuery("waits", "max by (store, consumer) (semel_store_oldest_seconds{"+consumerSelector+`,state=~"RECEIVED|FAILED_RETRYABLE|IN_PROGRESS"})`),
			namedQuery("gap", "max by (store, consumer) (semel_store_gap_oldest_seconds{"+consumerSelector+"})")}},
		{"Parked and dead-lettered", "An operator decides about these messages.", plainCount, []query{
			{"max by (store, consumer, state) (semel_store_rows{" + consumerSelector + `,state=~"PARKED|DEAD_LETTERED"})`, "{{consumer}} {{state}}"}}},
		{"Broker lag", "Records that are not acked. With ack: after_receipt, messages that wait in the store are not included.", plainCount, []query{
			{"sum by (consumer) (semel_broker_lag_messages{" + consumerSelector + "})", "{{consumer}}"}}},
		{"In memory", "Deliveries and claims in memory, by state.", plainCount, []query{
			{"sum by (state) (semel_unsettled_messages{" + consumerSelector + "})", "{{state}}"}}},
		{"Oldest in memory", "Age of the oldest delivery or claim in memory.", inSeconds, []query{
			{"max by (consumer) (semel_unsettled_oldest_seconds{" + consumerSelector + "})", "{{consumer}}"}}},
	}}
}

// quantile returns a query for the 95th percentile of a duration of batches.
func quantile(what string) string {
	return "histogram_quantile(0.95, sum by (consumer, le) (rate(semel_batch_" + what + "_seconds_bucket{" + consumerSelector + "}" + window + ")))"
}

func workRow() row {
	return row{"Work", []panel{
		{"Time of a batch", "95th percentile of the times to write markers (with waits for locks), to handle, and to commit.", inSeconds, []query{
			namedQuery("mark", quantile("mark")), namedQuery("handle", quantile("handle")), namedQuery("commit", quantile("commit"))}},
		{"Batches by end", "Unknown: the answer to the commit was lost.", perSecond, []query{{"sum by (end) (rate(semel_batches_total{" + consumerSelector + "}" + window + "))", "{{end}}"}}},
		{"Messages in a batch", "Mean.", plainCount, []query{
			{"sum by (consumer) (rate(semel_batch_messages_sum{" + consumerSelector + "}" + window + ")) / sum by (consumer) (rate(semel_batch_messages_count{" + consumerSelector + "}" + window + "))", "{{consumer}}"}}},
		{"Repeated work", "Further attempts, runs that were rolled back with their batch, and batches that contended.", perSecond, []query{
			namedQuery("retries", rateByConsumer("semel_retries_total").expr), namedQuery("reruns", rateByConsumer("semel_reruns_total").expr), namedQuery("contended", rateByConsumer("semel_contended_total").expr)}},
		{"Claims", "Claims of inbox rows and intents, by outcome.", perSecond, []query{{"sum by (outcome) (rate(semel_claims_total{" + consumerSelector + "}" + window + "))", "{{outcome}}"}}},
		{"Serialised", "1 while batches run one at a time.", plainCount, []query{{"max by (consumer) (semel_serialised{" + consumerSelector + "})", "{{consumer}}"}}},
	}}
}

func healthRow() row {
	return row{"Health", []panel{
		{"Not ready, not alive, paused", "1 if true.", plainCount, []query{
			namedQuery("not ready", "1 - min by (consumer) (semel_ready{"+consumerSelector+"})"), namedQuery("not alive", "1 - min by (consumer) (semel_alive{"+consumerSelector+"})"), namedQuery("paused", "max by (consumer) (semel_paused{"+consumerSelector+"})")}},
		{"Workers", "Stuck: the handler is still running after its timeout.", plainCount, []query{{"sum by (consumer, state) (semel_workers{" + consumerSelector + "})", "{{consumer}} {{state}}"}}},
		{"Age of store samples", "Age of the values in the panels about stores.", inSeconds, []query{{"max by (store, instance) (semel_store_sample_age_seconds)", "{{store}} {{instance}}"}}},
		{"Reaper", "Lag: time by which markers exceed their retention. Progress: time since a process reported its progress.", inSeconds, []query{
			namedQuery("lag", "max by (store, consumer) (semel_store_reaper_lag_seconds{"+consumerSelector+"})"), namedQuery("progress", "max by (store, consumer) (semel_store_reaper_progress_seconds{"+consumerSelector+"})")}},
		{"Tables", "Rows and dead rows, by the server's estimate.", plainCount, []query{
			{"max by (store, table) (semel_store_estimated_rows)", "{{store}} {{table}}"}, {"max by (store, table) (semel_store_estimated_dead_rows)", "{{store}} {{table}} dead"}}},
		{"Connections", "By process.", plainCount, []query{{"max by (store, instance, state) (semel_store_connections)", "{{store}} {{instance}} {{state}}"}}},
	}}
}

// The sizes of panels. Grafana divides a line into 24 columns.
const (
	panelWidth  = 12
	panelHeight = 8
)

type object map[string]any

// Dashboard returns the text of deploy/dashboard.json, for Grafana.
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

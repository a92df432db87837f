// Package brokerheader lists the headers that brokers, clients and tracers set, whose values differ between copies
// of one message.
package brokerheader

import "strings"

// names contains headers, in lower case, that a broker, a client library or a tracer sets for a delivery or
// an attempt.
var names = [...]string{
	"x-death", "x-first-death-exchange", "x-first-death-queue", "x-first-death-reason",
	"x-last-death-exchange", "x-last-death-queue", "x-last-death-reason",
	"x-delivery-count", "x-acquired-count", "x-stream-offset",
	"nats-sequence", "nats-last-sequence", "nats-time-stamp", "nats-num-pending", "nats-stream", "nats-subject",
	"approximatereceivecount", "approximatefirstreceivetimestamp", "senttimestamp", "sequencenumber",
	"kafka_offset", "kafka_receivedpartitionid", "kafka_receivedtimestamp", "kafka_receivedtopic",
	"traceparent", "tracestate",
	"semel-reason", "semel-error", "semel-attempts", // headers of a message that was dead-lettered twice
	"retry_topic-attempts", "retry_topic-backoff-timestamp", // headers of a retry topic of Spring Kafka
}

// Set reports whether the value of this header differs between copies of a message.
func Set(name string) bool {
	for _, known := range names {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}

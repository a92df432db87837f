package policy

import (
	"fmt"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// inbox judges what needs the store's inbox, and what needs none.
func (r rules) inbox() {
	c := r.consumer
	if !r.ok("strategy", "ack", "inbox", "alerts") {
		return
	}
	if !c.Strategy.Inbox && !c.Strategy.Lease && r.set("ack") {
		r.refuse("ack", "only strategy inbox keeps messages before their effect", "remove it, or write strategy: inbox")
	}
	switch {
	case c.Alerts.PendingAge != 0, r.keyed():
	case c.Strategy.Lease:
		r.refuse("strategy", "with lease the broker is settled when a message is received; nobody sees there how much waits, and no alert says how old it may become", "write alerts: {pending_age: 60s}")
	case c.AckPoint != 0:
		r.refuse("ack", "once the broker is settled nobody sees there how much waits, and no alert says how old it may become",
			"write alerts: {pending_age: 60s}, or ack: after_effect")
	}
	if !c.Strategy.Marks() && r.set("inbox") {
		r.refuse("inbox", noInbox, "remove it")
	}
	for _, alert := range []string{"alerts.pending_age", "alerts.parked"} {
		if !c.Strategy.Marks() && r.set(alert) {
			r.refuse(alert, noInbox, "remove it")
		}
	}
}

// keys warns of lanes by key where nothing keeps the order of keys.
func (r rules) keys(s *Source) {
	c := r.consumer
	if c.Lanes != consumer.LanesKey || !r.ok("lanes") {
		return
	}
	if r.ok("ack", "on_parked") && c.AckPoint == consumer.AckAfterReceipt && !r.set("version") && c.OnParked == consumer.OnParkedSkip {
		r.warn("on_parked", "messages are received in order, and what is worked on from the inbox keeps none with skip", "write on_parked: block, or let version keep the order")
	}
	if s.once() {
		r.refuse("lanes", "webhooks have no key, so that no order would be kept", "write lanes: none, or let version keep the order")
	}
	if s != nil && s.File != nil && r.sound("sources."+s.Name+".file.format") && s.File.Format != "envelope" {
		r.refuse("lanes", fmt.Sprintf("source %s has the format %s, whose lines have no key, so that no order would be kept", s.Name, s.File.Format),
			"write lanes: partition, or format: envelope at the source")
	}
}

// blocks judges what stands beside followers that wait.
func (r rules) blocks() {
	c := r.consumer
	if c.OnParked != consumer.OnParkedBlock || !r.ok("on_parked", "lanes", "strategy") {
		return
	}
	switch {
	case c.Lanes == consumer.LanesNone:
		r.refuse("on_parked", "lanes: none keeps no order that a message could wait for", "write lanes: key, or remove it")
	case !c.Strategy.Marks():
		r.refuse("on_parked", noInbox, "remove it, or write strategy: marker")
	case r.set("version"):
		r.refuse("on_parked", "a version that is parked keeps back the later ones of its stream, and no others, by itself", "remove it")
	}
}

// noInbox is why nothing of the consumer waits in its store.
const noInbox = "this strategy writes no marker, and only what has one can wait in the store"

// longWaits refuses waits that nothing could keep.
func (r rules) longWaits() {
	c := r.consumer
	if c.Retry.MaxDelay > c.MaxInMemoryWait && !c.Strategy.Marks() {
		r.refuse("retry.max_delay", fmt.Sprintf("a wait of %s is longer than max_in_memory_wait, %s, and cannot be kept: %s", legible.Span(c.Retry.MaxDelay), legible.Span(c.MaxInMemoryWait), noInbox),
			fmt.Sprintf("write at most %s, or a longer max_in_memory_wait", legible.Span(c.MaxInMemoryWait)))
	}
}

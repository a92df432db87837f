package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/webhook"
)

// webhookRules checks the combinations of one webhook source's keys.
type webhookRules struct {
	rulePath
	hook *Webhook
}

func (r webhookRules) check() {
	w := r.hook
	r.refuseIf(r.isValid("in_hand", "max_body") && w.InHand.Bytes < w.MaxBody, "in_hand.bytes", "it is smaller than one body of max_body", "raise it to max_body at least, or lower max_body")
	r.warnIf(r.isValid("listen", "tls") && w.TLS == nil && !w.isLocal(), "tls", "requests are sent in plain text, because there is no tls", "write tls: {cert: FILE, key: FILE}, or listen on 127.0.0.1 behind a proxy with TLS")
	if r.isValid("scheme", "hmac") {
		r.checkScheme()
	}
}

func (r webhookRules) checkScheme() {
	w := r.hook
	if r.refuseIf(w.Scheme == "hmac" && w.HMAC == nil, "scheme", "the signature is not described", "add hmac: {header: NAME, …}") ||
		r.refuseIf(w.Scheme != "hmac" && w.HMAC != nil, "hmac", "scheme "+w.Scheme+" already defines the signature", "remove it, or write scheme: hmac") {
		return
	}
	scheme, err := w.Signed()
	if err != nil {
		r.refuse("hmac", withoutPackage(err), "correct it; docs/guides/webhooks.md has examples")
		return
	}
	if r.refuseIf(r.isValid("tolerance") && w.Tolerance > 0 && !scheme.Timed(), "tolerance", "scheme "+w.Scheme+" signs no time, so there is no tolerance", "remove it") {
		return
	}
	if !r.isValid("secret", "tolerance") {
		return
	}
	if _, err := webhook.NewVerifier(scheme, w.Secrets, w.Tolerance); err != nil {
		r.refuse("secret", withoutPackage(err), "set the environment variable to the secret that the provider shows for this endpoint")
		return
	}
	if !r.isValid("unsigned", "in_hand", "max_body", "wait", "repeats") || w.InHand.Bytes < w.MaxBody {
		return
	}
	config, _ := w.Config("source")
	if _, err := webhook.New(config); err != nil {
		reason, remedy := split(errors.New(withoutPackage(err)), "correct it")
		r.refuse("unsigned", reason, remedy)
	}
}

// withoutPackage removes the package name from an error text.
func withoutPackage(err error) string { return strings.TrimPrefix(err.Error(), "webhook: ") }

// checkWebhooks checks that only one consumer reads each webhook source. Sources at the same address must
// also agree on the settings of the server.
func (p *Policy) checkWebhooks(d *shape.Decoder) {
	readers := map[string]string{}
	for _, c := range p.Consumers {
		s := p.Source(c.From)
		if s == nil || s.Webhook == nil {
			continue
		}
		if other := readers[s.Name]; other != "" {
			d.FaultAt("consumers."+c.Name+".from", fmt.Sprintf("consumer %s also receives the webhooks of source %s, but a request reaches only one of them", other, s.Name),
				"use one source for each, or let the handlers of one consumer write intents for the other")
		}
		readers[s.Name] = c.Name
	}
	for i, s := range p.Sources {
		for _, before := range p.Sources[:i] {
			if s.Webhook != nil && before.Webhook != nil && s.Webhook.Listen == before.Webhook.Listen && d.Sound("sources."+s.Name+".webhook") {
				s.Webhook.compareShared(before.Webhook, before.Name, func(key, reason, remedy string) { d.FaultAt("sources."+s.Name+".webhook."+key, reason, remedy) })
			}
		}
	}
}

// compareShared reports settings that differ although two sources share an address.
func (w *Webhook) compareShared(other *Webhook, name string, refuse func(key, reason, remedy string)) {
	switch {
	case w.Path == other.Path:
		refuse("path", "source "+name+" has the same address and path", "write another path, or another address")
	case w.Connections != other.Connections:
		refuse("connections", "source "+name+" has another value for the same address", "write the same in both")
	case (w.TLS == nil) != (other.TLS == nil) || w.TLS != nil && *w.TLS != *other.TLS:
		refuse("tls", "source "+name+" has another value for the same address", "write the same in both")
	}
}

func (r rules) checkWebhookSource(s *Source) {
	c := r.consumer
	if s.deliversOnce() && !r.isSet("lanes") && c.OnParked != consumer.OnParkedBlock {
		c.Lanes = consumer.LanesNone // with one lane for the whole endpoint, one waiting event would block all other events
	}
	if !s.deliversOnce() || !r.isValid("strategy", "ack") {
		return
	}
	switch {
	case c.Strategy.Lease: // strategy lease also stores messages first
	case r.refuseIf(!c.Strategy.Inbox, "strategy", "providers wait for seconds and stop repeating after days, so a webhook must be stored before it is answered, independently of its handler", "write strategy: inbox, ack: after_receipt and alerts: {pending_age: 60s}"):
	case r.refuseIf(!c.AckOnReceipt, "ack", "providers wait for seconds, and would have to wait here for the handler and its retries", "write ack: after_receipt and alerts: {pending_age: 60s}"):
	}
	at := "sources." + s.Name + ".webhook"
	scheme, err := s.Webhook.Signed()
	if err != nil || !r.Sound(at) || !r.isValid("identity") {
		return
	}
	for _, text := range append(slices.Clone(c.Identity.ID), c.Identity.Source) {
		reason := s.Webhook.missingReason(scheme, text)
		r.refuseIf(reason != "", "identity", reason, remedyOf(s.Webhook))
	}
}

// missingReason returns why requests of the source cannot contain the value that an identity selector
// needs, or "" if requests can contain the value.
func (w *Webhook) missingReason(scheme webhook.Scheme, selector string) string {
	name, isHeader := strings.CutPrefix(selector, "header:")
	switch {
	case selector == "id" || selector == "source" || selector == "key" || selector == "subject":
		return fmt.Sprintf("webhooks only have a %s in their body", selector)
	case isHeader && !scheme.Signs(strings.TrimSuffix(name, "?")) && !w.isUnsigned(strings.TrimSuffix(name, "?")):
		return fmt.Sprintf("scheme %s does not sign the header %s, and messages contain only signed headers", w.Scheme, name)
	}
	return ""
}

// isUnsigned reports whether the policy declares the header as unsigned.
func (w *Webhook) isUnsigned(name string) bool {
	return slices.ContainsFunc(w.Unsigned.Headers, func(h string) bool { return strings.EqualFold(h, name) })
}

// remedyOf returns the identity that a user should write in the policy for a signature scheme.
func remedyOf(w *Webhook) string {
	switch w.Scheme {
	case "standard_webhooks":
		return "write identity: {id: header:webhook-id}"
	case "stripe":
		return "write identity: {id: body:/id}"
	}
	return `name a field of the body, or declare the header at the source: unsigned: {headers: [NAME], because: "…"}`
}

// UnsignedIdentity returns the unsigned headers in the consumer's identity, and the user's reason for
// accepting unsigned headers.
func (p *Policy) UnsignedIdentity(c *Consumer) (headers []string, because string) {
	s := p.Source(c.From)
	if !s.deliversOnce() {
		return nil, ""
	}
	for _, text := range append(slices.Clone(c.Identity.ID), c.Identity.Source) {
		if name, is := strings.CutPrefix(text, "header:"); is && s.Webhook.isUnsigned(strings.TrimSuffix(name, "?")) {
			headers = append(headers, strings.TrimSuffix(name, "?"))
		}
	}
	return headers, s.Webhook.Unsigned.Because
}

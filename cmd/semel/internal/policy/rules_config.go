package policy

import (
	"errors"
	"strings"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/source"
)

// configFault is a fault that package consumer has found in a Config.
type configFault interface {
	// Settings returns the fields that the rule reads. The first field has the fault.
	Settings() []string
	// In returns the text with other names for the fields and constants.
	In(names *strings.Replacer) string
}

// configError returns the error of the constructor in package consumer. The constructor reports all faults of the
// configuration before it reports that there is no store.
func (r rules) configError() (err error) {
	c, config := r.consumer, r.consumer.Config()
	if !c.Sends() {
		config.Source = struct{ source.Source }{}
	}
	switch h := c.Handler; {
	case r.usesKeyStore():
		config.Strategy, config.AckOnReceipt, config.Retention = consumer.StrategyMarker, false, consumer.RetentionPolicy{}
		_, err = consumer.NewKeyed(nil, consumer.KeyPolicy{Keep: c.Retention.Keep, Delay: c.Retention.Delay}, nil, config)
	case h.HTTP != nil && h.HTTP.Effects != nil:
		_, err = consumer.NewCalling[struct{}, struct{}](nil, nil, nil, config)
	case c.Strategy.Lease:
		_, err = consumer.NewLeased[struct{}](nil, nil, config)
	case h.SQL != nil && h.SQL.Steps != nil && !r.Faulty(r.path+".handler.sql"):
		steps := make([]consumer.Step[struct{}], len(h.SQL.Steps))
		for i, s := range h.SQL.Steps {
			steps[i].Name = s.Name
		}
		_, err = consumer.NewSteps(nil, steps, config)
	default:
		_, err = consumer.New[struct{}](nil, nil, config)
	}
	return err
}

// report reports the faults in err at the keys of the policy. A fault is not reported if one of its keys already has a
// fault.
func (r rules) report(err error) {
	switch err := err.(type) {
	case configFault:
		names := policyNames()
		keys := strings.Fields(names.Replace(strings.Join(err.Settings(), " ")))
		if r.isValid(keys...) {
			reason, remedy := split(errors.New(err.In(names)), "correct it")
			r.refuse(keys[0], reason, remedy)
		}
	case interface{ Unwrap() []error }:
		for _, one := range err.Unwrap() {
			r.report(one)
		}
	case interface{ Unwrap() error }:
		r.report(err.Unwrap())
	}
}

// policyNames replaces the names of package consumer by the words of a policy.
func policyNames() *strings.Replacer {
	return strings.NewReplacer(
		`identity.CloudEvents() or identity.By("header:message-id")`, `identity: {id: "header:ce-id", source: "header:ce-source"}`,
		"is set and Owner is empty", "there is one handler for all types", "set Owner", "write handler: {types: …}",
		"Strategy: StrategyInbox and AckOnReceipt: true", "strategy: inbox, ack: after_receipt and alerts: {pending_age: 60s}",
		"AckOnReceipt: true", "ack: after_receipt and alerts: {pending_age: 60s}",
		"those of NewCalling with StrategyMarker do", "responses do",
		"use StrategyInbox while", "write strategy: lease and alerts: {pending_age: 60s} while",
		"with NewKeyed there is no inbox", "Redis has no inbox", "it is missing", "this key is missing", "what Identity is now", "the current identity",
		"identity.FingerprintBody()", "body", "StrategyMarker", "marker", "LanesNone", "none", "LanesKey", "key", "OnParkedSkip", "skip",
		"OnFilteredSkip or OnFilteredDeadLetter", "skip or dead_letter", "ActionHalt", "halt", "ActionKeepFirst", "keep_first",
		"ActionDeadLetter", "dead_letter, with dead_letter: {…} at the consumer",

		"PreviousIdentity", "identity.previous", "Identity", "identity", "Fingerprint", "fingerprint", "Version.By", "version", "Version", "version",
		"Type", "type", "Filter", "filter", "Exclusive", "exclusive", "Owner", "handler", "NaturalReason", "strategy", "Strategy", "strategy",
		"OnConflict", "on_conflict", "OnBadIdentity", "on_bad_identity", "OnFiltered", "on_filtered", "OnParked", "on_parked", "ReEmitIntents", "on_duplicate",
		"Lanes", "lanes", "Timeout", "timeout", "MaxInMemoryWait", "max_in_memory_wait", "AckOnReceipt", "ack", "Provider.Window", "handler.http.window",
		"KeyPolicy.Keep", "retention", "Canary", "canary", "Inbox.Lease", "inbox.lease", "Handler", "handler", "OnDuplicate", "on_duplicate",
		"Retry.InitialDelay", "retry.initial_delay", "Retry.MaxDelay", "retry.max_delay", "Retry.OnExhausted", "retry.on_exhausted",
		"Retry.BreakerThreshold", "retry.breaker_threshold", "Retry.DisableBreaker", "retry.disable_breaker",
		"Retention.Bodies", "retention.bodies", "Retention.DailyPartitions", "retention.daily_partitions", "Retention.Keep", "retention.keep", "Retention", "retention",
		"Steps", "handler.sql.steps", "].Name", "].name")
}

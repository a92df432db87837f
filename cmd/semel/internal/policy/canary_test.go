package policy

import "testing"

func acceptedCanaries() []policyCase {
	return []policyCase{
		{name: "canary reruns", edits: inConsumer("canary: 1/1000")},
		{name: "canary reruns of every message", edits: inConsumer("canary: 1/1")},
		{name: "canary reruns of a share in the environment", edits: inConsumer(`canary: "1/${WORKERS}"`)},
		{name: "canary reruns behind a receipt", edits: append([]string{"strategy: marker", "strategy: inbox"},
			inConsumer("canary: 1/1000", "ack: after_receipt", "alerts: {pending_age: 1h}")...)},
		{name: "canary reruns of steps", edits: withSteps(inboxStrategy+"\n    canary: 1/1000", debit, note)},
	}
}

func refusedCanaries() []policyCase {
	return []policyCase{
		{name: "a canary that is a number", edits: inConsumer("canary: 1000"), shape: true},
		{name: "a canary of no message", edits: inConsumer("canary: 1/0"), shape: true},
		{name: "a canary of several messages", edits: inConsumer("canary: 2/1000"), shape: true},
		{name: "a canary without a number", edits: inConsumer("canary: 1/"), shape: true},
		{name: "a canary that never comes", edits: inConsumer("canary: 1/1000000001")},
		{name: "a canary without a marker", edits: append([]string{"strategy: marker", "strategy: {natural: {order: irrelevant}}"}, inConsumer("canary: 1/1000")...)},
		{name: "a canary of a business key", edits: append([]string{"strategy: marker", "strategy: {business_key: {constraint: payments.id}}"}, inConsumer("canary: 1/1000")...)},
		{name: "a canary of calls", edits: withValidHTTP("canary: 1/1000")},
	}
}

func TestTheShareOfCanaryReruns(t *testing.T) {
	t.Run("L7b_the_denominator_is_the_setting_of_the_consumer", func(t *testing.T) {
		for written, want := range map[string]int{"1/1": 1, "1/1000": 1000, `"1/${WORKERS}"`: 4} {
			p, faults := parse(policyCase{edits: inConsumer("canary: " + written)})
			if p == nil || p.Consumers[0].Config().Canary != want {
				t.Errorf("%s: %s", written, faultLines(faults))
			}
		}
	})
	t.Run("L7b_nothing_runs_twice_without_the_key", func(t *testing.T) {
		if p, _ := parse(policyCase{}); p == nil || p.Consumers[0].Config().Canary != 0 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("L7b_what_a_rollback_does_not_undo_is_refused", func(t *testing.T) {
		wantFault(t, withValidHTTP("canary: 1/1000"), "consumers.billing.canary: it runs handlers twice, but these handlers call other systems", "; remove it")
		wantFault(t, append([]string{"strategy: marker", "strategy: {natural: {order: irrelevant}}"}, inConsumer("canary: 1/1000")...),
			"consumers.billing.canary: it runs handlers twice, but with the strategy natural no marker protects the effect; remove it, or write strategy: marker")
	})
}

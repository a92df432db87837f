package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

func acceptedReplays() []policyCase {
	return []policyCase{
		{name: "replays with all their keys", edits: inConsumer("retention: 30d", "replay: {allowed: true, effects: real, max_age: 30d}")},
		{name: "no replays", edits: inConsumer("replay: {allowed: false}")},
		{name: "a replay whose endpoint looks", edits: withValidHTTP("replay: {allowed: true, looks: true}")},
		{name: "a replay that calls out", edits: withValidHTTP("replay: {allowed: true, effects: real}")},
		{name: "a replay that nothing looks at", edits: inConsumer("replay: {allowed: true, looks: true}"), want: "14:36: warning: consumers.billing.replay.looks: this consumer calls no endpoint that could check; remove it"},
		{name: "a replay that is not allowed, with effects", edits: inConsumer("replay: {effects: real}"), want: "14:13: warning: consumers.billing.replay: replays are not allowed, so this has no effect; add allowed: true, or remove it"},
		{name: "a replay with effects that is looked at", edits: withValidHTTP("replay: {allowed: true, effects: real, looks: true}"), want: "14:51: warning: consumers.billing.replay.looks: effects are allowed anyway; remove it, or write effects: none"},
	}
}

func refusedReplays() []policyCase {
	return []policyCase{
		{name: "a replay that calls out without effects", edits: withValidHTTP("replay: {allowed: true}")},
		{name: "a replay of messages that nobody recognises", edits: inConsumer("retention: 30d", "replay: {allowed: true, max_age: 90d}")},
		{name: "the age of what has no time", edits: append(inConsumer("replay: {allowed: true, max_age: 90d}"), "format: envelope", "format: json")},
		{name: "a replay in other words", edits: inConsumer("replay: {allowed: true, effects: some}"), shape: true},
		{name: "a replay in a word", edits: inConsumer("replay: yes"), shape: true},
	}
}

func TestAPolicySaysWhetherItsMessagesMayBeReplayed(t *testing.T) {
	may := func(t *testing.T, edits []string) (*Consumer, string) {
		t.Helper()
		p, faults := parse(policyCase{edits: edits})
		if p == nil {
			t.Fatal(faultLines(faults))
		}
		if f := p.MayReplay(p.Consumers[0]); f != nil {
			return p.Consumers[0], f.String()
		}
		return p.Consumers[0], ""
	}
	for _, k := range effectKinds() {
		t.Run("K2a_G1_"+string(k.kind), func(t *testing.T) {
			edits := ofKind(k.kind)
			if k.unsuitableGuards[byMarker] != "" {
				edits = append(edits, withValidHTTP()...)
			}
			c, why := may(t, edits)
			if allowed := k.kind == Projection || k.kind == Cache || k.kind == AuditCopy; c.Replay.Allowed != allowed || c.Replay.Effects || (why == "") != allowed {
				t.Errorf("%+v, %q", c.Replay, why)
			}
			if why != "" && (!strings.Contains(why, "replay.allowed: an effect of the kind "+string(k.kind)) || !strings.Contains(why, "it is done twice")) {
				t.Errorf("the refusal says %q", why)
			}
		})
	}
	t.Run("G1_a_refusal_names_its_rule", func(t *testing.T) {
		for edit, want := range map[string]string{"replay: {allowed: false}": "14:23: consumers.billing.replay.allowed: it is false", "workers: 3": "consumers.billing.replay.allowed: without this key, replays are only allowed for an effect of the kind"} {
			if _, why := may(t, inConsumer(edit)); !strings.Contains(why, want) {
				t.Errorf("%s: %q", edit, why)
			}
		}
	})
	t.Run("G1_what_calls_somebody_is_not_replayed_unless_it_is_written", func(t *testing.T) {
		c, why := may(t, append(ofKind(Cache), withValidHTTP()...))
		if c.Replay.Allowed || !strings.Contains(why, "a consumer that calls another system is only replayed if this key is set") {
			t.Errorf("%+v, %q", c.Replay, why)
		}
	})
	t.Run("trap_20_H4_what_is_older_than_the_retention_is_not_replayed", func(t *testing.T) {
		c, _ := may(t, inConsumer("retention: 30d", "replay: {allowed: true}"))
		now := time.Now()
		if got := c.Replay.Oldest(now); !got.Equal(now.Add(-30 * shape.Day)) {
			t.Errorf("the oldest is of %v", got)
		}
		wantFault(t, inConsumer("retention: 30d", "replay: {allowed: true, max_age: 90d}"),
			"consumers.billing.replay.max_age: it is 90d, but markers are kept for 30d (retention)", "write at most 30d")
		if c, _ := may(t, inConsumer("replay: {allowed: true}")); !c.Replay.Oldest(now).IsZero() {
			t.Error("without a retention something is too old")
		}
	})
	t.Run("G1_an_outside_call_may_not_say_that_it_has_no_effects", func(t *testing.T) {
		wantFault(t, withValidHTTP("replay: {allowed: true, effects: none}"), "consumers.billing.replay.effects: none forbids external effects")
	})
}

// rebuilt returns the edits that replace the statement of the policy base with a statement that has the
// parameter :generation, and that add lines to the consumer.
func rebuilt(more ...string) []string {
	return append(inConsumer(append([]string{"effect: {kind: projection, says: nothing changes}"}, more...)...),
		"- update accounts set balance = balance + :amount where id = :account",
		"- insert into balances (generation, account, amount) values (:generation, :account, :amount)")
}

func TestAPolicySaysWhetherAConsumerMayBeRebuilt(t *testing.T) {
	intents := append(rebuilt(), "\n          - insert", " [\"insert", ":amount)\n", ":amount)\"]\n        intents: [{to: mailer, purpose: note}]\n"+`  mailer:
    store: shop
    strategy: lease
    alerts: {pending_age: 1m}
    handler: {http: {url: "https://mail.example/send"}}
`)
	for name, c := range map[string]struct {
		edits []string
		want  string
	}{
		"G2_with_a_target_of_its_own":   {rebuilt(), ""},
		"G2_not_into_the_live_rows":     {inConsumer("effect: {kind: projection, says: nothing changes}"), "consumers.billing.handler: a rebuild needs its own target"},
		"G2_not_with_effects_elsewhere": {rebuilt("replay: {allowed: true, effects: real}"), "consumers.billing.replay.effects: a rebuild has no external effects"},
		"G2_not_with_intents":           {intents, "consumers.billing.handler: this consumer writes intents"},
		"G1_not_what_is_not_replayed":   {rebuilt("replay: {allowed: false}"), "consumers.billing.replay.allowed: it is false"},
	} {
		t.Run(name, func(t *testing.T) {
			p, faults := parse(policyCase{edits: c.edits})
			if p == nil {
				t.Fatal(faultLines(faults))
			}
			f := p.MayRebuild(p.Consumers[0])
			if (f == nil) != (c.want == "") || f != nil && !strings.Contains(f.String(), c.want) {
				t.Errorf("refused: %v, want %q", f, c.want)
			}
		})
	}
}

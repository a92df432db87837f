package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/versions"
)

// versionKeys has the version keys without a default.
const versionKeys = `stream: "body:/order", number: "body:/version"`

// withVersion returns the edits that add versions to the consumer of the policy base.
func withVersion(further string, lines ...string) []string {
	return inConsumer(append([]string{"version: {" + versionKeys + further + "}"}, lines...)...)
}

func acceptedVersions() []policyCase {
	return []policyCase{
		{name: "versions", edits: withVersion("")},
		{name: "every key of versions", edits: withVersion(", start: 7, on_gap: park, gap_deadline: 8760h, gap_cap: 1, missing: halt")},
		{name: "versions of a composite in headers", edits: inConsumer(`version: {stream: [type, "header:order"], number: "header:version"}`)},
		{name: "versions that begin anywhere", edits: withVersion(", start: first_seen"),
			want: "14:70: warning: consumers.billing.version.start: a version that arrives later and is smaller than the first one is discarded; write the first version of streams, if the source has the beginning of every stream"},
		{name: "versions behind a receipt, by key", edits: append(withVersion("", "lanes: key", "ack: after_receipt", "alerts: {pending_age: 1h}"), "strategy: marker", "strategy: inbox")},
		{name: "versions beside a business key", edits: append(withVersion(""), "strategy: marker", "strategy: {marker: true, business_key: {constraint: payments.id}}")},
		{name: "versions that begin as the environment says", edits: withVersion(`, start: "${WORKERS}"`)},
	}
}

func refusedVersions() []policyCase {
	return []policyCase{
		{name: "versions without their keys", edits: inConsumer("version: {start: 1}"), shape: true},
		{name: "versions that are a word", edits: inConsumer("version: 2"), shape: true},
		{name: "versions with a key that is unknown", edits: withVersion(", gap: 1m"), shape: true},
		{name: "versions with every value wrong", edits: inConsumer(`version: {stream: [offset, "body:/x?"], number: "const:1", start: 0, on_gap: skip, gap_deadline: 0s, gap_cap: 0, missing: discard}`), shape: true},
		{name: "versions by the broker's count", edits: inConsumer("version: {stream: key, number: offset}")},
		{name: "versions that are times", edits: inConsumer("version: {stream: key, number: time}")},
		{name: "versions that may be missing", edits: inConsumer(`version: {stream: key, number: "body:/version?"}`)},
		{name: "versions that begin with no number", edits: withVersion(`, start: "1"`)},
		{name: "versions that begin with another word", edits: withVersion(", start: first-seen"), shape: true},
		{name: "versions beyond all numbers", edits: withVersion(", start: 9223372036854775808")},
		{name: "versions that wait for more than a year", edits: withVersion(", gap_deadline: 366d")},
		{name: "versions into the dead letters of a file", edits: withVersion(", missing: dead_letter")},
		{name: "versions without a marker", edits: append(withVersion(""), "strategy: marker", "strategy: {natural: {because: I say so}}")},
		{name: "versions with a business key alone", edits: append(withVersion(""), "strategy: marker", "strategy: {business_key: {constraint: payments.id}}")},
		{name: "versions beside an adopted table", edits: withPostgres("version: {"+versionKeys+"}", "dedup: {table: processed, columns: {id: id, source: origin}}")},
		{name: "version as a strategy", edits: []string{"strategy: marker", "strategy: version"}, shape: true},
		{name: "version among the strategies", edits: []string{"strategy: marker", "strategy: {marker: true, version: true}"}, shape: true},
	}
}

func TestVersionsOfAPolicyAreTheLibrarys(t *testing.T) {
	t.Run("B4_B9_what_is_not_said_has_the_default", func(t *testing.T) {
		p, faults := parse(policyCase{edits: withVersion("")})
		if len(faults) > 0 {
			t.Fatal(faultLines(faults))
		}
		v := p.Consumers[0].Config().Version
		if v.Start != 1 || v.FirstSeen || v.Gap != versions.DefaultGap || v.GapCap != 0 || v.Missing != consumer.ActionPark {
			t.Errorf("%+v", v)
		}
		stream, number, err := v.By.Version(&semel.Message{Body: []byte(`{"order":"a","version":3}`)})
		if err != nil || stream != "a" || number != 3 {
			t.Errorf("%q %d %v", stream, number, err)
		}
	})
	t.Run("B4_B9_what_is_said_arrives", func(t *testing.T) {
		p, _ := parse(policyCase{edits: withVersion(", start: 7, gap_deadline: 1d, gap_cap: 5, missing: halt")})
		if v := p.Consumers[0].Config().Version; v.Start != 7 || v.Gap != 24*time.Hour || v.GapCap != 5 || v.Missing != consumer.ActionHalt {
			t.Errorf("%+v", v)
		}
		p, _ = parse(policyCase{edits: withVersion(", start: first_seen")})
		if v := p.Consumers[0].Config().Version; v.Start != 0 || !v.FirstSeen {
			t.Errorf("%+v", v)
		}
	})
	t.Run("B4_a_consumer_without_versions_has_none", func(t *testing.T) {
		p, _ := parse(policyCase{})
		if v := p.Consumers[0].Config().Version; v != nil || strings.Contains(base, "number:") {
			t.Errorf("%+v", v)
		}
	})
}

package policy

import (
	"testing"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/selectors"
)

const presentIdentity = `{id: "header:ce-id", source: "header:ce-source"}`

// withPrevious returns edits of the test policy base: they add the key `previous` to the consumer's identity, with the
// parameter former as its value, and then make the edits in the parameter more.
func withPrevious(former string, more ...string) []string {
	edits := []string{presentIdentity, `{id: "header:ce-id", source: "header:ce-source", previous: ` + former + `}`}
	return append(edits, more...)
}

func refusedPrevious() []policyCase {
	const byKey = `{id: "body:/order"}`
	return []policyCase{
		{name: "former identity that is the present one", edits: withPrevious(`{id: "header:CE-ID", source: "header:ce-source"}`)},
		{name: "former identity of the broker's", edits: withPrevious(`{id: offset}`)},
		{name: "former identity of a constant", edits: withPrevious(`{id: "const:a"}`)},
		{name: "former identity without an id", edits: withPrevious(`{source: "header:ce-source"}`), shape: true},
		{name: "former identity, word", edits: withPrevious(`{id: "body:/order", unfingerprinted: drop}`), shape: true},
		{name: "former identity, key", edits: withPrevious(`{id: "body:/order", unfingerprintd: park}`), shape: true},
		{name: "former identity that is a text", edits: withPrevious(`"body:/order"`), shape: true},
		{name: "former identity without a fingerprint", edits: withPrevious(byKey, inConsumer("fingerprint: none")...)},
		{name: "former identity without markers", edits: withPrevious(byKey, "strategy: marker", "strategy: {natural: {because: \"order: irrelevant\"}}")},
		{name: "former identity beside versions", edits: withPrevious(byKey, inConsumer("version: {stream: \"body:/order\", number: \"body:/version\"}")...)},
		{name: "former identity beside a business key alone", edits: withPrevious(byKey, "strategy: marker", "strategy: {business_key: {constraint: payments.id}}")},
		{name: "former identity beside days", edits: withPrevious(byKey, withPostgres("retention: {keep: 30d, id_time: uuidv7, daily_partitions: true}")...)},
		{name: "former identity beside an adopted table", edits: withPrevious(byKey, withPostgres("dedup: {table: processed, columns: {id: message_id, source: origin}}")...)},
		{name: "exclusive without types", edits: inConsumer("exclusive: true")},
	}
}

// acceptedPrevious returns valid policies with a previous identity, for each strategy that allows one.
func acceptedPrevious() []policyCase {
	const byKey = `{id: "body:/order"}`
	return []policyCase{
		{name: "former identity, marker", edits: withPrevious(byKey)},
		{name: "former identity, inbox", edits: withPrevious(byKey, "strategy: marker", "strategy: inbox")},
		{name: "former identity, marker and business key", edits: withPrevious(byKey, "strategy: marker", "strategy: {marker: true, business_key: {constraint: payments.id}}")},
		{name: "former identity, inbox and business key", edits: withPrevious(byKey, "strategy: marker", "strategy: {inbox: true, business_key: {constraint: payments.id}}")},
	}
}

func TestAFormerIdentityIsTheConsumers(t *testing.T) {
	t.Run("A7_identity_former_is_what_the_consumer_marks_under_too", func(t *testing.T) {
		c := &Consumer{Identity: Identity{ID: []string{"header:ce-id"}, Previous: &PreviousIdentity{ID: []string{"body:/order", "topic"}, Source: "const:shop", TrustUnfingerprinted: true}}}
		former := c.Config().PreviousIdentity
		want := identity.By("body:/order", "topic").From("const:shop").Derivation()
		if former == nil || former.Identity.(selectors.Derived).Derivation() != want || !former.TrustUnfingerprinted {
			t.Errorf("got %+v, want %s", former, want)
		}
		if c.Identity.Previous = nil; c.Config().PreviousIdentity != (*consumer.PreviousIdentity)(nil) {
			t.Error("without the key there is one")
		}
	})
	t.Run("trap_23_the_set_of_handler_types_is_the_owner", func(t *testing.T) {
		sql := &SQL{}
		typed := func(types ...string) string {
			c := &Consumer{Exclusive: true}
			for _, name := range types {
				c.Handler.Types = append(c.Handler.Types, TypedHandler{Type: name, SQL: sql})
			}
			return c.Config().Owner
		}
		if a, b, other := typed("a", "b"), typed("b", "a"), typed("a", "c"); a == "" || a != b || a == other {
			t.Errorf("%q, %q and %q", a, b, other)
		}
		if c := (&Consumer{Handler: Handler{SQL: sql}}); c.Config().Owner != "" {
			t.Errorf("one handler for all is owned by %q", c.Config().Owner)
		}
	})
}

package policy

import (
	"testing"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
)

const presentIdentity = `{id: "header:ce-id", source: "header:ce-source"}`

// formerly is the edit that gives the identity a former one.
func formerly(former string, more ...string) []string {
	edits := []string{presentIdentity, `{id: "header:ce-id", source: "header:ce-source", former: ` + former + `}`}
	return append(edits, more...)
}

func refusedFormers() []policyCase {
	const byKey = `{id: "body:/order"}`
	return []policyCase{
		{name: "former identity that is the present one", edits: formerly(`{id: "header:CE-ID", source: "header:ce-source"}`)},
		{name: "former identity of the broker's", edits: formerly(`{id: offset}`)},
		{name: "former identity of a constant", edits: formerly(`{id: "const:a"}`)},
		{name: "former identity without an id", edits: formerly(`{source: "header:ce-source"}`), shape: true},
		{name: "former identity, word", edits: formerly(`{id: "body:/order", unfingerprinted: drop}`), shape: true},
		{name: "former identity, key", edits: formerly(`{id: "body:/order", unfingerprintd: park}`), shape: true},
		{name: "former identity that is a text", edits: formerly(`"body:/order"`), shape: true},
		{name: "former identity without a fingerprint", edits: formerly(byKey, inConsumer("fingerprint: none")...)},
		{name: "former identity without markers", edits: formerly(byKey, "strategy: marker", "strategy: {natural: {because: \"order: irrelevant\"}}")},
		{name: "former identity beside versions", edits: formerly(byKey, inConsumer("version: {stream: \"body:/order\", number: \"body:/version\"}")...)},
		{name: "exclusive without types", edits: inConsumer("exclusive: true")},
	}
}

func TestAFormerIdentityIsTheConsumers(t *testing.T) {
	t.Run("A7_identity_former_is_what_the_consumer_marks_under_too", func(t *testing.T) {
		c := &Consumer{Identity: Identity{ID: []string{"header:ce-id"}, Former: &FormerIdentity{ID: []string{"body:/order", "topic"}, Source: "const:shop", TrustUnfingerprinted: true}}}
		former := c.Config().Former
		want := identity.By("body:/order", "topic").From("const:shop").Derivation()
		if former == nil || former.Identity.(identity.Derived).Derivation() != want || !former.TrustUnfingerprinted {
			t.Errorf("got %+v, want %s", former, want)
		}
		if c.Identity.Former = nil; c.Config().Former != (*consumer.FormerIdentity)(nil) {
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

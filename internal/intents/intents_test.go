package intents_test

import (
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/intents"
	"github.com/semel-go/semel/store"
)

func caused(attempt int, trace string) *semel.Message {
	m := semel.NewMessage(semel.Key{Consumer: "orders", Source: "shop", ID: "1"}, nil, semel.Header{Name: "traceparent", Value: []byte(trace)})
	m.Attempt, m.Origin.Offset = attempt, int64(attempt)
	return m
}

func TestAnIntent(t *testing.T) {
	receipt := semel.Intent{To: "mailer", Purpose: "receipt", Recipient: "ann", Body: []byte("thanks")}
	key, first, err := intents.Message(caused(1, "a"), &receipt)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("E1_has_one_id_and_one_fingerprint_in_each_attempt_and_copy", func(t *testing.T) {
		again, second, err := intents.Message(caused(2, "b"), &receipt)
		if err != nil || again != key || string(first.Body) != string(second.Body) {
			t.Errorf("%v and %v, %v", key, again, err)
		}
		other := receipt
		other.Body = []byte("no thanks")
		same := receipt
		if intents.Print(&receipt) != intents.Print(&same) || !intents.Print(&receipt).Conflicts(intents.Print(&other)) {
			t.Error("an intent with other content has the same fingerprint")
		}
	})
	t.Run("E1_for_another_recipient_has_another_id", func(t *testing.T) {
		other := receipt
		other.Recipient = "bob"
		if second, _, err := intents.Message(caused(1, "a"), &other); err != nil || second == key {
			t.Errorf("%v, %v", second, err)
		}
	})
	t.Run("E1_that_is_there_with_another_content_fails_for_good_and_one_that_is_there_does_not", func(t *testing.T) {
		all := []semel.Intent{receipt}
		for kind, want := range map[store.VerdictKind]error{store.Fresh: nil, store.Seen: nil, store.Conflict: semel.ErrIntent, store.Newer: semel.ErrSchema} {
			if err := intents.Judge(all, []store.Verdict{{Kind: kind}}); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%v gives %v", kind, err)
			}
		}
		if err := intents.Judge(all, []store.Verdict{{Kind: store.Busy}}); err == nil {
			t.Error("an intent with the verdict Busy counts as written")
		}
	})
}

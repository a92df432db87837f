package check

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/proof"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Subject is a consumer and the known facts about the consumer.
type Subject struct {
	Policy   *policy.Policy
	Consumer *policy.Consumer
	// Source is the consumer's source; nil for a consumer that sends intents.
	Source *policy.Source
	Store  *policy.Store
	// Facts are the facts from the store. If Facts is nil, NoFacts says why.
	Facts   *Facts
	NoFacts string
	// Schema describes what is missing in the tables; empty if nothing is missing or the tables were not
	// checked.
	Schema string
	// Proof is the result of semel check --prove; nil if there is none, and NoProof says why. Changed is true if
	// the policy has changed since semel check --prove ran.
	Proof   *proof.Proof
	NoProof string
	Changed bool
	// Broker has the facts from the brokers; nil if the source is not Kafka. NoHorizon and NoPositions say
	// why facts are missing.
	Broker *Broker
}

// Facts are the facts that a store has about a consumer.
type Facts struct {
	// Kept is the name under which the store keeps the consumer's records.
	Kept string
	// Names are the names of all consumers that the store knows. Derivations are the recorded texts about
	// how consumers found ids. Owner identifies the handlers of the service that uses the consumer's name.
	Names       []string
	Derivations []admin.Derivation
	Owner       string
	// Retention is the recorded retention; nil if no process of the consumer has recorded one.
	Retention *store.StoredRetention
	Pending   store.Pending
	Upkeep    sqlstore.Upkeep
	// Deep is the result of the deep check; nil if rows were not compared.
	Deep *Deep
	// Unique reports whether the business key's constraint exists; nil if the policy has no business key.
	Unique *bool
}

// Broker has the facts that the brokers have about a consumer.
type Broker struct {
	Horizon   source.Horizon
	NoHorizon string
	// Partitions is the number of partitions. Ahead is the number of partitions whose committed offset is
	// ahead of the store.
	Partitions, Ahead int
	Missing           int64
	NoPositions       string
}

// Result is the result of a question.
type Result string

// The results of a question.
const (
	Pass       Result = "pass"
	Fail       Result = "fail"
	CannotKnow Result = "cannot_know"
	// NotApplicable means that the question does not concern the consumer.
	NotApplicable Result = "not_applicable"
)

// Answer is the answer to a question. If the result is CannotKnow, Evidence is the reason.
type Answer struct {
	Result   Result
	Evidence string
	// Remedy says how to fix a failure, or how to get the missing facts; empty with Pass.
	Remedy string
}

func pass(format string, args ...any) Answer {
	return Answer{Result: Pass, Evidence: fmt.Sprintf(format, args...)}
}

func fail(remedy, format string, args ...any) Answer {
	return Answer{Fail, fmt.Sprintf(format, args...), remedy}
}

func cannotKnow(remedy, format string, args ...any) Answer {
	return Answer{CannotKnow, fmt.Sprintf(format, args...), remedy}
}

func notApplicable(format string, args ...any) Answer {
	return Answer{Result: NotApplicable, Evidence: fmt.Sprintf(format, args...)}
}

// answerUnread returns the answer for a store that could not be read.
func (s *Subject) answerUnread() Answer {
	if s.Store.Redis != nil {
		return cannotKnow("", "%s", s.NoFacts)
	}
	return cannotKnow("", "store %s could not be read; question 7 says why", s.Store.Name)
}

// endpoint returns the endpoint that the consumer calls, or nil.
func (s *Subject) endpoint() *policy.HTTP { return s.Consumer.Handler.HTTP }

// hasOutsideEffects reports whether the consumer's own handler has effects outside of the store.
func (s *Subject) hasOutsideEffects() bool {
	h := s.Consumer.Handler
	return h.HTTP != nil && !h.HTTP.Pure || h.Kafka != nil
}

// writesIntents reports whether the consumer writes intents that other consumers send.
func (s *Subject) writesIntents() bool {
	for _, c := range s.Policy.Consumers {
		if c.Sends() && s.Consumer.WritesTo(c.Name) {
			return true
		}
	}
	return false
}

// kind returns the kind of the declared effect, or "" if the policy declares none.
func (s *Subject) kind() policy.EffectKind {
	if s.Consumer.Effect == nil {
		return ""
	}
	return s.Consumer.Effect.Kind
}

// withArticle returns the kind of effect after the article "a" or "an".
func withArticle(k policy.EffectKind) string {
	if strings.ContainsAny(string(k[:1]), "aeiou") {
		return "an " + string(k)
	}
	return "a " + string(k)
}

// repeatable reports whether an effect of this kind may happen twice. An effect may happen twice if the
// second effect only writes the same state again.
func repeatable(k policy.EffectKind) bool {
	return k == policy.Projection || k == policy.Cache || k == policy.AuditCopy
}

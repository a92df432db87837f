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

// Subject is a consumer for which the questions are answered, with what is known about it.
type Subject struct {
	Policy   *policy.Policy
	Consumer *policy.Consumer
	// Source is nil for a consumer that sends intents.
	Source *policy.Source
	Store  *policy.Store
	// Facts is what the store knows about the consumer; if it is nil, NoFacts says why.
	Facts   *Facts
	NoFacts string
	// Schema describes what is missing in the tables; empty if nothing is known to be missing.
	Schema string
	// Proof is nil if no result of semel check --prove is known; NoProof says why. Changed reports that the policy has
	// changed since.
	Proof   *proof.Proof
	NoProof string
	Changed bool
	// Broker is nil if the source is not Kafka. Its NoHorizon and NoPositions say why values are missing.
	Broker *Broker
}

// Facts is what a store knows about a consumer.
type Facts struct {
	// Kept is the name under which the store keeps the consumer's records.
	Kept string
	// Names are the names of all consumers that the store knows. Derivations are the recorded ways in which consumers
	// found ids. Owner identifies the handlers that own the name of this consumer.
	Names       []string
	Derivations []admin.Derivation
	Owner       string
	// Retention is nil if no process of the consumer has recorded one.
	Retention *store.StoredRetention
	Pending   store.Pending
	Upkeep    sqlstore.Upkeep
	// Deep is nil if rows were not compared.
	Deep *Deep
	// Unique reports whether the constraint of the business key exists; nil if the policy names none.
	Unique *bool
}

// Broker is what the brokers know about a consumer.
type Broker struct {
	Horizon   source.Horizon
	NoHorizon string
	// Partitions is the number of partitions; in Ahead of them the committed offset of the group is ahead of the
	// store.
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
	// NotApplicable is the result if the question does not apply to the consumer.
	NotApplicable Result = "not_applicable"
)

// Answer is the answer to a question. With CannotKnow, Evidence says why nothing is known.
type Answer struct {
	Result   Result
	Evidence string
	// Remedy says how to correct a failure, or how to get the missing knowledge; empty with Pass.
	Remedy string
}

func pass(format string, args ...any) Answer {
	return Answer{Result: Pass, Evidence: fmt.Sprintf(format, args...)}
}

func fail(remedy, format string, args ...any) Answer {
	return Answer{Fail, fmt.Sprintf(format, args...), remedy}
}

func cannot(remedy, format string, args ...any) Answer {
	return Answer{CannotKnow, fmt.Sprintf(format, args...), remedy}
}

func notApplicable(format string, args ...any) Answer {
	return Answer{Result: NotApplicable, Evidence: fmt.Sprintf(format, args...)}
}

// unread returns the answer if the store could not be read.
func (s *Subject) unread() Answer {
	if s.Store.Redis != nil {
		return cannot("", "%s", s.NoFacts)
	}
	return cannot("", "store %s could not be read; question 7 says why", s.Store.Name)
}

// calls returns the endpoint that the consumer calls; nil if there is none.
func (s *Subject) calls() *policy.HTTP { return s.Consumer.Handler.HTTP }

// outside reports whether the consumer itself has effects outside its store.
func (s *Subject) outside() bool {
	h := s.Consumer.Handler
	return h.HTTP != nil && !h.HTTP.Pure || h.Kafka != nil
}

// orders reports whether the consumer writes intents, which other consumers send.
func (s *Subject) orders() bool {
	for _, c := range s.Policy.Consumers {
		if c.Sends() && s.Consumer.WritesTo(c.Name) {
			return true
		}
	}
	return false
}

// kind returns the kind of the declared effect; empty if none is declared.
func (s *Subject) kind() policy.EffectKind {
	if s.Consumer.Effect == nil {
		return ""
	}
	return s.Consumer.Effect.Kind
}

// a returns a kind of effect with its article.
func a(k policy.EffectKind) string {
	if strings.ContainsAny(string(k[:1]), "aeiou") {
		return "an " + string(k)
	}
	return "a " + string(k)
}

// repeatable reports whether repeating an effect of this kind is harmless, because it only renews the same state.
func repeatable(k policy.EffectKind) bool {
	return k == policy.Projection || k == policy.Cache || k == policy.AuditCopy
}

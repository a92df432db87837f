package check

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Subject is a consumer of which the questions are asked.
type Subject struct {
	Policy   *policy.Policy
	Consumer *policy.Consumer
	// Source is nil of a consumer that carries out intents.
	Source *policy.Source
	Store  *policy.Store
	// Facts are what the store says; nil: NoFacts says why there are none.
	Facts   *Facts
	NoFacts string
	// Schema says what of the tables is missing or does not protect; empty: nothing, as far
	// as is known.
	Schema string
	// Broker is nil where there is none; NoHorizon and NoPositions say what of it could not
	// be read.
	Broker *Broker
}

// Facts are what a store says of a consumer.
type Facts struct {
	// Kept is the name under which the consumer's records stand.
	Kept string
	// Names are those of all consumers that the store has met, Derivations how the
	// identities of this one were found, of all, by consumer, where others are.
	Names       []string
	Derivations []admin.Derivation
	Owner       string
	// Retention is nil where the consumer never recorded one.
	Retention *store.StoredRetention
	Pending   store.Pending
	Upkeep    sqlstore.Upkeep
	// Deep is what was found where that was asked for.
	Deep *Deep
	// Unique says whether the constraint of a business key is there; nil: there is none.
	Unique *bool
}

// Broker is what the brokers say.
type Broker struct {
	Horizon   source.Horizon
	NoHorizon string
	// Partitions are as many, of which Ahead are where the group is ahead of the store.
	Partitions, Ahead int
	Missing           int64
	NoPositions       string
}

// Result is an answer in one word.
type Result string

// The results.
const (
	Pass       Result = "pass"
	Fail       Result = "fail"
	CannotKnow Result = "cannot_know"
	// NotApplicable is the answer where a consumer has nothing that the question is about.
	NotApplicable Result = "not_applicable"
)

// Answer is one to a question. Of CannotKnow the evidence says why.
type Answer struct {
	Result   Result
	Evidence string
	// Remedy says what mends it, or how it can be known; empty of Pass.
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

// unread is the answer where the store would have to be asked and cannot be.
func (s *Subject) unread() Answer {
	if s.Store.Redis != nil {
		return cannot("", "%s", s.NoFacts)
	}
	return cannot("", "store %s could not be read; question 7 says why", s.Store.Name)
}

// calls is the endpoint that is called; nil if there is none.
func (s *Subject) calls() *policy.HTTP { return s.Consumer.Handler.HTTP }

// outside reports whether the consumer's own work has effects outside of the store.
func (s *Subject) outside() bool {
	h := s.Consumer.Handler
	return h.HTTP != nil && !h.HTTP.Pure || h.Kafka != nil
}

// orders reports whether it writes down intents, which others carry out.
func (s *Subject) orders() bool {
	for _, c := range s.Policy.Consumers {
		if c.Sends() && s.Consumer.WritesTo(c.Name) {
			return true
		}
	}
	return false
}

// kind is that of the declared effect; empty where none is.
func (s *Subject) kind() policy.EffectKind {
	if s.Consumer.Effect == nil {
		return ""
	}
	return s.Consumer.Effect.Kind
}

// a is a kind with its article.
func a(k policy.EffectKind) string {
	if strings.ContainsAny(string(k[:1]), "aeiou") {
		return "an " + string(k)
	}
	return "a " + string(k)
}

// repeatable reports whether a second effect of the kind does no harm: it makes the same
// anew.
func repeatable(k policy.EffectKind) bool {
	return k == policy.Projection || k == policy.Cache || k == policy.AuditCopy
}

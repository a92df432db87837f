package check

import (
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/proof"
	"github.com/semel-go/semel/internal/handlertest"
)

// prove reads the results of semel check --prove for the consumer.
func (s *Subject) prove(p *policy.Policy) {
	all, err := proof.Read(p)
	if err != nil {
		s.NoProof = singleLine(err)
		return
	}
	if s.Proof = all[s.Consumer.Name]; s.Proof == nil {
		return
	}
	hash, err := proof.Hash(p)
	s.Changed = err != nil || hash != s.Proof.Policy
}

// newTestCheck returns the question whether the subtests of the given groups have passed. The
// parameter what names the property that the subtests check.
func newTestCheck(what string, groups ...handlertest.Group) func(*Subject) Answer {
	return func(s *Subject) Answer {
		words := []string{"check", "--prove", "--consumer", s.Consumer.Name}
		if h := s.Consumer.Handler.HTTP; h != nil && h.Effects != nil {
			words = append(words, "--answers", "FILE")
		}
		again := s.Policy.Command(words...)
		switch why := assembly.Untested(s.Policy, s.Consumer); {
		case why != "":
			return cannotKnow("test the other side, and this consumer with copies of its messages", "no test of %s is known: %s", what, why)
		case s.NoProof != "":
			return cannotKnow(again, "%s", s.NoProof)
		case s.Proof == nil:
			return cannotKnow(again, "no test of %s is known", what)
		}
		on := s.Proof.At.UTC().Format(time.DateOnly)
		if s.Changed {
			return cannotKnow(again, "%s was tested on %s, but the policy has changed since", what, on)
		}
		failed := s.Proof.In(proof.Fail, append([]handlertest.Group{handlertest.First}, groups...)...)
		passed := s.Proof.In(proof.Pass, groups...)
		switch {
		case len(failed) > 0:
			return fail(again, "tested on %s with %s: %s: %s", on, s.Proof.Database, failed[0].Name, failed[0].Says)
		case len(passed) == 0:
			return cannotKnow(again, "the test of %s ran no subtest of %s", on, what)
		}
		return pass("on %s %s passed with %s on %s", on, formatCount(int64(len(passed)), "subtest"), formatCount(int64(s.Proof.Messages), "message"), s.Proof.Database)
	}
}

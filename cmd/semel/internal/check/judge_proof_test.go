package check

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/proof"
	"github.com/semel-go/semel/internal/handlertest"
)

func TestTestsOfTheHandlerAnswerTwoQuestions(t *testing.T) {
	passed := []proof.Subtest{
		{Name: "first delivery", Group: handlertest.First, Result: proof.Pass},
		{Name: "duplicate after success", Group: handlertest.Duplicates, Result: proof.Pass},
		{Name: "crash before COMMIT", Group: handlertest.BeforeCommit, Result: proof.Pass},
	}
	keyless := strings.Replace(callingPolicy, "window: 24h", "key: none\n        may_double: a second call does no harm", 1)
	twice := proof.Subtest{Name: "concurrent duplicates", Group: handlertest.Duplicates, Result: proof.Fail, Says: "the effect differs"}
	for name, c := range map[string]struct {
		text                string
		subtests            []proof.Subtest
		changed             bool
		unread              string
		duplicates, crashes Result
		evidence            string // the expected evidence in the answer about duplicates
	}{
		"K3_4_18_all_passed":               {validPolicy, passed, false, "", Pass, Pass, "on 2026-05-03 1 subtest passed with 2 messages on SQLite"},
		"K3_4_duplicates_failed":           {validPolicy, append(passed[:3:3], twice), false, "", Fail, Pass, "concurrent duplicates: the effect differs"},
		"K3_4_18_nothing_was_comparable":   {validPolicy, passed[:1], false, "", CannotKnow, CannotKnow, "ran no subtest"},
		"K3_4_18_the_policy_has_changed":   {validPolicy, passed, true, "", CannotKnow, CannotKnow, "was tested on 2026-05-03, but the policy has changed since"},
		"K3_4_18_the_file_cannot_be_read":  {validPolicy, nil, false, "broken", CannotKnow, CannotKnow, "broken"},
		"K3_4_18_a_call_cannot_be_tested":  {keyless, nil, false, "", CannotKnow, CannotKnow, "its endpoint gets no key"},
		"K3_4_18_no_test_of_a_call":        {callingPolicy, nil, false, "", CannotKnow, CannotKnow, "no test of duplicate delivery is known"},
		"K3_4_18_a_call_passed":            {callingPolicy, passed, false, "", Pass, Pass, "on 2026-05-03 1 subtest passed"},
		"K3_4_18_no_test_is_known":         {validPolicy, nil, false, "", CannotKnow, CannotKnow, "no test of duplicate delivery is known"},
		"K3_4_18_the_first_delivery_fails": {validPolicy, []proof.Subtest{{Name: "first delivery", Group: handlertest.First, Result: proof.Fail, Says: "no"}}, false, "", Fail, Fail, "first delivery: no"},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, c.text)
			s.NoProof, s.Changed = c.unread, c.changed
			if c.subtests != nil {
				s.Proof = &proof.Proof{At: time.Date(2026, 5, 3, 9, 0, 0, 0, time.UTC), Database: "SQLite", Messages: 2, Subtests: c.subtests}
			}
			duplicates, crashes := design()[3].Answer(s), design()[17].Answer(s)
			if duplicates.Result != c.duplicates || crashes.Result != c.crashes || !strings.Contains(duplicates.Evidence, c.evidence) {
				t.Errorf("4: %+v\n18: %+v", duplicates, crashes)
			}
		})
	}
}

package policy

import (
	"fmt"
	"regexp"

	"github.com/semel-go/semel/store"
)

// SQLStep is a part of a handler of statements that takes effect by itself.
type SQLStep struct {
	// Name is what a message's row knows it by once it is done.
	Name string
	// Statements run in this order in the step's transaction.
	Statements []Statement
	// Intents are written down after them, in it.
	Intents []SQLIntent
}

func stepShape() object[SQLStep] {
	return object[SQLStep]{fields: []field[SQLStep]{
		key(meta{name: "name", required: true, doc: "Its name, which a message's row keeps once the step is done. It stays: a row whose steps are others is parked as `steps changed`."},
			word{what: stepNameWords, check: badStepName, pattern: stepName.String()}, func(s *SQLStep) *string { return &s.Name }),
		key(meta{name: "statements", required: true, doc: "Its statements, in order."},
			list[Statement]{item: statementShape()}, func(s *SQLStep) *[]Statement { return &s.Statements }),
		key(meta{name: "intents", doc: "Effects elsewhere, written down in the step's transaction. See [intents](intents.md)."},
			list[SQLIntent]{item: intentShape()}, func(s *SQLStep) *[]SQLIntent { return &s.Intents }),
	}}
}

// stepName is what a step of a policy may be named.
var stepName = regexp.MustCompile(fmt.Sprintf(`^[a-z0-9_-]{1,%d}$`, store.MaxStepName))

var stepNameWords = fmt.Sprintf("a name of 1 to %d of a to z, 0 to 9, '_' and '-'", store.MaxStepName)

func badStepName(name string) (reason, remedy string) {
	if stepName.MatchString(name) {
		return "", ""
	}
	return fmt.Sprintf("%q is no name of a step", name), "write " + stepNameWords
}

package sqlhandler

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/pgxstore"
)

// Named is a statement that a response can name, together with the statement's parameters.
type Named struct {
	Name      string
	Statement Statement
	Params    []TypedParam
}

// TypedParam is a parameter whose value comes from a response.
type TypedParam struct {
	Name string
	Type ParamType
	// Optional allows a missing or null value, which becomes NULL.
	Optional bool
}

// Effects runs the statements that responses name. Effects is safe for concurrent use.
type Effects struct {
	named map[string]*namedStatement
	// The field senders has the names of senders for which a response may write intents.
	senders []string
	// sendsText has the same meaning as in Dialect.
	sendsText bool
}

// namedStatement is a compiled statement that a response can name.
type namedStatement struct {
	*Handler
	name   string
	params []TypedParam
}

// Effect is a named statement with the values from a response.
type Effect struct {
	statement *namedStatement
	values    []any
}

// Answer is a parsed response.
type Answer struct {
	effects []Effect
	// Intents are written after the effects.
	Intents []semel.Intent
	// Result is the result in JSON, which Semel stores; nil if the response has none.
	Result []byte
}

// CompileEffects checks the statements for responses and prepares them for use. The parameter senders has the
// names of senders for which responses may write intents. The function noEffect is called when a statement
// without Rows changes no row; may be nil. The error lists all faults.
func CompileEffects(d Dialect, all []Named, senders []string, noEffect func(m *semel.Message, name string)) (*Effects, error) {
	e := &Effects{named: map[string]*namedStatement{}, senders: senders, sendsText: d.sendsText}
	var faults []error
	for _, s := range all {
		one := &namedStatement{Handler: &Handler{cachesPrepared: d.cachesPrepared, sendsText: d.sendsText, checkCounts: newWatched(1)}, name: s.Name, params: s.Params}
		for _, p := range s.Params {
			one.names = append(one.names, p.Name)
		}
		ready, err := one.compile(d, s.Statement)
		if err != nil {
			faults = append(faults, fmt.Errorf("statement %s: %w", s.Name, err))
		}
		ready.label = "statement " + s.Name
		one.statements = []statement{ready}
		if noEffect != nil {
			one.noEffect = func(m *semel.Message, _ int) { noEffect(m, s.Name) }
		}
		e.named[s.Name] = one
	}
	return e, errors.Join(faults...)
}

// Handle runs the effects of a response in tx; see Handler.Handle.
func (e *Effects) Handle(ctx context.Context, tx *sql.Tx, a *Answer, m *semel.Message) error {
	for _, one := range a.effects {
		if err := one.statement.run(ctx, tx, m, 0, one.values); err != nil {
			return err
		}
	}
	return nil
}

// Queue queues the effects of a response; see Handler.Queue.
func (e *Effects) Queue(_ context.Context, q *pgxstore.Queue, a *Answer, m *semel.Message) error {
	for _, one := range a.effects {
		one.statement.queue(q, m, 0, one.values)
	}
	return q.Err()
}

// Try lets the database prepare each statement. The function try is Handler.Try or Handler.TryQueued. If the
// database rejects a statement, Try returns the name of the statement and the error.
func (e *Effects) Try(try func(*Handler) (int, error)) (name string, err error) {
	var names []string
	for name := range e.named {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if _, err := try(e.named[name].Handler); err != nil {
			return name, err
		}
	}
	return "", nil
}

package assembly

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/handlertest"
	"github.com/semel-go/semel/store"
)

// Trial tests how the handler of a consumer behaves when failures occur, on a separate database. Of the
// user's own tables, Trial reads at most the definitions, to copy them. Trial never writes to the user's own
// tables.
type Trial struct {
	Policy   *policy.Policy
	Consumer *policy.Consumer
	// Messages are two or more messages with different ids.
	Messages []*semel.Message
	// Answers are the answers of an endpoint that answers with effects, one for each message; see ReadAnswers.
	Answers []string
	// Setup is a file with statements that run after those of the policy's setup; empty: none.
	Setup string
	// Ignore has the columns that are not compared, as TABLE.COLUMN.
	Ignore []string
	// Folder is an empty folder for SQLite files.
	Folder string
	// Again returns the command that runs this trial in a child process, which the trial kills. If Again is nil,
	// no process is killed. Only trials on SQLite use Again.
	Again func(ctx context.Context, t handlertest.T) (*exec.Cmd, error)
}

// Untested returns why the handler of a consumer cannot be tested, or "" if the handler can be tested.
func Untested(p *policy.Policy, c *policy.Consumer) string {
	switch h := c.Handler; {
	case h.Kafka != nil:
		return "its handler publishes to Kafka"
	case p.Store(c.Store).Redis != nil:
		return "its keys are in Redis"
	case c.Sends():
		return "it sends intents; the consumer that writes them can be tested"
	case h.HTTP != nil && h.HTTP.NoKey:
		return "its endpoint gets no key, so a second call always has a second effect"
	}
	return ""
}

// Run runs all subtests. If Run returns an error, the subtests could not start.
func (t *Trial) Run(ctx context.Context) (handlertest.Report, error) {
	if p := t.Policy.Store(t.Consumer.Store); p.Postgres != nil {
		return t.onPostgres(ctx, p)
	}
	return t.onSQLite(ctx)
}

// newDiscardLogger returns a logger without output, because a trial causes its failures on purpose.
func newDiscardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// workersOfTrial is the number of workers for which a trial has connections.
const workersOfTrial = 8

// The method open opens the policy with this consumer only, on another database.
func (t *Trial) open(other policy.Store, create bool) (*Assembly, error) {
	p, c := *t.Policy, *t.Consumer
	c.Workers = workersOfTrial
	p.Stores, p.Consumers = []*policy.Store{&other}, []*policy.Consumer{&c}
	return Open(&p, Options{Logger: newDiscardLogger(), Who: "semel check --prove"},
		func(*policy.Store) bool { return true }, func(*policy.Store) bool { return create })
}

// setup returns the statements in the file Setup.
func (t *Trial) setup() (string, error) {
	if t.Setup == "" {
		return "", nil
	}
	text, err := shape.ReadFile(t.Setup)
	if err != nil {
		return "", fmt.Errorf("--setup: %w; name a readable file of SQL statements", err)
	}
	return string(text), nil
}

// onSQLite runs the subtests on SQLite files. Each subtest gets a copy of a file with all tables.
func (t *Trial) onSQLite(ctx context.Context) (handlertest.Report, error) {
	template, child := filepath.Join(t.Folder, "template.db"), handlertest.Ordered() != ""
	if !child {
		if err := t.makeTemplate(ctx, template); err != nil {
			return nil, err
		}
	}
	start := func(h handlertest.T) handlertest.Handler[*sql.Tx] {
		path := handlertest.Database(filepath.Join(t.Folder, rand.Text()+".db"))
		if !child {
			if err := copyFile(template, path); err != nil {
				h.Fatal(err)
			}
		}
		a, err := t.open(t.file(path), false)
		if err != nil {
			h.Fatal(err)
		}
		h.Cleanup(func() {
			_ = a.Close() // the error does not matter, because the file is removed with the folder
			_ = os.Remove(path)
		})
		d := a.Stores[0].database.(*sqlite)
		all, err := d.columns(h.Context(), t.Policy.Store(t.Consumer.Store).SQLite.Prefix)
		if err != nil {
			h.Fatal(err)
		}
		made := newTestHandler(h, t, a, access[*sql.Tx]{d.store, runSeparately, (*sqlhandler.Effects).Handle, t.effect(d.db, all, d.store)})
		if t.Again != nil && made.Provider == nil { // the provider of a child process would end with it
			made.Process = &handlertest.Process{Database: path, Command: t.Again}
		}
		return made
	}
	return runTrial(ctx, t.Consumer.Name, start), nil
}

// file returns the settings of the consumer's store with another database file.
func (t *Trial) file(path string) policy.Store {
	other := *t.Policy.Store(t.Consumer.Store)
	other.SQLite = &policy.SQLite{Path: path, Prefix: other.SQLite.Prefix}
	return other
}

// makeTemplate creates a file with Semel's tables, the tables of the user, and the rows of the setup files.
func (t *Trial) makeTemplate(ctx context.Context, path string) (err error) {
	a, err := t.open(t.file(path), true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := a.Prepare(ctx, true); err != nil {
		return err
	}
	s := a.Stores[0]
	d := s.database.(*sqlite)
	own := t.Policy.Store(t.Consumer.Store)
	if own.Setup == "" {
		if err := d.copyTables(ctx, own.SQLite); err != nil {
			return fmt.Errorf("copy the definitions of tables from %s: %w", own.SQLite.Path, err)
		}
	}
	text, err := t.setup()
	if err == nil {
		_, err = d.db.ExecContext(ctx, text)
	}
	if err != nil {
		return fmt.Errorf("--setup %s: %w", t.Setup, err)
	}
	all, err := d.columns(ctx, own.SQLite.Prefix)
	if err != nil {
		return err
	}
	return t.checkStatements(ctx, a, all)
}

// checkStatements returns an error if the statements do not fit the tables, or if an ignored column does
// not exist.
func (t *Trial) checkStatements(ctx context.Context, a *Assembly, all []column) error {
	_, err := a.handlers(ctx, t.Consumer, a.Stores[0])
	if err == nil && t.answersWithEffects() {
		_, err = a.effects(ctx, t.Consumer, a.Stores[0])
	}
	if err != nil {
		return err
	}
	return t.checkIgnored(all)
}

// access is how a trial uses a database: how statements and the effects of an answer are executed or queued, and what
// their effect is.
type access[Tx any] struct {
	store  store.TxStore[Tx]
	run    func(*sqlhandler.Handler) handlerFunc[Tx]
	apply  func(e *sqlhandler.Effects, ctx context.Context, tx Tx, a *sqlhandler.Answer, m *semel.Message) error
	effect func(ctx context.Context) (string, error)
}

// newTestHandler returns the handler of the consumer for a subtest: its statements, its steps, or a call of a provider.
// Statements with :generation write the active generation.
func newTestHandler[Tx any](h handlertest.T, t *Trial, a *Assembly, d access[Tx]) handlertest.Handler[Tx] {
	made := handlertest.Handler[Tx]{Store: d.store, Messages: t.Messages, Effect: d.effect, Config: t.Consumer.Config()}
	w, err := consumer.NewIntents(d.store)
	if err != nil {
		h.Fatal(err)
	}
	if t.Consumer.Handler.HTTP != nil {
		made.Provider = t.provider()
		made.Handle, err = newProviderCall(h, t, a, d, made.Provider, w)
	} else {
		of := *t.Consumer
		if err := a.enter(h.Context(), &of); err != nil {
			h.Fatal(err)
		}
		var all handlers
		all, err = a.handlers(h.Context(), &of, a.Stores[0])
		run := func(one *sqlhandler.Handler) handlerFunc[Tx] { return withIntents(one, d.run(one), w) }
		made.Handle = dispatch(all.byType, run)
		for _, s := range all.steps {
			made.Steps = append(made.Steps, handlertest.Step[Tx]{Name: s.name, Run: run(s.handler)})
		}
	}
	if err != nil {
		h.Fatal(err)
	}
	return made
}

// runTrial runs all subtests, each as a separate test. A child process runs only the subtest for which it was
// started.
func runTrial[Tx any](ctx context.Context, name string, start func(t handlertest.T) handlertest.Handler[Tx]) handlertest.Report {
	return handlertest.Run(start, func(subtest string, run func(t handlertest.T) error) error {
		subtest = name + "/" + subtest
		if only := handlertest.Ordered(); only != "" && only != subtest {
			return nil
		}
		return handlertest.Alone(ctx, subtest, run)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

package assembly

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/httphandler"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// handlers has the compiled statements of one consumer.
type handlers struct {
	// byType has the statements by message type. Statements for all types have the empty type.
	byType map[string]*sqlhandler.Handler
	// The field steps has the handler's steps in order; empty for a handler without steps.
	steps []step
}

// step is a step of a handler. Each step has its own transaction.
type step struct {
	name    string
	handler *sqlhandler.Handler
}

// A function of type handlerFunc executes the statements for a message in a transaction.
type handlerFunc[Tx any] = func(context.Context, Tx, *semel.Message) error

// runSeparately returns a function that sends each statement separately.
func runSeparately(one *sqlhandler.Handler) handlerFunc[*sql.Tx] { return one.Handle }

// runQueued returns a function that queues the statements, so that pgx sends them together.
func runQueued(one *sqlhandler.Handler) handlerFunc[*pgxstore.Queue] { return one.Queue }

// newTxConsumer creates the consumer with the given handlers, for a store with transactions of type Tx.
func newTxConsumer[Tx any](st store.TxStore[Tx], h handlers, run func(*sqlhandler.Handler) handlerFunc[Tx], w *consumer.Intents[Tx], config consumer.Config) (Consumer, error) {
	as := func(one *sqlhandler.Handler) handlerFunc[Tx] { return withIntents(one, run(one), w) }
	if h.steps == nil {
		return consumer.New(st, dispatch(h.byType, as), config)
	}
	steps := make([]consumer.Step[Tx], len(h.steps))
	for i, s := range h.steps {
		run := as(s.handler)
		steps[i] = consumer.Step[Tx]{Name: s.name, Run: func(ctx context.Context, tx Tx, m *semel.Message, _ consumer.Done) ([]byte, error) {
			return nil, run(ctx, tx, m)
		}}
	}
	return consumer.NewSteps(st, steps, config)
}

// dispatch returns a handler that chooses the statements by message type.
func dispatch[Tx any](h map[string]*sqlhandler.Handler, as func(*sqlhandler.Handler) handlerFunc[Tx]) handlerFunc[Tx] {
	if only := h[""]; only != nil {
		return as(only)
	}
	byType := map[string]handlerFunc[Tx]{}
	for name, one := range h {
		byType[name] = as(one)
	}
	return consumer.ByType(byType)
}

// handlers compiles the consumer's statements. The method also lets the database prepare each statement,
// which finds further faults.
func (a *Assembly) handlers(ctx context.Context, c *policy.Consumer, st *Store) (handlers, error) {
	all := handlers{byType: map[string]*sqlhandler.Handler{}}
	for _, s := range c.Handlers() {
		h, err := sqlhandler.Compile(c.Dialect(st.policy), a.statements(c, s, st))
		if err != nil {
			return all, fmt.Errorf("consumer %s: %s: %w", c.Name, s.At, err)
		}
		if i, err := st.try(ctx, h, c); err != nil && st.Classify(err) == store.ClassPermanent {
			return all, a.policy.Fault(fmt.Sprintf("consumers.%s.%s.statements[%d]", c.Name, s.At, i),
				"the database rejects the statement: "+st.explain(err).Error(), "correct it, or create the missing objects, for example with setup: FILE.sql at the store")
		}
		if s.Step != "" {
			all.steps = append(all.steps, step{s.Step, h})
			continue
		}
		all.byType[s.Type] = h
	}
	return all, nil
}

func (a *Assembly) statements(c *policy.Consumer, all policy.Statements, store *Store) sqlhandler.Config {
	config := sqlhandler.Config{Step: all.Step, Type: all.Type, Generation: c.Generation()}
	for _, p := range all.Params {
		config.Params = append(config.Params, sqlhandler.Param(p))
	}
	for _, s := range all.Statements {
		text := s.SQL
		if s.Upsert != nil && store.policy.SQLite != nil {
			text, _ = s.Upsert.NamedSQLite() // the policy was checked, so no fault is possible
		}
		config.Statements = append(config.Statements, sqlhandler.Statement{SQL: text, Upsert: s.Upsert != nil, Rows: s.Rows, Otherwise: otherwiseAction(s.Otherwise)})
	}
	if key := c.Strategy.BusinessKey; key != nil {
		config.Violates = store.violationCheck(key.Constraint)
	}
	for _, n := range all.Intents {
		one := sqlhandler.Intent{To: n.To, Purpose: n.Purpose, Type: n.Type, Recipient: n.Recipient, Key: n.Key}
		for _, p := range n.Body {
			one.Body = append(one.Body, sqlhandler.Param(p))
		}
		config.Intents = append(config.Intents, one)
	}
	warn := a.warnOnce(c.Name, all)
	config.NoEffect = func(m *semel.Message, i int) {
		if all.Statements[i].Upsert == nil { // an upsert changes no row if the version is old, so no warning
			warn(m, i)
		}
	}
	return config
}

// warnOnce returns a function that logs a warning when a statement changes no row. Each statement is logged
// at most once.
func (a *Assembly) warnOnce(consumer string, all policy.Statements) func(*semel.Message, int) {
	once := make([]sync.Once, len(all.Statements))
	logger := a.options.Logger.With(slog.String("consumer", consumer))
	for name, is := range map[string]string{"type": all.Type, "step": all.Step} {
		if is != "" { // a statement has a type or a step, but not both
			logger = logger.With(slog.String(name, is))
		}
	}
	return func(m *semel.Message, i int) {
		once[i].Do(func() {
			logger.Warn("a statement changed no row; its message counts as applied (set rows: to decide)",
				slog.Int("statement", i+1), slog.String("id", legible.Printable(m.Identity.ID)))
		})
	}
}

// caller is a handler that calls another system.
type caller = func(context.Context, consumer.Call, *semel.Message) error

// endpoint creates the handler that calls an HTTP endpoint. The method opens no connection yet.
func (a *Assembly) endpoint(c *policy.Consumer) (*httphandler.Handler, error) {
	h := c.Handler.HTTP
	at := "consumers." + c.Name + ".handler.http"
	tls, err := security{a.policy, at}.tls(h.TLS)
	if err != nil {
		return nil, err
	}
	config := httphandler.Config{
		URL: h.URL, Pass: h.Pass, NoKey: h.NoKey, MayBeLost: h.MayBeLost != "", Timeout: h.Timeout, MaxRetryAfter: h.MaxRetryAfter, TLS: tls, Connections: cmp.Or(h.Connections, c.Workers),
		Effects: h.Effects != nil, Intents: c.Sends(),
	}
	for _, header := range h.Headers {
		config.Headers = append(config.Headers, httphandler.Header(header))
	}
	if h.Sign != nil {
		for _, text := range h.Sign.Secrets {
			secret, err := httphandler.ParseSecret(text)
			if err != nil {
				return nil, a.policy.Fault(at+".sign.secret", err.Error(), "see docs/reference/policy/handler-http.md")
			}
			config.Secrets = append(config.Secrets, secret)
		}
	}
	handler, err := httphandler.New(config)
	if err != nil {
		return nil, fmt.Errorf("consumer %s: handler.http: %w", c.Name, err)
	}
	a.logRisk(c)
	return handler, nil
}

// CallKey returns the idempotency key that the endpoint receives for a row. CallKey returns "" if the row's
// consumer has no endpoint or sends no keys.
func (a *Assembly) CallKey(r store.StoredRow) string {
	c := a.policy.Consumer(r.Key.Consumer)
	if c == nil || c.Handler.HTTP == nil || c.Handler.HTTP.NoKey || r.Message == nil || r.Surrogate {
		return ""
	}
	m := *r.Message
	m.Identity = r.Key
	return httphandler.Key(&m, c.Sends())
}

// lookWithin is how long the start waits for brokers to report whether topics exist.
const lookWithin = 5 * time.Second

// publisher creates the handler of a consumer that publishes to Kafka. The assembly closes the publisher. If
// a topic does not exist, publisher returns a fault of the policy. If the brokers do not respond, publisher
// returns no fault.
func (a *Assembly) publisher(ctx context.Context, c *policy.Consumer) (caller, error) {
	h := c.Handler.Kafka
	config := kafka.PublisherConfig{
		Brokers: h.Brokers, Topic: h.Topic, TopicHeader: h.TopicHeader, Topics: h.Topics, Timeout: h.Timeout, ClientID: h.ClientID,
		Logger: a.options.Logger.With(slog.String("consumer", c.Name)),
	}
	security := security{policy: a.policy, path: "consumers." + c.Name + ".handler.kafka"}
	var err error
	if config.TLS, err = security.tls(h.TLS); err != nil {
		return nil, err
	}
	if config.SASL, err = security.sasl(h.SASL); err != nil {
		return nil, err
	}
	publisher, err := kafka.NewPublisher(config)
	if err != nil {
		return nil, fmt.Errorf("consumer %s: handler.kafka: %w", c.Name, err)
	}
	a.publishers = append(a.publishers, publisher)
	look, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if err := publisher.Check(look); err != nil {
		return nil, a.policy.Fault("consumers."+c.Name+".handler.kafka", err.Error(), "see docs/guides/kafka.md")
	}
	return func(ctx context.Context, _ consumer.Call, m *semel.Message) error { return publisher.Publish(ctx, m) }, nil
}

// asker is a handler that calls an endpoint and returns the parsed response.
type asker = func(context.Context, *semel.Message) (*sqlhandler.Answer, error)

// effects compiles the statements that the responses of an endpoint may name. The database prepares each
// statement, which finds further faults.
func (a *Assembly) effects(ctx context.Context, c *policy.Consumer, st *Store) (*sqlhandler.Effects, error) {
	effects, err := sqlhandler.CompileEffects(c.Dialect(st.policy), namedStatements(c), c.Handler.HTTP.Effects.Intents, a.warnNamed(c.Name))
	if err != nil {
		return nil, fmt.Errorf("consumer %s: handler.http.effects: %w", c.Name, err)
	}
	name, err := effects.Try(func(h *sqlhandler.Handler) (int, error) { return st.try(ctx, h, c) })
	if err != nil && st.Classify(err) == store.ClassPermanent {
		return nil, a.policy.Fault(fmt.Sprintf("consumers.%s.handler.http.effects.statements.%s", c.Name, name),
			"the database rejects the statement: "+st.explain(err).Error(), "correct it, or create the missing objects, for example with setup: FILE.sql at the store")
	}
	return effects, nil
}

// newEffectsConsumer creates the consumer for an endpoint whose responses name SQL statements and intents.
func (a *Assembly) newEffectsConsumer(ctx context.Context, c *policy.Consumer, st *Store, endpoint *httphandler.Handler, config consumer.Config) (Consumer, error) {
	effects, err := a.effects(ctx, c, st)
	if err != nil {
		return nil, err
	}
	if c.Handler.HTTP.Pure {
		a.options.Logger.Info("the endpoint changes nothing: calls need no claim and may be repeated, and the first answer that is committed counts", "consumer", c.Name)
	}
	return st.newEffectsConsumer(newAsker(endpoint, effects), effects, config)
}

// newAsker returns a function that calls the endpoint and parses its response.
func newAsker(endpoint *httphandler.Handler, effects *sqlhandler.Effects) asker {
	return func(ctx context.Context, m *semel.Message) (*sqlhandler.Answer, error) {
		answer, err := endpoint.Ask(ctx, m)
		if err != nil || answer == nil {
			return &sqlhandler.Answer{}, err
		}
		return effects.Read(answer, m)
	}
}

// newAnswerHandler returns a handler that applies a response: first the statements, then the intents, then the
// result.
func newAnswerHandler[Tx any](run func(context.Context, Tx, *sqlhandler.Answer, *semel.Message) error, w *consumer.Intents[Tx]) func(context.Context, Tx, *sqlhandler.Answer, *semel.Message) error {
	return func(ctx context.Context, tx Tx, answer *sqlhandler.Answer, m *semel.Message) error {
		if err := run(ctx, tx, answer, m); err != nil {
			return err
		}
		if len(answer.Intents) > 0 {
			if err := w.Write(ctx, tx, m, answer.Intents...); err != nil {
				return err
			}
		}
		if answer.Result == nil {
			return nil
		}
		return consumer.KeepResult(ctx, tx, m, answer.Result)
	}
}

// namedStatements returns the statements that the policy defines for responses.
func namedStatements(c *policy.Consumer) (all []sqlhandler.Named) {
	for _, s := range c.Handler.HTTP.Effects.Statements {
		one := sqlhandler.Named{Name: s.Name, Statement: sqlhandler.Statement{SQL: s.SQL, Rows: s.Rows, Otherwise: otherwiseAction(s.Otherwise)}}
		for _, p := range s.Params {
			one.Params = append(one.Params, sqlhandler.TypedParam(p))
		}
		all = append(all, one)
	}
	return all
}

// warnNamed returns a function that logs a warning when a named statement changes no row. Each statement is
// logged at most once.
func (a *Assembly) warnNamed(consumer string) func(*semel.Message, string) {
	var warned sync.Map
	logger := a.options.Logger.With(slog.String("consumer", consumer))
	return func(m *semel.Message, name string) {
		if _, before := warned.LoadOrStore(name, true); !before {
			logger.Warn("a statement of an answer changed no row; its message counts as applied (set rows: to decide)",
				slog.String("statement", name), slog.String("id", legible.Printable(m.Identity.ID)))
		}
	}
}

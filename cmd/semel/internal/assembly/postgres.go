package assembly

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
)

// postgres is a PostgreSQL database. Statements are queued through pgx, except for consumers with a business
// key.
type postgres struct {
	pool   *pgxpool.Pool
	db     *sql.DB
	plain  *sqlstore.Store
	direct *pgxstore.Store
}

// connectTimeout is the timeout for a connection if the URL sets no timeout.
const connectTimeout = 10 * time.Second

// openPostgres opens a store without connecting yet.
func openPostgres(p *policy.Postgres, o openOptions) (tables, database, error) {
	to, listen, err := connectionStrings(p)
	if err != nil {
		return nil, nil, err
	}
	config, err := poolConfig(to, o.connections)
	if err != nil {
		return nil, nil, err
	}
	if given, err := url.Parse(to); err == nil && !given.Query().Has("default_query_exec_mode") {
		withoutNames(config, o.log)
	}
	if p.PasswordFile != "" {
		rereadPassword(config, secret{file: p.PasswordFile})
	}
	if host := plainHost(&config.ConnConfig.Config); host != "" && o.log != nil {
		o.log.Warn("the connection to the database may be unencrypted; add sslmode=verify-full to the url", "host", host)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, nil, err
	}
	d := &postgres{pool: pool, db: stdlib.OpenDBFromPool(pool)}
	d.plain, err = sqlstore.Postgres(d.db, sqlstore.Options{Schema: p.Schema, Prefix: p.Prefix, Cipher: o.cipher, EncryptedSince: o.encryptedSince})
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	d.direct, err = pgxstore.New(pool, pgxstore.Options{Schema: p.Schema, Prefix: p.Prefix, Listen: listen, Cipher: o.cipher, EncryptedSince: o.encryptedSince})
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return d.plain, d, nil
}

// poolConfig parses the connection string. The errors of poolConfig contain no part of the connection string,
// because even the port could be part of a password.
func poolConfig(text string, connections int) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(text)
	given, parseErr := url.Parse(text)
	if err != nil || parseErr != nil {
		return nil, errors.New("the url cannot be used; check its host, port and options, and the files that they name, " +
			"and write @ : / ? # % of a password as %40 %3A %2F %3F %23 %25")
	}
	options := given.Query()
	if !options.Has("pool_max_conns") {
		config.MaxConns = int32(connections)
	}
	if !options.Has("connect_timeout") {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "semel"
	}
	return config, nil
}

func (d *postgres) describe() string {
	c := d.pool.Config().ConnConfig
	return fmt.Sprintf("database %s at %s", c.Database, net.JoinHostPort(c.Host, fmt.Sprint(c.Port)))
}

func (d *postgres) Notify(ctx context.Context, consumer string) error {
	return d.direct.Notify(ctx, consumer)
}

func (d *postgres) Close() error {
	err := d.db.Close()
	d.pool.Close()
	return err
}

// explain puts the remedy in front of an error about an unreachable server. pgx repeats the error for each
// address, so a remedy at the end would be overlooked.
func (d *postgres) explain(err error) error {
	text := err.Error()
	if errors.Is(err, semel.ErrSchema) { // a schema error has one line per fault
		text = strings.ReplaceAll(text, "\n", "; ")
	}
	text = strings.Join(strings.Fields(text), " ")
	var refused *net.OpError
	var unknown *net.DNSError
	switch {
	case errors.As(err, &unknown):
		text = "the url has an unknown host; correct it: " + unknown.Error()
	case errors.As(err, &refused) && refused.Op == "dial":
		text = "no server listens there; start the server, or correct host and port in the url: " + refused.Error()
	case errors.Is(err, context.DeadlineExceeded):
		text = "the server did not answer in time; check whether it hangs, whether the host in the url is right, and whether a firewall blocks connections: " + text
	}
	return &remedyError{text, err}
}

func (d *postgres) try(ctx context.Context, h *sqlhandler.Handler, c *policy.Consumer) (int, error) {
	if usesQueue(c) {
		return h.TryQueued(ctx, d.db, d.direct)
	}
	return h.Try(ctx, d.db)
}

// usesQueue reports whether the consumer's statements are queued. A violation of a business key is
// only recognised if each statement is sent separately.
func usesQueue(c *policy.Consumer) bool { return c.Strategy.BusinessKey == nil }

func (d *postgres) violationCheck(constraint string) func(error) bool {
	return func(err error) bool { return sqlstore.Violates(err, constraint) }
}

func (d *postgres) consumer(ctx context.Context, h handlers, c *policy.Consumer, config consumer.Config) (Consumer, error) {
	plain, direct := d.plain, d.direct
	if c.Dedup != nil {
		var err error
		if plain, direct, err = d.adopt(ctx, adoptedTable(c)); err != nil {
			return nil, err
		}
	}
	if c.Retention.DailyPartitions {
		var err error
		if plain, direct, err = d.withDailyPartitions(ctx, c); err != nil {
			return nil, err
		}
	}
	if usesQueue(c) {
		w, err := consumer.NewIntents(d.direct.Queued()) // senders read only Semel's tables, so a table of the user is not needed here
		if err != nil {
			return nil, err
		}
		return newTxConsumer(direct.Queued(), h, runQueued, w, config)
	}
	w, err := consumer.NewIntents(d.plain)
	if err != nil {
		return nil, err
	}
	return newTxConsumer(plain, h, runSeparately, w, config)
}

func (d *postgres) newLeasedConsumer(call caller, config consumer.Config) (Consumer, error) {
	return consumer.NewLeased(d.direct, call, config)
}

func (d *postgres) newEffectsConsumer(ask asker, effects *sqlhandler.Effects, config consumer.Config) (Consumer, error) {
	w, err := consumer.NewIntents(d.direct.Queued())
	if err != nil {
		return nil, err
	}
	return consumer.NewCalling(d.direct.Queued(), ask, newAnswerHandler(effects.Queue, w), config)
}

// adopt returns the stores plain and direct, which then also write markers to the user's own deduplication
// table.
func (d *postgres) adopt(ctx context.Context, a sqlstore.Adopted) (plain *sqlstore.Store, direct *pgxstore.Store, err error) {
	if plain, err = d.plain.Adopt(ctx, a); err != nil {
		return nil, nil, err
	}
	direct, err = d.direct.Adopt(ctx, a)
	return plain, direct, err
}

// Dated returns the settings of a consumer's daily partitions. Partitions are also created for past days, as
// many as the retention covers.
func Dated(c *policy.Consumer) sqlstore.Dated {
	const day, most = 24 * time.Hour, 3650
	return sqlstore.Dated{Consumer: c.Name, IDTime: c.Retention.IDTime, Back: min(int(c.Retention.Keep/day)+1, most)}
}

// withDailyPartitions returns the stores plain and direct, which then keep markers in daily partitions.
func (d *postgres) withDailyPartitions(ctx context.Context, c *policy.Consumer) (plain *sqlstore.Store, direct *pgxstore.Store, err error) {
	o := Dated(c)
	if plain, err = d.plain.Dated(ctx, o); err != nil {
		return nil, nil, err
	}
	direct, err = d.direct.Dated(ctx, o)
	return plain, direct, err
}

func adoptedTable(c *policy.Consumer) sqlstore.Adopted {
	source, _ := c.Identity.ConstantSource()
	return sqlstore.Adopted{
		Consumer: c.Name, Source: source, Table: c.Dedup.Table, ID: c.Dedup.Columns.ID, ConsumerColumn: c.Dedup.Columns.Consumer,
		SourceColumn: c.Dedup.Columns.Source, AtColumn: c.Dedup.Columns.ProcessedAt, Values: c.Dedup.Values,
	}
}

// connectionStrings returns the connection strings of the store: the URL and the URL for notifications.
// connectionStrings inserts the contents of the files that the policy names. Errors do not contain the
// contents of the files.
func connectionStrings(p *policy.Postgres) (to, listen string, err error) {
	to, listen = p.URL, p.Listen
	if p.URLFile != "" {
		if to, err = (secret{file: p.URLFile}).read(); err != nil {
			return "", "", fmt.Errorf("postgres.url_file: %w; name a readable file with one line, the connection string", err)
		}
		if reason := policy.BadURL(to); reason != "" {
			return "", "", fmt.Errorf("postgres.url_file: %s: %s; write postgres://user:password@host:5432/database into it", p.URLFile, reason)
		}
	}
	if p.PasswordFile == "" {
		return to, listen, nil
	}
	password, err := secret{file: p.PasswordFile}.read()
	if err != nil {
		return "", "", fmt.Errorf("postgres.password_file: %w; name a readable file with one line, the password", err)
	}
	if to, err = withPassword(to, password); err == nil && listen != "" {
		listen, err = withPassword(listen, password)
	}
	return to, listen, err
}

// withPassword inserts a password into a connection string that has no password.
func withPassword(text, password string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("the connection string is invalid, so the password of postgres.password_file cannot be added to it")
	}
	_, has := u.User.Password()
	if has || u.Query().Has("password") {
		return "", errors.New("both the connection string and postgres.password_file have a password; remove one of them")
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}

// rereadPassword makes the pool read the password file for each new connection. If the password file cannot
// be read, the connection fails.
func rereadPassword(config *pgxpool.Config, password secret) {
	before := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		text, err := password.read()
		if err != nil {
			return fmt.Errorf("postgres.password_file: %w", err)
		}
		c.Password = text
		if before == nil {
			return nil
		}
		return before(ctx, c)
	}
}

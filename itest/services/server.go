package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/internal/freeport"
	"github.com/semel-go/semel/itest/must"
)

const standbyName = "semel_standby"

// Options are the options of a server that only one test uses. The zero value is a single server with PostgreSQL's
// default settings: fsync on, no timeouts.
type Options struct {
	// Settings are lines of postgresql.conf, each in the form "name = value".
	Settings []string
	// Standby also starts a standby. With a standby, every commit waits for the standby.
	Standby bool
	// Environment is added to the environment of the server, each entry in the form "NAME=value".
	Environment []string
	// Small gives the server a small file system that a test can fill: see Server.Small.
	Small bool
}

// Server is a PostgreSQL server that only one test uses. The port of the server stays the same after a restart. The
// methods of Server fail the test on errors, and must not be called concurrently.
type Server struct {
	privateServer
	in      programs
	standby *Server

	environment []string
	within      []string // command that starts the server's program inside the small file system
}

// StartPostgres starts a server for one test and returns when the server answers. When the test ends, the server ends
// and its data are removed. The server also ends if the test's process dies.
//
// StartPostgres needs PostgreSQL's programs on this machine, and fails the test if they are missing.
func StartPostgres(t testing.TB, o Options) *Server {
	t.Helper()
	in := findPrograms(t)
	s := newServer(t, in)
	in.copyTemplate(t, s.data())
	s.configure(o.Settings)
	s.environment = o.Environment
	if o.Small {
		s.within = in.limitedCommand(t, s.small())
	}
	if o.Standby {
		// The setting synchronous_standby_names is set before the server starts. After a reload, some commits might not
		// wait for the standby, because the process that informs the backends reads the setting a little later.
		s.configure([]string{"synchronous_standby_names = '" + standbyName + "'"})
	}
	s.Start()
	if o.Standby {
		s.standby = startStandby(s)
	}
	return s
}

func newServer(t testing.TB, in programs) *Server {
	t.Helper()
	s := &Server{privateServer: newPrivate(t, in), in: in}
	t.Cleanup(s.remove)
	return s
}

// startStandby starts a copy of a running server as its standby. After a promotion, commits of the copy do not wait for
// a standby.
func startStandby(primary *Server) *Server {
	primary.t.Helper()
	s := newServer(primary.t, primary.in)
	s.in.run(s.t, "pg_basebackup", "-D", s.data(), "-R", "-C", "-S", standbyName, "-X", "stream", "-c", "fast", "-N", "-d",
		fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=%s", primary.port, standbyName))
	s.configure([]string{"synchronous_standby_names = ''"})
	s.Start()
	primary.WaitSynchronous()
	return s
}

// WaitSynchronous returns when the standby is connected and commits wait for the standby.
func (s *Server) WaitSynchronous() {
	s.t.Helper()
	s.waitFor("its standby streams", func(ctx context.Context, c *pgconn.PgConn) bool {
		r := c.Exec(ctx, "select 1 from pg_stat_replication where state = 'streaming' and sync_state = 'sync'")
		all, err := r.ReadAll()
		return err == nil && len(all) == 1 && len(all[0].Rows) == 1
	})
}

// DSN returns the connection string of the database postgres on this server.
func (s *Server) DSN() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// FailoverDSN returns a connection string with the server and its standby. A client connects to the server that accepts
// writes.
func (s *Server) FailoverDSN() string {
	if s.standby == nil {
		return s.DSN()
	}
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write", s.port, s.standby.port)
}

// Standby returns the synchronous standby, or nil if [Options] has no standby.
func (s *Server) Standby() *Server { return s.standby }

// Start starts a server that was stopped or killed, and returns when the server answers. Start waits until the lock
// file of a killed server is gone.
func (s *Server) Start() {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		s.process = s.in.start(s)
		if s.waitReady(deadline) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("PostgreSQL in %s did not start within %s; the end of its log:\n%s", s.folder, patience, s.logEnd())
		}
		s.process.kill()
	}
}

// waitReady waits until the server is ready. The result is false if the server ended instead.
func (s *Server) waitReady(deadline time.Time) bool {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	ready := false
	err := waitUntil(ctx, func() bool {
		ready = s.ping(ctx) == nil
		return ready || s.process.hasEnded()
	})
	return err == nil && ready && !s.process.hasEnded()
}

func (s *Server) ping(ctx context.Context) error {
	c, err := pgconn.Connect(ctx, s.DSN())
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

// Stop stops the server in the regular way: the server closes sessions, rolls back open transactions and
// flushes data.
func (s *Server) Stop() {
	s.t.Helper()
	s.end(syscall.SIGINT, patience)
}

// Promote promotes a standby and returns when the standby accepts writes. Kill the primary first, because otherwise
// both servers accept writes.
func (s *Server) Promote() {
	s.t.Helper()
	// The call of pg_promote must not wait for the promotion. The call's snapshot could conflict with WAL that the
	// standby still has to replay, so that call and replay would wait until the server cancels the call.
	Exec(s.t, s.DSN(), "select pg_promote(wait => false)")
	s.waitFor("it takes writes", func(ctx context.Context, c *pgconn.PgConn) bool {
		_, err := c.Exec(ctx, "create temporary table takes_writes ()").ReadAll()
		return err == nil
	})
}

func (s *Server) waitFor(what string, is func(context.Context, *pgconn.PgConn) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := waitUntil(ctx, func() bool {
		c, err := pgconn.Connect(ctx, s.DSN())
		if err != nil {
			return false
		}
		defer func() { _ = c.Close(ctx) }()
		return is(ctx, c)
	})
	if err != nil {
		s.t.Fatalf("PostgreSQL in %s: waited %s until %s; the end of its log:\n%s", s.folder, patience, what, s.logEnd())
	}
}

func (s *Server) configure(settings []string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(strings.Join(settings, "\n") + "\n")
		err = errors.Join(err, f.Close())
	}
	must.OK(s.t, err)
}

func (s *Server) logEnd() string { return logEnd(s.folder) }

// Logged returns the number of lines of the server's log that contain the text.
func (s *Server) Logged(text string) int {
	s.t.Helper()
	return strings.Count(s.Log(), text)
}

// Log returns the server's log.
func (s *Server) Log() string {
	s.t.Helper()
	log := must.Get(os.ReadFile(filepath.Join(s.folder, "log")))(s.t)
	return string(log)
}

// logEnd returns the last part of the log in a server's folder.
func logEnd(folder string) string {
	log, err := os.ReadFile(filepath.Join(folder, "log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-2000):])
}

func freePort(t testing.TB) int {
	t.Helper()
	port, err := freeport.Choose()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

package services

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/itest/must"
)

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := must.Get(pgx.Connect(ctx, dsn))(t)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func number(t *testing.T, dsn, query string) int {
	t.Helper()
	var n int
	must.OK(t, connect(t, dsn).QueryRow(context.Background(), query).Scan(&n))
	return n
}

func TestEachTestHasADatabaseOfItsOwnThatGoesWithIt(t *testing.T) {
	var name string
	t.Run("first", func(t *testing.T) {
		dsn := Postgres(t)
		name = databaseOf(t, dsn)
		Exec(t, dsn, "create table things (id int)")
	})
	dsn := Postgres(t)
	if n := number(t, dsn, "select count(*) from pg_database where datname = '"+name+"'"); n != 0 {
		t.Errorf("the first test's database is still there")
	}
	if n := number(t, dsn, "select count(*) from pg_tables where tablename = 'things'"); n != 0 {
		t.Errorf("the second test sees the first one's table")
	}
}

func TestADatabaseBehindPgBouncerIsTheSameDatabase(t *testing.T) {
	direct, pooled := Pooled(t)
	Exec(t, pooled, "create table things (id int)", "insert into things values (7)")
	if n := number(t, direct, "select id from things"); n != 7 {
		t.Errorf("directly from the server: %d, want 7", n)
	}
}

func TestAServerThatWasKilledComesBackWithWhatWasCommitted(t *testing.T) {
	s := StartPostgres(t, Options{Settings: []string{"work_mem = '5MB'"}})
	Exec(t, s.DSN(), "create table things (id int)", "insert into things values (7)")
	s.Kill()
	if err := s.ping(context.Background()); err == nil {
		t.Fatal("a killed server answers")
	}
	s.Start()
	if n := number(t, s.DSN(), "select id from things where current_setting('work_mem') = '5MB' and current_setting('fsync') = 'on'"); n != 7 {
		t.Errorf("after the restart there is %d, want 7", n)
	}
	s.Stop()
	s.Start()
	if n := number(t, s.DSN(), "select id from things"); n != 7 {
		t.Errorf("after the second restart there is %d, want 7", n)
	}
}

func TestAFrozenServerAnswersAgainWhenItIsThawed(t *testing.T) {
	s := StartPostgres(t, Options{})
	c := connect(t, s.DSN())
	s.Freeze()
	late := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), "select 1")
		late <- err
	}()
	if answersWithin(late, 200*time.Millisecond) {
		t.Error("a frozen server answers")
	}
	s.Thaw()
	if err := <-late; err != nil {
		t.Errorf("the thawed server returned %v", err)
	}
}

func answersWithin(answer <-chan error, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	select {
	case <-answer:
		return true
	case <-ctx.Done():
		return false
	}
}

func TestACommitWaitsForASynchronousStandbyAndSurvivesItsPromotion(t *testing.T) {
	s := StartPostgres(t, Options{Standby: true})
	Exec(t, s.DSN(), "create table things (id int)")
	c := connect(t, s.DSN())
	s.Standby().Freeze()
	late := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), "insert into things values (7)")
		late <- err
	}()
	if answersWithin(late, 200*time.Millisecond) {
		t.Error("a commit did not wait for the frozen standby")
	}
	s.Standby().Thaw()
	must.OK(t, <-late)
	s.Kill()
	s.Standby().Promote()
	Exec(t, s.FailoverDSN(), "insert into things values (8)")
	if n := number(t, s.Standby().DSN(), "select sum(id) from things"); n != 15 {
		t.Errorf("after the failover there is %d, want 15", n)
	}
}

func TestNothingOfAPrivateServerIsLeft(t *testing.T) {
	var s *Server
	t.Run("a test with a server", func(t *testing.T) { s = StartPostgres(t, Options{}) })
	if _, err := os.Stat(s.folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
	if !s.process.hasEnded() {
		t.Error("its server still runs")
	}
}

// failureRecorder is a testing.TB that records the text of a failure.
type failureRecorder struct {
	testing.TB
	said string
}

func (f *failureRecorder) Helper() {}

func (f *failureRecorder) Fatalf(format string, _ ...any) {
	f.said = format
	panic(f)
}

func TestATestWithoutItsServerFailsAndSaysHowToStartIt(t *testing.T) {
	t.Setenv("SEMEL_POSTGRES", "")
	f := &failureRecorder{TB: t}
	defer func() {
		if recover() != f || f.said == "" {
			t.Errorf("the test did not fail with the expected message")
		}
	}()
	Postgres(f)
}

package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

func TestPostgresKeepsLeasedKeys(t *testing.T) {
	db := newDatabase(t)
	storetest.Keys(t, storetest.KeyHarness{Open: func(t testing.TB) storetest.KeyInstance {
		return storetest.KeyInstance{Store: newFixture(t, db, sqlstore.Options{}).store, Pass: storetest.RealTime}
	}})
	aheads := newFixture(t, db, sqlstore.Options{})
	sqlsuite.KeysAhead(t, aheads.store, func(by time.Duration, columns ...string) {
		for _, c := range columns {
			aheads.exec(t, fmt.Sprintf("update in.semel_keys set %[1]s = %[1]s + interval '%[2]d ms'", c, by.Milliseconds()))
		}
	})
	t.Run("law_11_keys_whose_time_is_over_go_as_others_come", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		claim := func(id string, keep time.Duration) {
			t.Helper()
			c := keystore.Claim{Key: semel.Key{Consumer: "billing", ID: id}, Token: store.NewToken(), Lease: time.Millisecond, Keep: keep}
			if a, err := s.store.ClaimKey(t.Context(), c); err != nil || a.State != keystore.Claimed {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			claim(id, 50*time.Millisecond)
		}
		storetest.RealTime(t, 100*time.Millisecond)
		claim("e", time.Hour)
		claim("f", time.Hour)
		var n int
		if err := s.db.QueryRow(s.inSchema("select count(*) from in.semel_keys")).Scan(&n); err != nil || n != 2 {
			t.Errorf("%d keys are there, want 2: %v", n, err)
		}
	})
	t.Run("law_5_who_waits_for_a_claim_that_is_being_ended_hears_of_its_end", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		c := keystore.Claim{Key: semel.Key{Consumer: "billing", ID: "a"}, Token: store.NewToken(), Lease: time.Minute, Keep: time.Hour}
		if _, err := s.store.ClaimKey(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		tx, err := s.db.BeginTx(t.Context(), nil)
		if err == nil {
			_, err = tx.Exec(s.inSchema("update in.semel_keys set ended = 1"))
		}
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan keystore.Answer, 1)
		go func() {
			other := c
			other.Token = store.NewToken()
			a, _ := s.store.ClaimKey(context.WithoutCancel(t.Context()), other)
			answers <- a
		}()
		s.waitsForLock(t)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if a := <-answers; a.State != keystore.Completed {
			t.Errorf("it is %v", a.State)
		}
	})
}

// waitsForLock returns when a transaction waits for the lock of another transaction.
func (s *fixture) waitsForLock(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); storetest.RealTime(t, 10*time.Millisecond) {
		var n int
		err := s.db.QueryRow("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&n)
		if err != nil && err != sql.ErrNoRows {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
	t.Fatal("nobody waits")
}

package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/sqlstore"
)

// Asked selects what to check.
type Asked struct {
	// Consumer selects one consumer by name; empty for all consumers.
	Consumer string
	// If Deep is true, each inbox row whose number is greater than From is also compared with its marker and its
	// stream.
	Deep bool
	From int64
	// Within is the timeout for each database and each broker.
	Within time.Duration
}

// Opener opens the stores of the policy for which want returns true.
type Opener func(want func(*policy.Store) bool) (*assembly.Assembly, error)

// Subjects returns the selected consumers of a policy, with facts from store and broker. If facts are
// missing, the Subject says why. If ctx ends, Subjects returns only the consumers that were already read.
func Subjects(ctx context.Context, p *policy.Policy, asked Asked, open Opener) []*Subject {
	var all []*Subject
	for _, c := range p.Consumers {
		if asked.Consumer != "" && c.Name != asked.Consumer {
			continue
		}
		s := &Subject{Policy: p, Consumer: c, Source: p.Source(c.From), Store: p.Store(c.Store)}
		s.prove(p)
		s.read(ctx, asked, open)
		if ctx.Err() != nil && (s.Facts == nil || s.Facts.Deep == nil) {
			return all // without facts no question could be answered
		}
		all = append(all, s)
		if ctx.Err() != nil {
			return all
		}
	}
	return all
}

// read reads the facts from store and broker.
func (s *Subject) read(ctx context.Context, asked Asked, open Opener) {
	if s.Store.Redis != nil {
		s.NoFacts = "store " + s.Store.Name + " is in Redis and has keys only"
	}
	a, err := open(func(of *policy.Store) bool { return of.Name == s.Store.Name && of.Redis == nil })
	if err != nil {
		s.NoFacts = singleLine(err)
		if s.kafka() != nil {
			s.Broker = &Broker{NoHorizon: s.NoFacts, NoPositions: s.NoFacts}
		}
		return
	}
	defer a.Close()
	if s.Store.Redis == nil {
		soon, cancel := context.WithTimeout(ctx, asked.Within)
		s.Facts, err = s.facts(soon, a, a.Stores[0])
		cancel()
		if err != nil {
			s.Facts, s.NoFacts = nil, singleLine(err)
			s.keepMissing(err)
		}
	}
	if s.kafka() != nil {
		s.Broker = s.broker(ctx, a, asked.Within)
	}
	if asked.Deep && s.Facts != nil {
		s.Facts.Deep = compareRows(ctx, asked.From, asked.Within, func(ctx context.Context, after int64, most int) (sqlstore.Looked, error) {
			found, err := a.Stores[0].Denials(ctx, s.Facts.Kept, after, most)
			found.Denied = slices.DeleteFunc(found.Denied, s.isExplained)
			return found, err
		})
	}
}

// keepMissing handles an error about a missing table or column: keepMissing stores the error in s.Schema.
// The schema check looks only at constraints and indexes. If a foreign table has the name of one of Semel's
// tables, the fault appears only when Semel reads the table.
func (s *Subject) keepMissing(err error) {
	var state interface{ SQLState() string }
	switch {
	case errors.As(err, &state):
		if code := state.SQLState(); code != "42P01" && code != "42703" { // undefined_table and undefined_column
			return
		}
	case !strings.Contains(err.Error(), "no such column") && !strings.Contains(err.Error(), "no such table"): // SQLite has no error codes for missing tables and columns
		return
	}
	if s.Schema == "" {
		s.Schema = singleLine(err)
	}
}

func singleLine(err error) string {
	return operate.Plain(strings.Join(strings.Fields(err.Error()), " "))
}

// facts reads the facts from a store. If the tables do not fit this release, facts reads no rows.
func (s *Subject) facts(ctx context.Context, a *assembly.Assembly, store *assembly.Store) (*Facts, error) {
	f := &Facts{}
	if err := a.Check(ctx); errors.Is(err, semel.ErrSchema) {
		s.Schema = singleLine(err)
		return nil, errors.New("the tables do not fit this release (question 7)")
	} else if err != nil {
		return nil, err
	}
	kept, err := store.KeptAs(ctx, s.Consumer.Name)
	if err != nil {
		return nil, err
	}
	f.Kept = kept
	for _, ask := range []func() error{
		func() (err error) { f.Names, err = store.Consumers(ctx); return err },
		func() (err error) { f.Derivations, err = store.Derivations().Derivations(ctx, ""); return err },
		func() (err error) { f.Owner, err = store.Derivations().Owner(ctx, s.Consumer.Name); return err },
		func() (err error) { f.Pending, err = store.Pending(ctx, kept); return err },
		func() (err error) { f.Upkeep, err = store.Upkeep(ctx, kept); return err },
		func() error {
			all, err := store.Retentions(ctx, kept)
			if len(all) == 1 {
				f.Retention = &all[0]
			}
			return err
		},
		func() error {
			key := s.Consumer.Strategy.BusinessKey
			if key == nil {
				return nil
			}
			there, err := store.HasUnique(ctx, key.Constraint)
			f.Unique = &there
			return err
		},
	} {
		if err := ask(); err != nil {
			return nil, fmt.Errorf("store %s: %w", store.Name(), err)
		}
	}
	return f, nil
}

// broker reads the facts from the brokers.
func (s *Subject) broker(ctx context.Context, a *assembly.Assembly, within time.Duration) *Broker {
	b := &Broker{}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var err error
	if b.Horizon, err = a.Horizon(ctx, s.Consumer); err != nil {
		b.NoHorizon = singleLine(err)
	}
	if s.Store.Redis != nil {
		b.NoPositions = "Redis has no positions to compare with the committed offsets"
		return b
	}
	if s.Facts == nil {
		b.NoPositions = s.NoFacts
		return b
	}
	recovery, err := a.Recovery(s.Consumer)
	if err != nil {
		b.NoPositions = singleLine(err)
		return b
	}
	defer recovery.Close()
	all, err := operate.Positions(ctx, s.Consumer.Name, s.kafka().GroupOf(s.Consumer), recovery)
	if err != nil {
		s.keepMissing(err)
		b.NoPositions = singleLine(err)
		return b
	}
	for _, v := range all {
		b.Partitions++
		if v.Ahead() {
			b.Ahead++
			b.Missing += v.Missing
		}
	}
	return b
}

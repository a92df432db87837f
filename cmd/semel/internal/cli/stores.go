package cli

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// open opens the store of this name, or all, for a command that is not run.
func (c *common) open(p *policy.Policy, store string, create bool) (*assembly.Assembly, error) {
	if store != "" && p.Store(store) == nil {
		return nil, c.noStore(p, store)
	}
	if !p.HasTables(store) {
		return nil, usage("%s: Redis keeps leased keys, and neither tables nor rows: this command is for databases", c.config)
	}
	log, _, err := c.log(c.Err)
	if err != nil {
		return nil, err
	}
	a, err := assembly.Open(p, assembly.Options{Logger: log, Patient: true},
		func(s *policy.Store) bool { return store == "" || s.Name == store },
		func(*policy.Store) bool { return create })
	return a, failed(err)
}

func (c *common) close(a *assembly.Assembly) {
	if err := a.Close(); err != nil {
		printError(c.Err, fmt.Errorf("close the stores: %w", err))
	}
}

// openBoxes opens the inboxes of the store of this name, or of all.
func (c *common) openBoxes(ctx context.Context, store string) (*assembly.Assembly, error) {
	p, store, err := c.loadFor(store)
	if err != nil {
		return nil, err
	}
	return c.openChecked(ctx, p, store)
}

// loadFor reads the policy, but where --store is the place of a database: then
// there need be none.
func (c *common) loadFor(store string) (*policy.Policy, string, error) {
	if !policy.IsPlace(store) {
		p, err := c.load()
		return p, store, err
	}
	p, err := policy.Bare(store)
	if err != nil {
		return nil, "", usage("--store: %v", err)
	}
	c.config = p.File
	return p, p.Stores[0].Name, nil
}

// openBox opens the one inbox that row numbers belong to: of --store, of the
// store of --consumer, or of the only store.
func (c *common) openBox(ctx context.Context, store string) (*assembly.Assembly, error) {
	p, store, err := c.loadFor(store)
	if err != nil {
		return nil, err
	}
	public, _ := generationOf(c.consumer)
	if consumer := p.Consumer(public); store == "" && consumer != nil {
		store = consumer.Store
	}
	if store == "" && len(p.Databases()) > 1 {
		return nil, usage("%s has %d stores, each with row numbers of its own; name one with --store", c.config, len(p.Databases()))
	}
	return c.openChecked(ctx, p, store)
}

func (c *common) openChecked(ctx context.Context, p *policy.Policy, store string) (*assembly.Assembly, error) {
	a, err := c.open(p, store, false)
	if err != nil {
		return nil, err
	}
	if err := a.Check(ctx); err != nil {
		c.close(a)
		return nil, failed(err)
	}
	return a, nil
}

func boxOf(s *assembly.Store) operate.Box {
	return operate.Box{Store: s.Name(), Inbox: s, Requeuer: s, Editor: s, Resolver: s, Markers: s, Streams: s.Streams(), Lines: s.Lines()}
}

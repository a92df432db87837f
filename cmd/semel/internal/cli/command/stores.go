package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// Open opens the named store, or all stores if the name is empty. `semel run` does not use Open.
func (c *CLI) Open(p *policy.Policy, store string, create bool) (*assembly.Assembly, error) {
	if store != "" && p.Store(store) == nil {
		return nil, c.noStore(p, store)
	}
	if !p.HasTables(store) {
		return nil, UsageError("%s: Redis keeps leased keys, and neither tables nor rows: this command is for databases", c.Config)
	}
	log, _, err := c.Log(c.Err)
	if err != nil {
		return nil, err
	}
	a, err := assembly.Open(p, assembly.Options{Logger: log, Patient: true},
		func(s *policy.Store) bool { return store == "" || s.Name == store },
		func(*policy.Store) bool { return create })
	return a, Failed(err)
}

// Close closes the stores. Close prints errors instead of returning the errors.
func (c *CLI) Close(a *assembly.Assembly) {
	if err := a.Close(); err != nil {
		printError(c.Err, fmt.Errorf("close the stores: %w", err))
	}
}

// OpenBoxes opens the named store, or all stores if the name is empty, and checks that the tables fit this
// release.
func (c *CLI) OpenBoxes(ctx context.Context, store string) (*assembly.Assembly, error) {
	p, store, err := c.LoadFor(store)
	if err != nil {
		return nil, err
	}
	return c.OpenChecked(ctx, p, store)
}

// LoadFor reads the policy. If store is the location of a database, LoadFor returns a policy with only that
// store and reads no file.
func (c *CLI) LoadFor(store string) (*policy.Policy, string, error) {
	if !policy.IsPlace(store) {
		p, err := c.Load()
		if _, noPolicy := os.Stat(c.Config); err != nil && errors.Is(noPolicy, fs.ErrNotExist) {
			err = cmp.Or(bareFile(store), err)
		}
		return p, store, err
	}
	p, err := policy.Bare(store)
	if err != nil {
		return nil, "", UsageError("--store: %v", err)
	}
	c.Config = p.File
	return p, p.Stores[0].Name, nil
}

// bareFile returns an error if the value of --store is the name of a file without the prefix sqlite:.
func bareFile(store string) error {
	if info, err := os.Stat(store); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return UsageError("--store %q is a file; write --store sqlite:%s", store, store)
}

// OpenBox opens the one store to which row numbers on the command line belong: the store in --store, the
// store of the consumer in --consumer, or the only store of the policy.
func (c *CLI) OpenBox(ctx context.Context, store string) (*assembly.Assembly, error) {
	p, store, err := c.LoadFor(store)
	if err != nil {
		return nil, err
	}
	public, _ := GenerationOf(c.Consumer)
	if consumer := p.Consumer(public); store == "" && consumer != nil {
		store = consumer.Store
	}
	if store == "" && len(p.Databases()) > 1 {
		return nil, UsageError("%s has %d stores, each with row numbers of its own; name one with --store", c.Config, len(p.Databases()))
	}
	return c.OpenChecked(ctx, p, store)
}

// OpenChecked opens the named store, or all stores if the name is empty. OpenChecked returns an error if
// tables do not fit this release.
func (c *CLI) OpenChecked(ctx context.Context, p *policy.Policy, store string) (*assembly.Assembly, error) {
	a, err := c.Open(p, store, false)
	if err != nil {
		return nil, err
	}
	if err := a.Check(ctx); err != nil {
		c.Close(a)
		return nil, Failed(err)
	}
	return a, nil
}

// BoxOf returns the inbox of a store.
func BoxOf(s *assembly.Store) operate.Box {
	return operate.Box{Store: s.Name(), Inbox: s, Requeuer: s, Editor: s, Resolver: s, Markers: s, Streams: s.Streams(), Lines: s.Lines()}
}

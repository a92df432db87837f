package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/spelling"
	"github.com/semel-go/semel/store"
)

// A filter that is mistyped must not look like "nothing there".

// noConsumer refuses the name of a consumer that does not exist.
func (c *common) noConsumer(p *policy.Policy, name string) error {
	var names []string
	for _, consumer := range p.Consumers {
		names = append(names, consumer.Name)
	}
	return c.noneOfThisName("consumer", name, names)
}

// noStore refuses the name of a store that the policy does not have.
func (c *common) noStore(p *policy.Policy, name string) error {
	var names []string
	for _, store := range p.Stores {
		names = append(names, store.Name)
	}
	return c.noneOfThisName("store", name, names)
}

// noneOfThisName says which name was probably meant, or which there are. kind is
// also the name of the flag.
func (c *common) noneOfThisName(kind, name string, names []string) error {
	if meant := spelling.Nearest(name, names, mostMistyped); meant != "" {
		return usage("--%s %q: %s has no %s of this name; did you mean %s?", kind, name, c.config, kind, meant)
	}
	if len(names) == 0 {
		return usage("--%s %q: %s has no row of a %s of this name", kind, name, c.config, kind)
	}
	return usage("--%s %q: %s has no %s of this name; it has %s", kind, name, c.config, kind, strings.Join(names, ", "))
}

// refuseStranger refuses the name of a consumer that is neither in the policy
// nor has a row: one that was removed from the policy may have left some.
func (c *common) refuseStranger(ctx context.Context, a *assembly.Assembly, name string) error {
	public, _ := admin.GenerationOf(name)
	if name == "" || a.Policy().Consumer(name) != nil || a.Policy().Consumer(public) != nil {
		return nil
	}
	for _, s := range a.Stores {
		rows, err := s.Rows(ctx, store.RowFilter{Consumer: name, Limit: 1})
		if err != nil {
			return failed(fmt.Errorf("store %s: %w", s.Name(), err))
		}
		if len(rows) > 0 {
			return nil
		}
	}
	return c.noConsumer(a.Policy(), name)
}

// pointAtReasons says, where no row has the reason that was asked for, which
// reasons there are.
func (c *common) pointAtReasons(ctx context.Context, a *assembly.Assembly, f store.RowFilter) error {
	if f.Reason == "" {
		return nil
	}
	asked, counts := f.Reason, map[semel.Reason]int{}
	f.Reason = ""
	for _, s := range a.Stores {
		groups, err := boxOf(s).Groups(ctx, f)
		if err != nil {
			return failed(err)
		}
		for _, g := range groups {
			counts[g.Reason] += g.Count
		}
	}
	if len(counts) > 0 {
		fmt.Fprintf(c.Err, "--reason %q: no row has this reason; there are %s\n", asked, byReason(counts))
	}
	return nil
}

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/spelling"
	"github.com/semel-go/semel/store"
)

// NoConsumer refuses the name of a consumer that does not exist: a filter that is mistyped must
// not look like "nothing there".
func (c *CLI) NoConsumer(p *policy.Policy, name string) error {
	var names []string
	for _, consumer := range p.Consumers {
		names = append(names, consumer.Name)
	}
	return c.NoneOfThisName("consumer", name, names)
}

// noStore refuses the name of a store that the policy does not have.
func (c *CLI) noStore(p *policy.Policy, name string) error {
	var names []string
	for _, store := range p.Stores {
		names = append(names, store.Name)
	}
	return c.NoneOfThisName("store", name, names)
}

// NoneOfThisName says which name was probably meant, or which there are. kind is
// also the name of the flag.
func (c *CLI) NoneOfThisName(kind, name string, names []string) error {
	if meant := spelling.Nearest(name, names, mostMistyped); meant != "" {
		return UsageError("--%s %q: %s has no %s of this name; did you mean %s?", kind, name, c.Config, kind, meant)
	}
	if len(names) == 0 {
		return UsageError("--%s %q: %s has no row of a %s of this name", kind, name, c.Config, kind)
	}
	return UsageError("--%s %q: %s has no %s of this name; it has %s", kind, name, c.Config, kind, strings.Join(names, ", "))
}

// RefuseUnknownConsumer refuses the name of a consumer that is neither in the policy
// nor has a row: one that was removed from the policy may have left some.
func (c *CLI) RefuseUnknownConsumer(ctx context.Context, a *assembly.Assembly, name string) error {
	public, _ := admin.GenerationOf(name)
	if name == "" || a.Policy().Consumer(name) != nil || a.Policy().Consumer(public) != nil {
		return nil
	}
	for _, s := range a.Stores {
		rows, err := s.Rows(ctx, store.RowFilter{Consumer: name, Limit: 1})
		if err != nil {
			return Failed(fmt.Errorf("store %s: %w", s.Name(), err))
		}
		if len(rows) > 0 {
			return nil
		}
	}
	return c.NoConsumer(a.Policy(), name)
}

// firstGeneration ends the name of a consumer's first generation where somebody means that, and
// not the active one. It is kept under the consumer's own name.
const firstGeneration = "@0"

// GenerationOf takes apart what somebody names; without a generation it is -1.
func GenerationOf(name string) (consumer string, number int64) {
	if public, first := strings.CutSuffix(name, firstGeneration); first {
		return public, 0
	}
	if public, number := admin.GenerationOf(name); number > 0 {
		return public, number
	}
	return name, -1
}

// ActiveName is the name under which records of a consumer stand now, for a filter; a name that
// nobody knows is refused.
func (c *CLI) ActiveName(ctx context.Context, a *assembly.Assembly, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	kept, generational, err := ActiveNameOf(ctx, a.Stores, name)
	if err != nil || generational {
		return kept, err
	}
	return name, c.RefuseUnknownConsumer(ctx, a, name)
}

// ActiveNameOf is inActive of some stores; false: none of them knows a generation of the consumer,
// and its name is what it is.
func ActiveNameOf(ctx context.Context, stores []*assembly.Store, name string) (kept string, generational bool, err error) {
	public, number := GenerationOf(name)
	for _, s := range stores {
		all, err := s.Generations(ctx, public)
		if err != nil {
			return "", false, Failed(fmt.Errorf("store %s: %w", s.Name(), err))
		}
		for _, g := range all {
			generational = true
			if number < 0 && g.State == generations.Active || g.Number == number {
				return admin.GenerationName(public, g.Number), true, nil
			}
		}
	}
	if generational {
		return "", true, UsageError("--consumer %s: %s has no generation %d", name, public, number)
	}
	return name, false, nil
}

// AllNames are the names under which records of a consumer stand, of each generation; of one that
// is named with its generation it is that name alone.
func (c *CLI) AllNames(ctx context.Context, a *assembly.Assembly, name string) (names []string, err error) {
	if _, number := GenerationOf(name); number >= 0 {
		one, err := c.ActiveName(ctx, a, name)
		return []string{one}, err
	}
	for _, s := range a.Stores {
		all, err := s.Generations(ctx, name)
		if err != nil {
			return nil, Failed(fmt.Errorf("store %s: %w", s.Name(), err))
		}
		for _, g := range all {
			names = append(names, admin.GenerationName(name, g.Number))
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		return slices.Compact(names), nil
	}
	return []string{name}, c.RefuseUnknownConsumer(ctx, a, name)
}

// RefuseIfUnworked says of the name under which a row stands why nobody would work on it: the policy has
// no such consumer, or the consumer has left the row's generation. It is nil where somebody does.
func RefuseIfUnworked(ctx context.Context, a *assembly.Assembly, s *assembly.Store) func(string) error {
	known := map[string]error{}
	return func(name string) error {
		why, found := known[name]
		if !found {
			why = Unworked(ctx, a.Policy(), s, name)
			known[name] = why
		}
		return why
	}
}

// Unworked says why nobody would work on rows under a name; nil where somebody does.
func Unworked(ctx context.Context, p *policy.Policy, s *assembly.Store, name string) error {
	public, number := admin.GenerationOf(name)
	if len(p.Consumers) > 0 && p.Consumer(public) == nil {
		return fmt.Errorf("the policy has no consumer %q; name the policy file of that consumer", public)
	}
	all, err := s.Generations(ctx, public)
	if err != nil {
		return err
	}
	for _, g := range all {
		switch {
		case g.Number != number:
		case g.State == generations.Active || g.State == generations.Building:
			return nil
		default:
			return errors.New("its consumer has left generation " + fmt.Sprint(number) + ", which is " + g.State.String() + "; whatever takes effect does so in the active one")
		}
	}
	return nil
}

// controlledAs is the name by which operators want something of whoever works on these rows: a
// rebuild is paused by its generation's name, and the consumer by its own.
func controlledAs(ctx context.Context, s *assembly.Store, name string) (string, error) {
	public, _ := admin.GenerationOf(name)
	if public == name {
		return name, nil
	}
	active, err := s.KeptAs(ctx, public)
	if err != nil {
		return "", fmt.Errorf("consumer %s: its generations: %w", legible.Printable(public), err)
	}
	if active == name {
		return public, nil
	}
	return name, nil
}

// KnownConsumers are the consumers of a store that the policy has, and then those that it has not
// and the store knows.
func KnownConsumers(p *policy.Policy, store string, known []string) []string {
	var names []string
	for _, consumer := range p.Consumers {
		if consumer.Store == store {
			names = append(names, consumer.Name)
		}
	}
	for _, name := range known {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// PausedWhy says that a consumer is paused, by whom and why; empty if it is not.
func PausedWhy(ctx context.Context, s *assembly.Store, consumer string) (string, error) {
	consumer, err := controlledAs(ctx, s, consumer)
	if err != nil {
		return "", err
	}
	v, err := operate.ControlOf(ctx, s.Name(), s, consumer)
	if err != nil || !v.Paused {
		return "", err
	}
	return fmt.Sprintf("consumer %s is paused by %s: %s", legible.Printable(consumer), legible.Printable(v.Pause.By), legible.Printable(v.Pause.Why)), nil
}

// HasMarkers says of a consumer that there is nothing to compare with.
func HasMarkers(p *policy.Policy, of *policy.Consumer) error {
	if p.Store(of.Store).Redis != nil {
		return UsageError("consumer %s keeps keys in store %s for a time, and no markers to compare with", of.Name, of.Store)
	}
	return nil
}

// KeptSince is since when the markers of a consumer are all kept; zero if they always were.
func KeptSince(ctx context.Context, s *assembly.Store, consumer string) (time.Time, error) {
	all, err := s.Retentions(ctx, consumer)
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	return all[0].Low, nil
}

// WaitingStates are the states of a row that is, or will be, worked on.
func WaitingStates() []store.RowState {
	return []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateBlocked}
}

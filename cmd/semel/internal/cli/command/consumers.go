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

// NoConsumer returns the error for a consumer name that is not in the policy. If commands accepted unknown
// names, a misspelled name would look like an empty result.
func (c *CLI) NoConsumer(p *policy.Policy, name string) error {
	var names []string
	for _, consumer := range p.Consumers {
		names = append(names, consumer.Name)
	}
	return c.NoneOfThisName("consumer", name, names)
}

func (c *CLI) noStore(p *policy.Policy, name string) error {
	if err := bareFile(name); err != nil {
		return err
	}
	var names []string
	for _, store := range p.Stores {
		names = append(names, store.Name)
	}
	return c.NoneOfThisName("store", name, names)
}

// NoneOfThisName returns the error for an unknown name. The text of the error suggests the most similar name,
// or lists all names. The parameter kind is "consumer" or "store", which is also the name of the flag.
func (c *CLI) NoneOfThisName(kind, name string, names []string) error {
	if meant := spelling.Nearest(name, names, mostMistyped); meant != "" {
		return UsageError("--%s %q: %s has no %s of this name; did you mean %s?", kind, name, c.Config, kind, meant)
	}
	if len(names) == 0 {
		return UsageError("--%s %q: %s has no row of a %s of this name", kind, name, c.Config, kind)
	}
	return UsageError("--%s %q: %s has no %s of this name; it has %s", kind, name, c.Config, kind, strings.Join(names, ", "))
}

// RefuseUnknownConsumer returns an error if the consumer is neither in the policy nor has rows. A consumer
// that was removed from the policy can still have rows.
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

// firstGeneration is the suffix with which a user names the first generation of a consumer. A name without a
// suffix means the active generation. In a store, the records of the first generation have the consumer's
// name without a suffix.
const firstGeneration = "@0"

// GenerationOf splits a name into consumer and generation. If the name has no generation, number is -1.
func GenerationOf(name string) (consumer string, number int64) {
	if public, first := strings.CutSuffix(name, firstGeneration); first {
		return public, 0
	}
	if public, number := admin.GenerationOf(name); number > 0 {
		return public, number
	}
	return name, -1
}

// ActiveName returns the name under which stores keep the records of a consumer. If the name contains a
// generation, the records are those of this generation, otherwise those of the active generation. ActiveName
// returns an error for an unknown consumer.
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

// ActiveNameOf returns the same name as ActiveName, for the given stores. If no store knows a generation of
// the consumer, the result generational is false, and the result kept equals the parameter name.
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

// AllNames returns the names under which stores keep the records of a consumer, one name per generation. If
// name contains a generation, AllNames returns only the name for that generation.
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

// RefuseIfUnworked returns a function that says why a row would not reach a handler: no consumer processes
// the row, or the policy has no handler for the type of its message. The returned function calls Unworked
// once for each consumer and keeps the results.
func RefuseIfUnworked(ctx context.Context, a *assembly.Assembly, s *assembly.Store) func(store.StoredRow) error {
	known := map[string]error{}
	return func(r store.StoredRow) error {
		name := r.Key.Consumer
		why, found := known[name]
		if !found {
			why = Unworked(ctx, a.Policy(), s, name)
			known[name] = why
		}
		public, _ := admin.GenerationOf(name)
		if of := a.Policy().Consumer(public); why == nil && of != nil && r.Message != nil && r.Unreadable == "" {
			return unhandled(ctx, s, of, r)
		}
		return why
	}
}

// unhandled returns an error if the consumer has no handler for the type of a row. If the stored type has no handler,
// unhandled reads the type from the body, as the consumer does at a retry, because the row may have been stored before
// the policy had a selector for the type.
func unhandled(ctx context.Context, s *assembly.Store, of *policy.Consumer, r store.StoredRow) error {
	why := of.Unhandled(r.Message)
	if why == nil || of.Type == "" {
		return why
	}
	rows, err := s.Rows(ctx, store.RowFilter{Numbers: []int64{r.Number}, Bodies: true, Limit: 1})
	switch {
	case err != nil:
		return fmt.Errorf("store %s: row %d: %w", s.Name(), r.Number, err)
	case len(rows) == 0 || rows[0].Message == nil || rows[0].Unreadable != "":
		return why
	}
	return of.Unhandled(of.Typed(rows[0].Message))
}

// Unworked returns an error if no consumer processes the rows that are stored under name. No consumer
// processes the rows if the policy has no such consumer, or if the consumer works in another generation.
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

// controlledAs returns the name under which operators pause the consumer that processes the given rows. For a
// rebuild, the name contains the generation. For the active generation, the name is the consumer's name
// without a generation.
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

// KnownConsumers returns the names of a store's consumers. The consumers of the policy are first, followed
// by the remaining names in known.
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

// PausedWhy returns a sentence about who paused the consumer and why, or "" if the consumer is not paused.
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

// HasMarkers returns an error if the consumer's store has no markers.
func HasMarkers(p *policy.Policy, of *policy.Consumer) error {
	if p.Store(of.Store).Redis != nil {
		return UsageError("consumer %s keeps keys in store %s for a time, and no markers to compare with", of.Name, of.Store)
	}
	return nil
}

// KeptSince returns the time after which all markers of the consumer still exist; zero if no marker was
// removed.
func KeptSince(ctx context.Context, s *assembly.Store, consumer string) (time.Time, error) {
	all, err := s.Retentions(ctx, consumer)
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	return all[0].Low, nil
}

// WaitingStates returns the states of rows that a consumer is processing or will process without an
// operator.
func WaitingStates() []store.RowState {
	return []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateBlocked}
}

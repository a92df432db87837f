// Package explain has the commands that answer questions: what happened to a message, and whether consumers
// are set up correctly.
package explain

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/why"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this package.
func Commands(c *command.CLI) []*cobra.Command {
	return []*cobra.Command{whyCommand(c), checkCommand(c)}
}

// whyAsked has the argument and the flags of `semel why`.
type whyAsked struct {
	store, id string
	// source restricts the search to identities with this source; nil for all sources.
	source  *string
	payload bool
}

func whyCommand(c *command.CLI) *cobra.Command {
	asked := &whyAsked{}
	var source string
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Explain what happened to a message",
		Long: `Explain whether a message was applied, why or why not, and what to do next. Then
list all records about it: marker, rows, claims, attempts with their errors,
changes by operators, edits, its stream, intents and replays. The command reads
all consumers, or the one that you name, and changes nothing. Write an id that
is not text as base64:….

Exit code 1: no store knows the id; the output lists where it was looked up,
and what could not be read.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return command.UsageError("give the id of one message")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cmd.Flags().Changed("source") {
				asked.source = &source
			}
			if asked.id, err = typedID(args[0]); err != nil {
				return err
			}
			return askWhy(cmd.Context(), c, asked)
		},
	}
	cmd.Flags().BoolVar(&asked.payload, "payload", false, "also show headers and payload")
	cmd.Flags().StringVar(&source, "source", "", "only the message of this source")
	command.StoreFlag(cmd, &asked.store)
	command.RefuseEmpty(cmd, "store", "consumer")
	return c.WithConfig(c.WithConsumer(cmd, "only what this consumer knows"))
}

// typedID decodes an id. An id that is not printable is printed, and accepted, in base64.
func typedID(text string) (string, error) {
	encoded, is := strings.CutPrefix(text, "base64:")
	if !is {
		return text, nil
	}
	id, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(id) == 0 {
		return "", command.UsageError("%q is no id in base64; give it as it is printed", text)
	}
	return string(id), nil
}

// askWhy searches for a message and prints the records about it in the stores.
func askWhy(ctx context.Context, c *command.CLI, asked *whyAsked) error {
	p, store, err := c.LoadFor(asked.store)
	if err != nil {
		return err
	}
	if public, _ := command.GenerationOf(c.Consumer); store == "" && p.Consumer(public) != nil {
		store = p.Consumer(public).Store
	}
	a, err := c.Open(p, store, false)
	if err != nil {
		return err
	}
	defer c.Close(a)
	stores, silent, err := askable(ctx, a)
	if err != nil {
		return command.Failed(err)
	}
	found, looked, unlisted, err := lookFor(ctx, c, a, stores, asked)
	if err != nil {
		return err
	}
	document := newWhyView(asked, found, looked, c.SuggestIn)
	document.NotAsked = append(silent, unlisted...)
	if c.JSON {
		err = c.WriteJSON(document)
	} else {
		err = printWhy(c, document)
	}
	if err == nil && len(found) == 0 {
		err = command.Failed(fmt.Errorf("%s is known to no consumer that was asked", document.name()))
	}
	return err
}

// unreadableStore is a store that could not be read, with the reason.
type unreadableStore struct {
	Store string `json:"store"`
	Why   string `json:"why"`
}

// askable splits the stores into readable stores and stores with errors. If no store is readable, askable
// returns an error. A store counts as readable although the role lacks a privilege, because other records
// may be readable.
func askable(ctx context.Context, a *assembly.Assembly) (can []*assembly.Store, silent []unreadableStore, err error) {
	var faults []error
	for _, s := range a.Stores {
		if err := a.CheckStore(ctx, s); err != nil && !why.LacksRight(err) {
			faults, silent = append(faults, err), append(silent, unreadableStore{s.Name(), err.Error()})
			continue
		}
		can = append(can, s)
	}
	if len(can) == 0 {
		return nil, nil, errors.Join(faults...)
	}
	return can, silent, nil
}

// searchedConsumer is a consumer whose records were searched for the message, with notes about what the search
// cannot find.
type searchedConsumer struct {
	Store    string   `json:"store"`
	Consumer string   `json:"consumer"`
	Found    bool     `json:"found"`
	Cannot   []string `json:"cannot_know"`
}

// lookFor searches for a message in the records of all chosen consumers.
func lookFor(ctx context.Context, c *command.CLI, a *assembly.Assembly, stores []*assembly.Store, asked *whyAsked) (found []*why.Facts, all []searchedConsumer, unlisted []unreadableStore, err error) {
	var known []string
	for _, s := range stores {
		names, err := s.Consumers(ctx)
		listed := err == nil
		switch {
		case !listed && !why.LacksRight(err):
			return nil, nil, nil, command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
		case !listed && c.Consumer == "":
			unlisted = append(unlisted, unreadableStore{s.Name(), fmt.Sprintf("with an unknown consumer; name it with --consumer: %v", err)})
		}
		names = command.KnownConsumers(a.Policy(), s.Name(), names)
		known = append(known, names...)
		strange := c.Consumer != "" && !slices.ContainsFunc(names, func(name string) bool { return meansConsumer(c.Consumer, name) })
		if strange { // Go programs can use leased keys under names that no table lists
			names = append(names, c.Consumer)
		}
		search := why.Search{Store: s, Box: command.BoxOf(s), Bare: a.Policy().Bare, Payload: asked.payload, Sends: sendsIn(a.Policy())}
		search.Box.CallKey = a.CallKey
		if asked.source != nil {
			search.Sources = []string{*asked.source}
		}
		for _, name := range names {
			if !meansConsumer(c.Consumer, name) {
				continue
			}
			facts, cannot, err := lookIn(ctx, c, a.Policy(), s, search, name, asked)
			if err != nil {
				return nil, nil, nil, command.Failed(err)
			}
			if strange && listed && len(facts) == 0 {
				continue
			}
			found = append(found, facts...)
			all = append(all, searchedConsumer{s.Name(), name, len(facts) > 0, cannot})
		}
	}
	if c.Consumer != "" && len(all) == 0 && len(stores) == len(a.Stores) {
		return nil, nil, nil, c.NoneOfThisName("consumer", c.Consumer, known)
	}
	return found, all, unlisted, nil
}

// lookIn searches for a message in the records of one consumer. If the message is not found, lookIn adds
// notes about what the search cannot find.
func lookIn(ctx context.Context, c *command.CLI, p *policy.Policy, s *assembly.Store, search why.Search, name string, asked *whyAsked) ([]*why.Facts, []string, error) {
	facts, unread, err := search.Find(ctx, name, asked.id)
	if err != nil {
		return nil, nil, err
	}
	facts = slices.DeleteFunc(facts, func(f *why.Facts) bool { return asked.source != nil && f.Key.Source != *asked.source })
	cannot, err := cannotKnow(ctx, p, s, name)
	return facts, append(cannot, unread...), err
}

// meansConsumer reports whether --consumer chooses records with this stored name. If --consumer has no
// generation, records of all generations are chosen.
func meansConsumer(asked, name string) bool {
	if asked == "" {
		return true
	}
	public, number := command.GenerationOf(asked)
	of, kept := admin.GenerationOf(name)
	return public == of && (number < 0 || number == kept)
}

func sendsIn(p *policy.Policy) func(string) bool {
	return func(name string) bool {
		public, _ := admin.GenerationOf(name)
		consumer := p.Consumer(public)
		return consumer != nil && consumer.Sends()
	}
}

// cannotKnow returns notes about why an unknown id may have been processed anyway, for instance because
// markers were removed.
func cannotKnow(ctx context.Context, p *policy.Policy, s *assembly.Store, name string) ([]string, error) {
	all := []string{}
	removed, err := s.Removed(ctx, name)
	if why.LacksRight(err) {
		all = append(all, fmt.Sprintf("whether markers were removed (retention): %v", err))
	} else if err != nil {
		return nil, fmt.Errorf("store %s: consumer %s: %w", s.Name(), name, err)
	}
	if !removed.IsZero() {
		all = append(all, fmt.Sprintf("whether it was applied before %s: markers from before then may have been removed (retention)", output.Moment(removed)))
	}
	public, _ := admin.GenerationOf(name)
	consumer := p.Consumer(public)
	switch {
	case consumer == nil:
		return all, nil
	case consumer.Strategy.Natural != nil:
		all = append(all, "whether it was applied: with strategy natural no marker is written")
	case !consumer.Strategy.Marks() && consumer.Strategy.BusinessKey != nil:
		all = append(all, "whether it was applied: with strategy business_key no marker is written; look for its row under the constraint "+consumer.Strategy.BusinessKey.Constraint)
	}
	if consumer.Dedup != nil {
		all = append(all, "whether other code marked it in the table "+consumer.Dedup.Table+", which is not looked at")
	}
	if consumer.Identity.Previous != nil {
		all = append(all, "whether it was applied under its former identity, which has another id: ask for that")
	}
	if consumer.From != "" {
		all = append(all, "whether it is still in the source "+consumer.From+" and was not read yet")
	}
	return all, nil
}

// name returns the id in a printable form.
func (v whyView) name() string {
	if v.IDBase64 != "" {
		return "base64:" + v.IDBase64
	}
	return legible.Printable(v.ID)
}
